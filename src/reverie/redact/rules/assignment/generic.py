"""Secrets without a shape of their own: assigned to a credential word, or given to a flag."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from typing import NamedTuple

from reverie.redact.entropy import is_plain_word
from reverie.redact.lazy import lazy
from reverie.redact.rules.names import (
    KEY_HINT,
    KEY_REST,
    KEY_WORD,
    NAME_BYTES,
    PASSWORD,
    PASSWORD_HINT,
    key_strength,
    name_start,
)
from reverie.redact.rules.plausible import is_code, is_random_value, is_told_value
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import cut, is_masked, is_substitute, judge

_CLOSE = r"(?:\\{0,3}[\"'`\])*]){0,4}"
_SEPARATOR = (
    r"(?:\[[0-9]{0,5}\])?"
    r"(?:[ \t]{0,3}:[ \t]{0,3}[A-Za-z_&*][A-Za-z0-9_\[\], |.?<>&'*]{1,30}[ \t]{1,3}=|:[ \t]{0,3}(?:str|string|String|bytes)=|[ \t]{1,3}(?:string|\[\]byte|String|str|char\*?|text)[ \t]{0,3}=|"
    r"[ \t]{0,12}(?:[:?+.|!~&]{0,3}={1,3}>?|->|:{1,3}|\|\||\?\?|\?:|\|)|[ \t]{0,3}<{1,2}-|[ \t]{1,3}or\b|>|[ \t]{0,3},|\()"
)
# A call that only wraps a literal.
_MAKES = r"(?:String::from|Some|Secret(?:Str|String)?(?:::new|::from)?|new String|\[\]byte|std::string|str|bytes|Buffer\.from|(?:aws|pulumi|pointer|ptr)\.(?:String|To))\([ ]?"
_OPEN = rf"[ \t]{{0,12}}(?:\*\*|string\([0-9]{{1,4}}\)[ ]|{_MAKES})?"
_VALUE = r"(?:[bruf@$NLU]{0,2}(?:\"\\{1,3}|\\{0,3})(?:\"([^\"\n]{3})|'([^'\n]{3})|`([^`\n]{3}))|([^\s\"'`,;&|<>]{4}))"
_QUOTED = {quote: re.compile(rb"[^%b\n]{3,256}" % quote) for quote in (b'"', b"'", b"`")}
_BARE = lazy(rb"[^\s\"'`,;&|<>]{4,256}")
_FETCHES = lazy(
    r"(?i)(?:^|[._])(?:get|fetch|read|load|find|lookup|retrieve|ask|prompt|request|delete|remove|list|describe)"
)
# After a closing quote: `"password = " + new Buffer(...)`; and a literal to which something is added.
_ADDED = lazy(r"[ ]?\+[ ]?(?:new |[A-Za-z_$][\w.$]*[(.\[])")
_ADDED_TO = lazy(rb"\\{0,3}[\"'`][ \t]*\+[ \t]*[A-Za-z_$]")
_LINE_END = ord("\n")
_PIECE = 256
_PATTERN = lazy(r"\\[sSdDwW][*+{]")
_JSON = lazy(r"[\"'][ \t]*:[ \t]*[\"']")
_KEY_TEXT = lazy(r"[\w.\-]+(?: (?:key|de|passe)\w*)*", re.I)


def _key_before(data: bytes, match_start: int, value_start: int) -> tuple[str, str]:
    """Return the whole key that a credential word is part of, and the text between it and the value."""
    begin = name_start(data, match_start)
    text = data[begin:value_start].decode("utf-8", "replace")
    found = _KEY_TEXT.match(text)
    key = found.group() if found else text
    return key, text[len(key) :]


def _extent(data: bytes, start: int) -> int:
    """Return the end of the value that begins at `start`."""
    value = _QUOTED.get(data[start - 1 : start], _BARE).match(data, start)
    return value.end() if value else start


class _Pair(NamedTuple):
    """A key and its value, with their places."""

    data: bytes
    match_start: int
    start: int
    end: int
    key: str
    between: str
    strength: str
    quoted: bool
    value: str


def _assignment(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `KEY = value` in any notation, if the two are plausible together."""
    if data[match_start - 1 : match_start] == b"\\" and data[match_start] in b"nrt":
        return None  # The word begins with an escape: the unescaped copy is judged instead.
    key, between = _key_before(data, match_start, start)
    strength = key_strength(key)
    if not strength or b"arn:aws" in data[max(0, match_start - 80) : match_start]:
        return None
    quoted = between[-1:] in ("'", '"', "`")
    if between in (" ", ":", ": ") and not key.isupper() and is_plain_word(data[start:end]):
        return None
    if not _separates(key, between, quoted=quoted) or (between[:1] == ">" and _is_slot(data, match_start, end)):
        return None
    whole = end
    start, end = cut(data, start, end, quoted=quoted)
    if is_masked(data, start, end, whole):
        return None
    value = data[start:end].decode("utf-8", "replace")
    pair = _Pair(data, match_start, start, end, key, between, strength, quoted, value)
    if start >= end or _is_elsewhere(pair) or _is_part(pair):
        return None
    literal = _is_literal(pair)
    if not judge(value, strength, quoted=literal, assigned=_is_assigned(pair)):
        return None if is_substitute(value, quoted=literal) else (start, start)  # a substitute is dismissed at once
    return start, _to_the_blank(data, match_start, start, end)


def _separates(key: str, between: str, *, quoted: bool) -> bool:
    """Whether the text between key and value assigns the value; a list or a look-up does not."""
    if not quoted and ("," in between or "(" in between or "<-" in between):
        return False
    if between[:1] == "(" and _FETCHES.search(key):
        return False
    if "," not in between or any(quote in between[: between.index(",")] for quote in "\"'`"):
        return True
    # `env.put(Context.SECURITY_CREDENTIALS, "...")` is an assignment, a list is none.
    constant = key.rsplit(".", 1)[-1]
    return constant.isupper() and "_" in constant and quoted


def _is_elsewhere(pair: _Pair) -> bool:
    """Whether the value only refers to the secret: its name in a store, a member, a word of a list."""
    between, value = pair.between, pair.value
    if between[:1] == "(" and _is_lookup(pair.key, value):
        return True
    if "," in between and "(" not in between and not is_told_value(value):
        return True  # A list of words.
    if pair.strength == "mention" and "(" in between and not (len(value) >= 32 and is_random_value(value)):
        return True
    # `API_KEY = settings.API_KEY`.
    return len(pair.key) >= 4 and value.endswith((f".{pair.key}", f"->{pair.key}"))


def _is_part(pair: _Pair) -> bool:
    """Whether the value is part of an address, of a concatenation or of a regular expression."""
    value = pair.value
    if pair.between == ">" and value[:1] == "@":
        return True  # `<password>@host`.
    if pair.quoted and (_ADDED.match(value) or value[:2] in ('"$', "'$")):
        return True
    if pair.quoted and value[-1:] in "-_:=/. " and _ADDED_TO.match(pair.data, pair.end):
        return True
    return _PATTERN.search(value) is not None  # A pattern that finds secrets.


def _is_variable(pair: _Pair) -> bool:
    """Whether the key is an environment variable, whose value is a literal even without quotes."""
    return pair.key.isupper() and "_" in pair.key and ("=" in pair.between or ":" in pair.between)


def _is_assigned(pair: _Pair) -> bool:
    """Whether the value is assigned, not described."""
    between = pair.between
    if any(sign in between for sign in ("=", "<-", "(", ",", ">")) or _is_variable(pair):
        return True
    if pair.strength == "password" and len(pair.value) >= 12 and pair.value.isascii() and _JSON.fullmatch(between):
        return True  # A member of a JSON object, too long to be a word about passwords.
    line = pair.data[max(0, pair.match_start - 48) : pair.start].rsplit(b"\n", 1)[-1]
    if "-" not in pair.key or line.count(b":") != 1:
        return False
    begin = pair.data.rfind(pair.key.encode(), 0, pair.start)
    return pair.data[begin - 1 : begin] in (b"'", b'"')  # A header and its value in quotes.


def _is_literal(pair: _Pair) -> bool:
    """Whether the value is in quotes, or in a place where literals need none."""
    data, end = pair.data, pair.end
    if pair.quoted or (pair.between == ">" and data[end : end + 2] == b"</"):
        return True
    if pair.between == "=" and data[end : end + 1] in (b";", b"&") and b"(" not in data[pair.start : end]:
        return True  # One of several pairs, in a connection string or a query.
    return _is_variable(pair) and not is_code(pair.value)


_ENTRY = lazy(r"[a-z]+\d{0,2}(?:[-_/.](?:[a-z]+\d{0,2}|\d{1,2}))+")


def _is_slot(data: bytes, match_start: int, end: int) -> bool:
    """Whether the key is a blank to be filled in, not an element of a document: `"<api-key>"`, `KEY=<key>`."""
    opened = data.rfind(b"<", max(0, match_start - 48), match_start)
    before = data[max(0, opened - 1) : opened]
    if data[opened + 1 : opened + 2] == b"/":
        return True  # A closed element has no value behind it.
    if opened < 0 or data[end : end + 2] == b"</":
        return False
    return before in (b"=", b":", b"'", b'"', b"`", b"(") or (before == b" " and not _begins_line(data, opened))


def _is_lookup(key: str, value: str) -> bool:
    """Whether the value is the name of a stored secret: `credentials('deploy-key')`."""
    if not _ENTRY.fullmatch(value) or is_random_value(value):
        return False
    return key.rsplit(".", 1)[-1].lower() in ("credentials", "credential", "secret", "secrets") or bool(
        re.search(r"pass|pwd|key|token|secret|cred|auth", value)
    )


_BLANKS = b" \t"
_OWN_LINE = (b"export ", b"set ", b"- ")


def _run_start(data: bytes, end: int, of: bytes) -> int:
    """Return the start of the run of these bytes that ends at `end`. Reads no more than the run."""
    while end > 0:
        piece = data[max(0, end - _PIECE) : end]
        end -= len(piece) - len(piece.rstrip(of))
        if end > 0 and data[end - 1] not in of:
            break
    return end


def _begins_line(data: bytes, position: int, blanks: bytes = b" \t\r\x0b\x0c") -> bool:
    """Whether only blanks come before `position` on its line."""
    start = _run_start(data, position, blanks)
    return start == 0 or data[start - 1] == _LINE_END


def _is_on_own_line(data: bytes, position: int) -> bool:
    """Whether the name at `position` begins its line, after at most `export`, `set` or a bullet, and a quote."""
    start = _run_start(data, position, NAME_BYTES)
    start -= data[max(0, start - 1) : start] in (b'"', b"'")
    start -= next((len(word) for word in _OWN_LINE if data.endswith(word, 0, start)), 0)
    return _begins_line(data, start, _BLANKS)


def _to_the_blank(data: bytes, match_start: int, start: int, end: int) -> int:
    """Extend a bare value on a line of its own to the next blank, across symbols."""
    if data[start - 1 : start] in (b"'", b'"', b"`") or data[end : end + 1] not in (b"<", b">", b"&", b"|", b";"):
        return end
    if b"://" in data[match_start:end] or not _is_on_own_line(data, match_start):
        return end
    more = re.compile(rb"[^\s\"'`]{2,200}").match(data, end)
    return more.end() if more else end


# Commands about public keys: `--recv-keys 1234ABCD`.
_KEY_VERB = lazy(
    r"(?:[a-z]+-)*(?:recv|receive|send|list|delete|refresh|search|export|import|fetch|edit|sign|lsign|default|trusted|locate|hidden)-(?:secret-)?keys?$|key-?id$"
)


def _flag(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `--password value`, where a blank assigns."""
    key = re.split(rb"[ \t=]", data[match_start:start].lstrip(b"-/ \t"), maxsplit=1)[0].decode("ascii", "replace")
    strength = "" if key.endswith("-stdin") or data[start : start + 5] == b"HTTP/" else key_strength(key)
    if _KEY_VERB.match(key) and re.fullmatch(rb"(?:0x)?[0-9A-Fa-f]{8,40}!?", data[start:end]):
        return None
    quoted = data[start - 1 : start] in (b"'", b'"')
    start, end = cut(data, start, end, quoted=quoted)
    value = data[start:end].decode("utf-8", "replace")
    if key in ("secret", "secret-name", "secret-id") and _is_lookup(key, value):
        return None
    return (
        (start, end) if strength and judge(value, strength, quoted=True, assigned=True) and not is_code(value) else None
    )


RULES = (
    Rule(
        "generic-secret",
        rf"(?i:{KEY_WORD}){KEY_REST}{_CLOSE}{_SEPARATOR}{_OPEN}{_VALUE}",
        trigger=rf"{KEY_HINT}[\\\"'`\[\])*0-9]*(?:[ \t]*(?:[:=>|]|->|<-|<<-|[?+.!~&]{{1,3}}[:=|]|\?\?)|[ \t]+(?:or\b|(?:string|\[\]byte|String|str|char\*?|text)[ \t]*=)|\([ \t]*[A-Za-z0-9@$*()\\ ]*[\"'`]|[\"'`][\\)\]*\"'`]*[ \t]*,|[ \t]*,[ \t]*[\\\"'`])",
        extent=_extent,
        refine=_assignment,
        generic=True,
        price=11,
        examples=(
            "password=hunter2-Xy9!",
            "DB_PASSWORD=⟨w16⟩",
            "export API_KEY=⟨w32⟩",
            'client_secret: "⟨w40⟩"',
            '{"apiKey": "⟨h32⟩", "x": 1}',
            r"{\"password\": \"⟨w12⟩\"}",
            "spring.datasource.password=⟨w12⟩",
            "passwd: ⟨w12⟩",
            "const authToken = '⟨w24⟩';",
            'password: str = "⟨w12⟩"',
            "<password>⟨w12⟩</password>",
            "X-Api-Key: ⟨w32⟩",
            "Server=db;User Id=sa;Password=⟨w14⟩;Encrypt=true",
            "https://api.example.org/v1?api_key=⟨w32⟩&page=2",
            "config['secret_key'] = '⟨w32⟩'",
            'token := "⟨h40⟩"',
            "Passwort: ⟨w12⟩",
            "PGPASSWORD=⟨w10⟩ psql",
            "password = Walnut47.Tundra2",
            'let passwd = String::from("maple.guitar.⟨d4⟩");',
            'env.put(Context.SECURITY_CREDENTIALS, "Zebra.Maple77");',
            "VPN_IPSEC_PSK=⟨w15⟩",
            'deployPat := "⟨a52⟩"',
            'access_token <- "⟨h40⟩"',
            "***password: Maple!Horse8x***",
            "set <password>Maple!Horse8x</password> in the file",
            "auth_token('winter-⟨d4⟩-maple9x')",
            '  .secretKeyBase("⟨h64⟩")',
            "  secret = Maple-Horse^⟨d3⟩!z",
            "  secret = Maple_Horse!⟨d4⟩a",
            "<password>Zebra!Maple⟨d3⟩",
        ),
        near_misses=(
            "password=<your-password>",
            "password = os.environ['DB_PASSWORD']",
            "password=${DB_PASSWORD}",
            "api_key: null",
            "token_type: bearer",
            "token = tokenizer.encode(text)",
            "password: string",
            "secret: true",
            "password=****",
            'password = "not-a-real-password"',
            "const token = jwt.sign(payload, secret)",
            "max_tokens: 4096",
            "Password: must be at least 12 characters",
            "idempotency_key: ⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
            "cache_key=⟨h32⟩",
            "author: J.Smith1984",
            "tokens: 12,345",
            "passport: required2",
            "public_key: ⟨b44⟩",
            "secret_name: prod-db-credentials-v2",
            "password=[REDACTED:db]",
            "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t⟨b100⟩",
            "postgres://<user>:<password>@db.example.org:5432/app",
            "password: !vault-ref secret/catalog#password",
            "SECRET_MANAGER_REGION=us-east-1",
            "keyVaultToStoreSecrets: monsoon-qat-552409041348",
            '"//localhost:3559/:_password = "+new Buffer(x).toString("base64")',
            "private_key = keyring.get_password('stripe', user)",
            'token = f"{prefix}{suffix1}"',
            'this.addPassword = "#add-password";',
            "password = settings.database.password2",
            "curl -H 'Authorization: Bearer <mail-api-key>' https://api.example.org/v1/status",
            "ADMIN_PASSWORD=<admin-password> region=eu-west-1",
            'const token = "<your-api-key>"; // OPS-8079',
            'client = Client(api_key="<password>", region="eu-central-1")',
            "API_KEY = credentials('mail-api-key')",
            "api_key: sk-live-api03-*****************",
            "api_key: sk-live-api03-...",
            "MAIL_API_KEY=__MAIL_API_KEY__",
            "c.smtp_password = 'INSERT_SMTP_PASSWORD_HERE'",
            'ADMIN_PASSWORD: "keyvault://catalog/admin-password-2"',
            'db_password = "aws-ssm:///catalog-v2/db_password"',
            "admin_password: ref+vault://secret/catalog#/admin_password",
            '"password": "Mot de passe", "name": "Nom"',
            '"password": "Passwort vergessen?"',
            "PublicKeyToken=⟨h16⟩, Version=4.0.0.0",
            "token <- channel1x",
            "-H 'X-Api-Key: '\"$MAIL_API_KEY\" https://node-2.example.org",
            'echo "<password>changeme</password>" > settings-v2.xml',
        ),
    ),
    Rule(
        "flag-secret",
        rf"(?:^|[\s\"'])(?:--?|/)[A-Za-z0-9_\-]{{0,24}}(?i:{PASSWORD}|secret|token|key|auth|credentials?|pat)[A-Za-z0-9_\-]{{0,16}}[ \t=]{{1,3}}[\"']?([^\s\"'`|&<>;]{{4,256}})",
        trigger=rf"[\-/][A-Za-z0-9_\-]*(?i:{PASSWORD_HINT}|secret|token|key|auth|cred|pat)[A-Za-z0-9_\-]*[ \t=]+[\"']?[^\s\"'`|&<>;]{{4}}",
        refine=_flag,
        generic=True,
        examples=(
            "tool --password ⟨w12⟩ --verbose",
            "deploy --api-key=⟨w32⟩",
            'run --auth-token "⟨h32⟩"',
            "--refresh_token ⟨w20⟩",
        ),
        near_misses=(
            "tool --password-file /run/secrets/db",
            "--token-limit 4096",
            "--key-name main-deploy",
            "--password $PASSWORD",
            "gpg --recv-keys ⟨H16⟩",
            "gpg --keyserver keys.example.org --recv-keys 0x⟨H40⟩",
            "git config --default-key ⟨H16⟩",
            "gcloud secrets versions access latest --secret=mail-api-key",
            "tool --secret-id=arn:aws:secretsmanager:eu-west-1:⟨d12⟩:secret:catalog",
        ),
    ),
    Rule(
        "named-value-secret",
        rf"(?i)(?:{KEY_WORD}){KEY_REST}[\"'][ \t]{{0,3}},?[ \t]{{0,3}}[\"']?value[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']([^\"'\n]{{4,256}})",
        trigger=r"(?i)[\"'][ \t]*,?[ \t]*[\"']?value[\"']?[ \t]*[:=]",
        refine=_assignment,
        generic=True,
        examples=('{"name": "DB_PASSWORD", "value": "⟨w14⟩"}', '<add key="ApiSecret" value="⟨w32⟩" />'),
        near_misses=('{"name": "DB_PASSWORD", "value": "${DB_PASSWORD}"}',),
    ),
)
