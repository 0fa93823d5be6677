"""Secrets over several lines: a name on one and its value on the next, and the values of a manifest."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

from collections.abc import Iterator

from reverie.redact.lazy import lazy
from reverie.redact.markers import Lazy
from reverie.redact.markers import spans as all_spans
from reverie.redact.rules.literals import is_random, is_told, is_whole, trimmed
from reverie.redact.rules.names import KEY_HINT, KEY_WORD, key_strength
from reverie.redact.rules.plausible import is_placeholder, is_told_value
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import judge_named

_NAME = rf"[A-Za-z0-9_.\-]*{KEY_WORD}[A-Za-z0-9_.\-]*"
_PAIRS = (
    # - name: DB_PASSWORD \n value: ...
    rf"(?i)\b(?:name|key)[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']?({_NAME})[\"']?,?[ \t]{{0,3}}\r?\n[ \t]{{0,40}}[\"']?(?:value|default)[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']?([^\s\"'`]{{4,}})"
    # variable "db_password" { \n default = "..."
    rf"|\bvariable[ \t]{{1,3}}\"({_NAME})\"[ \t]{{0,3}}\{{[ \t]{{0,3}}\r?\n(?:[ \t]{{0,20}}(?:type|description|sensitive)[^\n]*\r?\n){{0,3}}[ \t]{{0,20}}default[ \t]{{0,12}}=[ \t]{{0,3}}\"([^\"\n]{{4,}})\""
    # <key>apiSecret</key> \n <string>...</string>
    rf"|<key>({_NAME})</key>\s{{0,40}}<string>([^<\n]{{4,}})</string>"
    # <apiToken> \n ... \n </apiToken>, also as CDATA
    rf"|<({_NAME})>(?:\s{{0,40}}<(?:!\[CDATA\[|value>)|[ \t]{{0,40}}\r?\n\s{{0,40}})([^<>\s\]]{{4,}})"
    # token: > \n ...
    rf"|({_NAME})[\"']?[ \t]{{0,3}}:[ \t]{{0,3}}(?:[|>][+-]?)?[ \t]{{0,3}}\r?\n[ \t]{{2,40}}[\"']?([^\s\"'`:=]{{6,}}={{0,2}})[\"']?[ \t]{{0,3}}(?:\r?\n|\z)"
    # key = "..." \n "..."
    rf"|((?:{_NAME}|\bkey))[ \t]{{0,3}}=[ \t]{{0,3}}\(?[\"']([^\s\"'`]{{8,}})[\"'][ \t]{{0,3}}[+\\]?[ \t]{{0,3}}\r?\n[ \t]{{1,40}}\+?[ \t]{{0,3}}[\"']([^\s\"'`]{{8,}})[\"']"
).encode()
_NEXT = (
    rf"(?i:\b(?:name|key))[\"']?[ \t]*[:=][ \t]*[\"']?[A-Za-z0-9_.\- ]*{KEY_HINT}[\"']?,?[ \t]*\r?(?m:$)"
    rf"|(?i:\bvariable)[ \t]+\"|<[A-Za-z0-9_.\-]*{KEY_HINT}>[ \t]*(?:<[!vV]|\r?(?m:$))|{KEY_HINT}(?:(?i:</key>)|[\"']?[ \t]*:[ \t]*[|>]?[+-]?[ \t]*\r?(?m:$)"
    rf"|[ \t]*=[ \t]*\(?[\"'][^\s\"'`]{{8}}[^\s\"'`]*[\"'][ \t]*[+\\]?[ \t]*\r?(?m:$))"
)


_PAIR = lazy(r"[A-Z][A-Z0-9_]{2,}=[^=]|[a-z][a-z0-9_.]*=[a-z0-9./:-]+$")


def _next_lines(data: bytes) -> Iterator[Span]:
    """Yield values on the line after their key."""
    for match in all_spans(_PAIRS).each(data):
        yield match[0][0], match[0][0]
        group = next((g for g in range(1, 13, 2) if match[g][0] >= 0), 0)
        if not group:
            continue
        if group == 11:
            first, second = (data[slice(*match[g])].decode("utf-8", "replace") for g in (12, 13))
            if is_random(first) and is_random(second):
                yield match[12]
                yield match[13]
            continue
        key = data[slice(*match[group])].decode("utf-8", "replace")
        start, end, value = trimmed(data, *match[group + 1])
        strength = key_strength(key)
        if not strength or not is_whole(value):
            continue
        # Anything may follow below a bare `token:`; a name is followed by its value.
        named = group <= 7
        if group == 7 and (
            data[data.rfind(b"\n", 0, match[0][0]) + 1 : match[0][0]].strip(b" \t>") or _PAIR.match(value)
        ):
            continue  # `KEY=<your-key>` followed by the next line of the file.
        if judge_named(value, strength) if named else (len(value) >= 10 and is_told_value(value)):
            yield start, end


_FOLLOWS = Lazy(
    rb"(?i)\b(?:password|passphrase|passcode|token|(?:api|access|encryption|signing|deploy|master) key|secret(?: key)?|master\.key)\b[^\n]{0,100}(?::[ \t]{0,3}|\.key)?\r?\n\s{0,20}(?:```[a-z]{0,8}\r?\n\s{0,20})?[`\"']?([A-Za-z0-9+/=_*~!@#%^?$&.-]{8,512})[`\"']?[ \t]{0,3}(?:\r?\n|\z)"
)
# Words that announce the next line, and words that announce something other than a secret.
_ELSE = lazy(rb"(?i)\b(?:commits?|hash|sha\d*|fingerprint|public|digest|checksum|ids?|build|version)\b")
_HANDED = lazy(rb"(?i)\b(?:below|following|for you|here you go|here it is)\b[^\n]{0,60}\Z")


def _following(data: bytes) -> Iterator[Span]:
    """Yield the value on the line after `Please use the following password:`."""
    for match in _FOLLOWS.finditer(data):
        yield match.start(), match.start()
        value = match.group(1).decode("utf-8", "replace")
        begin = data.rfind(b"\n", 0, match.start()) + 1
        line = data[match.start() : match.start(1)].split(b"\n", 1)[0].rstrip(b" \t\r`\"'")
        handed = _HANDED.search(line) and not _ELSE.search(data, begin, match.start(1))
        if not (handed or line.endswith((b":", b"master.key"))) or _PAIR.match(value):
            continue
        chosen = line[:4].lower() == b"pass" and is_told(value) and _is_chosen(value)
        if chosen or is_random(value):
            yield match.span(1)


def _is_chosen(text: str) -> bool:
    """Whether `text` has both letter cases, a digit and a symbol."""
    symbols = any(not c.isalnum() and c not in "-_/" for c in text)
    return symbols and any(map(str.islower, text)) and any(map(str.isupper, text)) and any(map(str.isdigit, text))


_SECRET_KIND = Lazy(
    rb"(?:\"kind\"[ \t]{0,3}:[ \t]{0,3}\"[sS]ecret\"|(?m:^)[ \t-]{0,20}kind:[ \t]{0,3}[\"']?[sS]ecret[\"']?[ \t]{0,3}(?:#[^\n]{0,80})?\r?(?m:$))"
)
_DOCUMENT_END = Lazy(rb"(?m:^---)|(?m:^)[ \t-]{0,20}kind:|\"kind\"")
_DATA = Lazy(rb"(?:\"data\"[ \t]{0,3}:|(?m:^)[ \t]{0,20}data:[ \t]{0,3}\r?(?m:$))")
_ENTRY = Lazy(
    rb"(?:(?m:^)[ \t]{1,40}[A-Za-z0-9_.\-]{1,100}:[ \t]{1,3}(?:[|>][+-]?[ \t]{0,3}\r?\n[ \t]{1,40})?[\"']?|[{,]\s{0,20}\"[A-Za-z0-9_.\-]{1,100}\"[ \t]{0,3}:[ \t]{0,3}\")([A-Za-z0-9+/]{8,}={0,2})(?:[\"'\s]|\z)"
)
_ENTRY_END = Lazy(rb"(?m:^)[A-Za-z]|\}")


def _manifests(data: bytes) -> Iterator[Span]:
    """Yield the values of a Kubernetes Secret: base64 under any name."""
    done = 0
    for kind in _SECRET_KIND.finditer(data):
        yield kind.start(), kind.start()
        stop = _DOCUMENT_END.search(data, kind.end())
        end = stop.start() if stop else len(data)
        # Keys may come in any order: `data` may also come just before the kind.
        before = max(data.rfind(b"\n---", done, kind.start()), done, kind.start() - 20_000)
        done = end
        sections = [section.end() for section in _DATA.finditer(data, before, end)]
        for begin, limit in zip(sections, [*sections[1:], end], strict=False):
            close = _ENTRY_END.search(data, begin, limit)
            for entry in _ENTRY.finditer(data, begin, close.end() if close else limit):
                value = entry.group(1).decode("ascii")
                likely = len(value) % 4 == 0 and not is_placeholder(value)
                yield entry.span(1) if likely else (entry.start(), entry.start())


RULES = (
    Rule(
        "next-line-secret",
        KEY_WORD,
        trigger=_NEXT,
        locate=_next_lines,
        generic=True,
        examples=(
            "- name: DB_PASSWORD\n  value: ⟨w14⟩",
            '- name: API_TOKEN\n  value: "⟨h40⟩"',
            'variable "api_key" {\n  type = string\n  default = "⟨w32⟩"\n}',
            "<key>apiSecret</key>\n<string>⟨w32⟩</string>",
            "<apiToken>\n    ⟨w32⟩\n</apiToken>",
            "<apiToken><![CDATA[⟨w32⟩]]></apiToken>",
            "private_token: >\n  ⟨w40⟩",
            "<AdminPassword>\n  <Value>⟨w14⟩</Value>",
        ),
        near_misses=(
            "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db",
            '- name: DB_PASSWORD\n  value: "$(PASSWORD)"',
            "token:\n  description: the token to use",
            "password:\n  required: true",
            "secret:\n  - one\n  - two-things",
            "MAIL_SECRET_KEY=<insert-mail-secret-key-here>\nLANG=C.UTF-8",
            r'{"content": "MAIL_API_KEY=<mail-api-key>\nPORT=4783\n"}',
            "authorization: Bearer <your-smtp-password>\naccept-encoding2: gzip",
        ),
    ),
    Rule(
        "following-password",
        r"(?i:password)",
        trigger=r"(?i:\b(?:password|passphrase|passcode|token|key|secret)\b)[^\n]*(?::[ \t]*\r?(?m:$)|(?i:\b(?:below|following|for you|here you go|here it is)\b))|\bmaster\.key\b",
        locate=_following,
        generic=True,
        apart=True,
        examples=(
            "use the following password to proceed:\n\n⟨h32⟩\n",
            "the new token is:\n⟨w40⟩\n",
            "master.key\n⟨h32⟩",
            "new API key below, the other one gets disabled on Monday\n⟨h40⟩",
            "ok I generated a new catalog token for you\n```\n⟨b64⟩\n```\nplease don't share it",
            "the password for the database is:\n\nMaple?Horse⟨d3⟩\n",
        ),
        near_misses=(
            "the password must be:\n\nlonger\n",
            "the token is described below\nconfig-v2.example\n",
            "password:\nLANG=C.UTF-8x1",
            "commits with the token fix, see below\n⟨h40⟩",
        ),
    ),
    Rule(
        "kubernetes-secret",
        r"kind",
        trigger=r"kind\"?:[ \t]*[\"']?[sS]ecret[\"']?",
        locate=_manifests,
        examples=(
            "apiVersion: v1\ndata:\n  extra: ⟨b48⟩\nkind: secret\n",
            "kind: Secret\ndata:\n  .dockercfg: |\n    ⟨b48⟩\n",
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  config.ini: ⟨b48⟩\n",
            '{"kind": "Secret", "data": {"blob": "⟨b32⟩"}}',
        ),
        near_misses=(
            "kind: Secret\nmetadata:\n  name: x\n",
            "kind: ConfigMap\ndata:\n  config.ini: ⟨b48⟩\n",
            "kind: SecretStore\ndata:\n  a: ⟨b48⟩\n",
        ),
    ),
)
