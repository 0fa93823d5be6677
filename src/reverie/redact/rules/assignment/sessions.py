"""Sessions and forms: cookies that calls and files set, private parts of web keys, headers and fields set by name."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import looks_random
from reverie.redact.lazy import lazy
from reverie.redact.markers import Lazy
from reverie.redact.rules.literals import is_literal, is_whole
from reverie.redact.rules.names import key_strength
from reverie.redact.rules.plausible import is_placeholder, is_random_value
from reverie.redact.rules.prose.languages import passes_for_password
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import judge_named

_SESSION = lazy(
    r"(?i)sess|sid$|token|auth|jwt|csrf|xsrf|remember|login|secret|\bid$|^li_at$|aspnet|cookies?$|ticket|^sso|identity"
)
_VISIT = lazy(
    r"(?i)^(?:_ga|_gid|_gat|_gcl|_fbp|_fbc|_hj|__utm|ajs_|_pk_|theme|lang|locale|currency|consent|expires|path|domain)"
)


def _is_session(name: str, value: str) -> bool:
    """Whether a cookie holds a session."""
    if _VISIT.match(name) or not is_whole(value) or is_placeholder(value) or len(value) < 8:
        return False
    if _SESSION.search(name):
        return is_random_value(value) or (any(c.isdigit() for c in value) and len(value) >= 16)
    return is_random_value(value) and len(value) >= 20


_SETTING = Lazy(
    rb"(?i)[ ](?:-b|--cookie)[ =][\"']?|\bcookies?\b[^\n:={]{0,24}\b(?:is|are|was)[: ]{1,2}|cookies?[\"']?\s{0,3}[=:]\s{0,3}(?:dict\(|\{)"
    rb"|(?:set_?cookies?|add_?cookies?|cookies?\.(?:set|add|put|create)|\bcookie)\("
)
_PAIR = Lazy(
    rb"([A-Za-z0-9_.$!%*+\-]{1,80})[\"'`]?\s{0,3}[=:,]\s{0,3}[\"'`]([^\s;\"'`,\\]{6,})[\"'`]|([A-Za-z0-9_.$!*+\-]{1,80})=([^\s;\"'`,\\)]{6,})"
)
_REACH = 2_000


def _cookies(data: bytes) -> Iterator[Span]:
    """Yield the values of session cookies that code or a command sets."""
    done = 0
    for setting in _SETTING.finditer(data):
        yield setting.start(), setting.start()
        if setting.start() < done:
            continue
        closing = b"}" if setting.group()[-1:] == b"{" else b"\n"
        end = data.find(closing, setting.end(), setting.end() + _REACH)
        done = min(len(data), setting.end() + _REACH) if end < 0 else end
        for pair in _PAIR.finditer(data, setting.end(), done):
            group = 1 if pair.start(1) >= 0 else 3
            name, value = (pair.group(g).decode("utf-8", "replace") for g in (group, group + 1))
            yield pair.span(group + 1) if _is_session(name, value) else (pair.start(), pair.start())


def _row(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    name = data[match_start:start].rstrip(b"\t").rsplit(b"\t", 1)[-1].decode("utf-8", "replace")
    return (start, end) if _is_session(name, data[start:end].decode("utf-8", "replace")) else None


_PAIR_NAME = lazy(r"(?i)\bname[\"']?[ \t]*[:=][ \t]*[\"'`]([^\"'`\n]{1,80})")


def _named(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `{"name": "password", "value": "..."}`, with any other members between the two."""
    found = _PAIR_NAME.match(data[match_start:start].decode("utf-8", "replace"))
    name, value = found.group(1) if found else "", data[start:end].decode("utf-8", "replace")
    before = data[max(0, match_start - 200) : match_start].lower()
    if b"cookie" in before and _is_session(name, value):
        return start, end
    strength = key_strength(name)
    if strength not in ("password", "secret") or not is_whole(value):
        return None
    return (start, end) if judge_named(value, strength) and (strength == "password" or " " not in value) else None


def _web_key(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    near = data[max(0, start - 2_000) : end + 2_000]
    return (start, end) if b"kty" in near and looks_random(data[start:end].decode("ascii")) else None


_FIELD_NAME = lazy(r"[\"'][ \t]*,?[ \t]*\w+[ \t]*:[ \t]*@?[\"']([^\"'\n]{1,80})")


def _set_for(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `setValue("...", forHTTPHeaderField: "X-API-Key")`, whose name follows it."""
    found = _FIELD_NAME.match(data[end : end + 160].decode("utf-8", "replace"))
    name, value = found.group(1) if found else "", data[start:end].decode("utf-8", "replace")
    strength = "secret" if name.lower() in ("authorization", "proxy-authorization") else key_strength(name)
    value = re.sub(r"^[A-Za-z0-9]{2,12} ", "", value)
    if re.match(r"(?i)(?:your|my)[_ -]", value):
        return None
    return (end - len(value.encode()), end) if strength and is_whole(value) and judge_named(value, strength) else None


def _typed(text: str) -> bool:
    return is_literal(text) and (
        passes_for_password(text) or (len(text) >= 6 and " " not in text and judge_named(text, "password"))
    )


RULES = (
    Rule(
        "set-cookie-value",
        r"(?i:cookie)",
        trigger=r"(?i:cookie)|[ ]-b[ ][\"']?[A-Za-z0-9_.\-]+=",
        locate=_cookies,
        examples=(
            "requests.get(url, cookies={'theme': 'dark', 'li_at': '⟨w60⟩'})",
            'curl -b "session=⟨w40⟩" https://app.example.org',
            "my session cookie is user_session=⟨w48⟩",
            "res.cookie('remember_me', '⟨w32⟩', { httpOnly: true })",
            'jar.set("sessionid", Cookie("sessionid", "⟨a32⟩"))',
        ),
        near_misses=(
            "requests.get(url, cookies={'theme': 'dark', 'lang': 'en-GB'})",
            "cookies = {'session': session_id}",
            "res.cookie('theme', 'solarized-dark', { maxAge: 900000 })",
            "curl -b cookies.txt https://app.example.org",
            "cookies={'sessionid': '<your session id>'}",
        ),
    ),
    Rule(
        "cookie-file",
        r"\t(?:TRUE|FALSE)\t[^\t\n]{1,200}\t(?:TRUE|FALSE)\t[0-9]{1,12}\t[^\t\n]{1,100}\t([^\s]{8,})",
        trigger=r"\t(?:TRUE|FALSE)\t[0-9]",
        refine=_row,
        examples=(".example.org\tTRUE\t/\tTRUE\t1893456000\tconnect.sid\ts%3A⟨w32⟩.⟨w20⟩",),
        near_misses=(".example.org\tTRUE\t/\tFALSE\t1893456000\t_ga\tGA1.2.⟨d10⟩.⟨d10⟩",),
    ),
    Rule(
        "named-field",
        r"(?i:\bname)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"'`][^\"'`\n]{1,80}[\"'`][^{}\n]{0,160}?[\"']?\b(?i:value)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"'`]([^\"'`\n]{4,})",
        trigger=r"(?i:\bvalue)[\"']?[ \t]*[:=][ \t]*[\"'`]",
        refine=_named,
        generic=True,
        examples=(
            '{"params":[{"name":"login","value":"ada"},{"name":"password","value":"WeLike⟨d2⟩Maple!"}]}',
            'driver.add_cookie({"name": "laravel_session", "value": "⟨w60⟩"})',
            'context.addCookies([{ name: ".AspNetCore.Cookies", value: "⟨u80⟩", url: "https://example.org" }])',
            '<input type="hidden" name="csrf_token" id="x" value="⟨w32⟩">',
        ),
        near_misses=(
            '{"name": "password", "value": "{{ password }}"}',
            '{"name": "token", "label": "Token", "value": "Enter the token"}',
            '<button name="reset_password" value="Reset my password">',
            'add_cookie({"name": "theme", "value": "dark"})',
        ),
    ),
    Rule(
        "web-key-private",
        r"(?:[{,]|(?m:^))[ \t]{0,20}[\"']?(?:d|k|dp|dq|qi|p|q)[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']([A-Za-z0-9_\-]{40,})[\"']",
        trigger=r"(?:[{,]|(?m:^))[ \t]*[\"']?(?:d|k|dp|dq|qi|p|q)[\"']?[ \t]*:[ \t]*[\"'][A-Za-z0-9_\-]{8}",
        refine=_web_key,
        examples=("const jwk = {kty:'EC', crv:'P-256', x:'⟨u43!⟩', d:'⟨u43⟩'};",),
        near_misses=("{kty: 'EC', crv: 'P-256', use: 'sig'}", "{d: 'a-long-description-of-the-thing-in-words-only'}"),
    ),
    Rule(
        "set-for-field",
        r"[(:][ \t]{0,3}@?[\"']([^\"'\n]{8,})[\"'][ \t]{0,3},?[ \t]{0,3}(?:forHTTPHeaderField|forHeader|forKey|forHeaderField|forAccount|named|header)[ \t]{0,3}:",
        trigger=r"[\"'][ \t]*,?[ \t]*(?:for(?:HTTPHeaderField|Header|Key|Account)|named|header)",
        refine=_set_for,
        generic=True,
        examples=(
            'request.setValue("⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩", forHTTPHeaderField: "X-API-Key")',
            '[request setValue:@"⟨h30⟩" forHTTPHeaderField:@"PLAID-SECRET"];',
            'keychain.set("⟨w24⟩", forKey: "refreshToken")',
        ),
        near_misses=(
            'request.setValue("application/json", forHTTPHeaderField: "Content-Type")',
            'defaults.set("dark-mode-2", forKey: "theme")',
            'request.setValue("Bearer \\(token)", forHTTPHeaderField: "Authorization")',
        ),
    ),
    Rule(
        "typed-password",
        r"(?i:selector|target|element|field|locator|label|xpath|css|ref|id)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"'][^\n]{0,80}?(?i:passw|pwd|passphrase|passcode)[^\n{}]{0,60}?[\"'][ \t]{0,3},[^{}\n]{0,60}?[\"']?\b(?i:text|value|input|keys|content)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']([^\"\n]{4,128})\"",
        trigger=r"(?i:text|value|input|keys|content)[\"']?[ \t]*[:=][ \t]*[\"']",
        check=_typed,
        generic=True,
        examples=(
            '{"tool":"browser_type","input":{"selector":"input[name=password]","text":"Harbor#⟨d4⟩x"}}',
            '{"action": "fill", "target": "#login-passwd", "submit": true, "text": "Copper⟨d4⟩!"}',
        ),
        near_misses=(
            '{"selector":"input[name=password]","text":"{{PASSWORD}}"}',
            '{"selector":"#forgot-password","text":"Forgot your password?"}',
        ),
    ),
)
