"""Private keys, signed tokens, and what travels in HTTP headers."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from reverie.redact.entropy import word_share
from reverie.redact.markers import Lazy
from reverie.redact.rules.checks import is_basic, is_bearer
from reverie.redact.rules.plausible import is_placeholder, is_random_value
from reverie.redact.rules.rule import Rule, Span

_BEGIN = Lazy(rb"-{4,5} ?BEGIN (?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V[0-9]) ?-{4,5}")
_END = Lazy(rb"-{4,5} ?END (?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V[0-9]) ?-{4,5}")
# A truncated key: lines of base64, with the line ends possibly escaped or in quotes, after optional headers.
_BODY = Lazy(
    rb"(?:(?:[\s\"',+>|]|\\[nrt\\\"]|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID):[^\n\\]*)*"
    rb"[A-Za-z0-9+/_]{20,}={0,2})+(?:(?:\s|\\[nr])*[A-Za-z0-9+/]{2,76}={1,2})?"
)
# What may come between a header and the first base64 of such a key.
_PREAMBLE = Lazy(
    rb"(?:[\s\"',+>|]|\\[nrt\\\"]|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID):[^\n\\]*)*"
)
# Longest distance in bytes between the header and the first line of base64.
_HEADERS = 4_000
_BASE64 = Lazy(rb"[A-Za-z0-9+/=]{16,}")
_PUTTY = Lazy(
    rb"(?s)PuTTY-User-Key-File-[23]:.*?Private-Lines:[ \t]*[0-9]+((?:\s|\\[nr])+(?:[A-Za-z0-9+/=]{1,80}(?:\s|\\[nr]|$)+)+)"
)


def _private_keys(data: bytes) -> Iterator[Span]:
    """Yield armoured keys, complete or truncated. A header without a key after it is prose about keys."""
    begins = [match.span() for match in _BEGIN.finditer(data)]
    ends = [match.span() for match in _END.finditer(data)]
    done = bare = 0
    for i, (start, header) in enumerate(begins):
        yield start, start
        if start < done:
            continue
        following = bisect_left(ends, (header, 0))
        close = ends[following] if following < len(ends) else (len(data), len(data))
        closed = following < len(ends) and (i + 1 == len(begins) or begins[i + 1][0] >= close[0])
        if closed and _BASE64.search(data, header, min(close[0], header + _HEADERS)):
            done = close[1]
        else:
            body = _BODY.match(data, header) if header > bare else None
            if body is None:
                if header > bare:  # headers inside this preamble have no key either
                    bare = _PREAMBLE.match(data, header).end()
                continue
            done = body.end()
        yield start, done


def _putty_keys(data: bytes) -> Iterator[Span]:
    for match in _PUTTY.finditer(data):
        yield match.span(1)


def _is_added(text: str) -> bool:
    """Whether `text` is a variable that is appended, not a value: `"Bearer "+apiToken`."""
    return text[:1] == "+" and text[1:].replace("_", "").replace(".", "").isalpha() and word_share(text) > 0.5


_COOKIE_HEADER = Lazy(rb"(?i)cookie(?: header)?[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?|[ ](?-i:-b|--cookie)[ =][\"']")
_COOKIE = Lazy(rb"([A-Za-z0-9_.$!%*+\-]{1,80})=([^\s;\"',\\]{6,})")
_SESSION_NAMES = Lazy(rb"(?i)sess|sid$|token|auth|jwt|csrf|xsrf|remember|login|secret|key|\bid$|^id_|connect\.")

_VISIT_NAMES = Lazy(rb"(?i)^(?:_ga|_gid|_gat|_gcl|_fbp|_fbc|_hj|__utm|ajs_|_pk_)")


def _cookies(data: bytes) -> Iterator[Span]:
    """Yield the values of session cookies in a Cookie or Set-Cookie header."""
    done = 0
    for header in _COOKIE_HEADER.finditer(data):
        yield header.start(), header.start()
        if header.start() < done:
            continue
        end = data.find(b"\n", header.end())
        done = len(data) if end < 0 else end
        for pair in _COOKIE.finditer(data, header.end(), done):
            name, value = pair.group(1), pair.group(2).decode("utf-8", "replace")
            refused = is_placeholder(value) or _VISIT_NAMES.search(name)
            session = not refused and (_SESSION_NAMES.search(name) or is_random_value(value))
            yield pair.span(2) if session else (pair.start(), pair.start())


RULES = (
    Rule(
        "private-key",
        r"BEGIN (?:[A-Z0-9 ]{0,40}PRIVATE KEY|OpenVPN Static key)",
        locate=_private_keys,
        examples=(
            "-----BEGIN RSA PRIVATE KEY-----\n⟨b64⟩\n⟨b64⟩\n⟨b20⟩==\n-----END RSA PRIVATE KEY-----",
            r'"private_key": "-----BEGIN PRIVATE KEY-----\n⟨b64⟩\n⟨b64⟩\n-----END PRIVATE KEY-----\n"',
            "-----BEGIN OPENSSH PRIVATE KEY-----\n⟨b70⟩\n⟨b70⟩",
            "-----BEGIN OpenVPN Static key V1-----\n⟨h32⟩\n⟨h32⟩\n-----END OpenVPN Static key V1-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: x\n\n⟨b64⟩\n=⟨b4⟩\n-----END PGP PRIVATE KEY BLOCK-----",
        ),
        near_misses=(
            "a file that starts with -----BEGIN RSA PRIVATE KEY----- is a private key",
            "-----BEGIN CERTIFICATE-----\n⟨b64⟩\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\n⟨b64⟩\n-----END PUBLIC KEY-----",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        ),
    ),
    Rule(
        "putty-key",
        r"Private-Lines:",
        locate=_putty_keys,
        examples=(
            "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPublic-Lines: 1\n⟨b64!⟩\nPrivate-Lines: 2\n⟨b64⟩\n⟨b40⟩\n",
        ),
    ),
    Rule(
        "authorization-header",
        r"(?i:authorization)[\"']?[ \t]{0,3}(?:[:=,]|=>)[ \t]{0,3}\\?[\"'`]?(?i:(?:bearer|token|basic|apikey|api-key|key|negotiate|ntlm|ssws|oauth|digest|hawk|aws|genie[kK]ey|bot|sharedkey)[ :=]{1,3})?(?:[A-Za-z0-9_.]{1,40}:)?\\?[\"']?([A-Za-z0-9_\-.~+/=:%|]{8,})",
        check=lambda text: not is_placeholder(text) and not _is_added(text) and (is_bearer(text) or is_basic(text)),
        examples=(
            "Authorization: Bearer ⟨w32⟩",
            "authorization: token ⟨h40⟩",
            '"Authorization": "Basic dXNlcjpodW50ZXIyIQ=="',
            "Authorization: ⟨w40⟩",
        ),
        near_misses=(
            "Authorization: Bearer <token>",
            "Authorization: Bearer $TOKEN",
            "authorization: required",
            "Authorization: Bearer YOUR_API_TOKEN",
            'req.Header.Set("Authorization", "Bearer "+catalogApiToken)',
        ),
    ),
    Rule(
        "session-cookie",
        r"(?i:cookie(?: header)?)[\"']?[ \t]{0,3}[:=]|[ ](?:-b|--cookie)[ =][\"'][A-Za-z0-9_.\-]+=",
        locate=_cookies,
        examples=(
            "Cookie: theme=dark; sessionid=⟨a32⟩; _ga=GA1.2.3",
            "request cookie header: session=⟨u40⟩; lang=en",
            "curl -b 'session=⟨u40⟩' https://app.example.org/me",
            "Set-Cookie: JSESSIONID=⟨H32⟩; Path=/; HttpOnly",
        ),
        near_misses=("Cookie: theme=dark-blue", "Set-Cookie: lang=en-US; Path=/", "cookie: yes"),
    ),
)
