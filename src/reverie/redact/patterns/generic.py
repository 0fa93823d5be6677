"""Secrets without a shape of their own, known by the company they keep.

An assignment to a credential word, a sentence that tells a password, a flag on a command line, a prefix that sounds
like a key. Here the surroundings decide, so every find is judged for plausibility (see `plausible.py`).
"""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from itertools import pairwise

from reverie.redact.entropy import is_wordy, looks_random, word_share, words
from reverie.redact.patterns.plausible import (
    is_code,
    is_location,
    is_password_like,
    is_placeholder,
    is_random_value,
    is_scramble,
    is_technical,
    is_term,
    is_told_value,
    without_markers,
)
from reverie.redact.patterns.rule import LEFT, Rule, Span

_PASSWORD = (
    r"pass(?:word|wd|phrase|code|wort|wrd|owrd|wrod|w)?s?|pa(?:as|s)word|pwd|kennwort|senha|contrase(?:n|ñ)a|mot[ _]de[ _]passe|motdepasse|mdp|"
    r"wachtwoord|пароль|Пароль|密码|密碼|口令|パスワード|비밀번호|비번|패스워드|암호|hasło|parola|lösenord|salasana|clave"
)
_KEYED = (
    r"api|access|secret|private|auth|authorization|signing|sign|encryption|encrypt|decryption|master|subscription|account|"
    r"storage|service|licen[sc]e|deploy|app|application|consumer|client|(?:pre-?)?shared|webhook|integration|write|read|admin|server|"
    r"functions?|hmac|jwt|session|cookie|ssh|gpg|pgp|aes|rsa|crypto|root|bot|project|db|database|host|personal|instrumentation|"
    r"ingest|merchant|security|vendor|platform|org|developer|dev|prod|live|sandbox|production|rest|sdk|maps|push|feed|bearer"
)
_SECRET = (
    rf"secret|token|credentials?|creds?|(?:{_KEYED})[ _.\-]?keys?|apikey|secretkey|accesskey|auth|bearer|sessionid|session[_.-]?id|"
    r"phpsessid|jsessionid|connect\.sid|csrf|xsrf|otp|nonce_secret|salt|pepper|signature|seed|connection[_-]?string|dsn|"
    r"webhook[_-]?url|cert(?:ificate)?[_-]?password|[A-Za-z0-9][_-]KEY|[A-Za-z0-9]_PAT|[a-z]Key"
)
_WORD = rf"(?:{_PASSWORD}|\bpw\b|\bpsk\b|\bpsw\b|_psw\b|[_-]pw\b|{_SECRET})"
# In sentences the bare word `pass` is nearly always something else.
_TOLD_HINT = rf"{_PASSWORD.replace(')?s?|', ')s?|', 1)}|pw|key|secret|token|credentials?|login|(?:access|auth|pin|recovery|backup) codes?"
_TOLD = rf"{_TOLD_HINT}|(?:{_KEYED})[ _-]?key"
_REST = r"[A-Za-z0-9_.\-]{0,24}"
KEY_WORD, KEY_REST = _WORD, _REST
# For triggers: a name with a credential word in it, in as few letters as tell one. Many rules look for such names, and
# each new state of an automaton costs as much as there are words in it.
_PASSWORD_HINT = (
    r"(?:mot[ _]de[ _])?pass|asword|pwd|kennwort|senha|contrase(?:n|ñ)a|mdp|wachtwoord|пароль|Пароль|密码|密碼|口令|パスワード|비밀번호|비번|패스워드|암호|"
    r"hasło|parola|lösenord|salasana|clave"
)
KEY_HINT = (
    rf"(?i:{_PASSWORD_HINT}|pw|psk|psw|secret|token|cred|key|auth|bearer|session[_.\-]?id|sessid|connect\.sid|csrf|xsrf|otp|"
    r"salt|pepper|signature|seed|connection[_\-]?string|dsn|webhook[_\-]?url|_pat)[A-Za-z0-9_.\-]*"
)
_CLOSE = r"(?:\\{0,3}[\"'`\])*]){0,4}"
_SEPARATOR = (
    r"(?:\[[0-9]{0,5}\])?"
    r"(?:[ \t]{0,3}:[ \t]{0,3}[A-Za-z_&*][A-Za-z0-9_\[\], |.?<>&'*]{1,30}[ \t]{1,3}=|:[ \t]{0,3}(?:str|string|String|bytes)=|[ \t]{1,3}(?:string|\[\]byte|String|str|char\*?|text)[ \t]{0,3}=|"
    r"[ \t]{0,12}(?:[:?+.|!~&]{0,3}={1,3}>?|->|:{1,3}|\|\||\?\?|\?:|\|)|[ \t]{1,3}or\b|>|[ \t]{0,3},|\()"
)
_OPEN = r"[ \t]{0,12}(?:\*\*|string\([0-9]{1,4}\)[ ])?"
_VALUE = r"(?:[bruf@$NLU]{0,2}(?:\"\\{1,3}|\\{0,3})(?:\"([^\"\n]{3})|'([^'\n]{3})|`([^`\n]{3}))|([^\s\"'`,;&|<>]{4}))"
_QUOTED = {quote: re.compile(rb"[^%b\n]{3,256}" % quote) for quote in (b'"', b"'", b"`")}
_BARE = re.compile(rb"[^\s\"'`,;&|<>]{4,256}")

_KEY_TEXT = re.compile(r"[\w.\-]+(?: (?:key|de|passe)\w*)*", re.I)
_KEY_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_IS_PASSWORD = re.compile(rf"(?i)(?:{_PASSWORD})\d*$")
_EXACT_PASSWORD = frozenset({"pass", "pw", "pwd", "psw", "mdp", "clave", "passw", "psk"})
_JOINED_PASSWORD = re.compile(
    r"(?i)(?:ssh|db|user|admin|root|my|smtp|mail|email|ftp|key|store|wifi|http|ldap|bind|proxy|sql|pg|require|login|master)pass$"
    r"|pass[ _.-](?:phrase|word|code)$"
)
# A credential word with other words behind it: `my_password_secure`, `SECRET_KEY_BASE`.
_MENTIONS = re.compile(r"(?i)passw|pwd|passphrase|secret|token(?!i[sz])|api[_.-]?key|private[_.-]?key")
_IS_SECRET = re.compile(
    r"(?i)(?:secrets?|tokens?|credentials?|creds?|apikeys?|keys?|auth|bearer|session|sessionid|sid|phpsessid|jsessionid|csrf|xsrf|"
    r"otp|salt|pepper|signature|seed|string|dsn|url|pat|authorization|authentication|value|prod|dev|test|staging|live|main|primary|secondary|"
    r"default|v?\d+|base64|b64|hex|raw|plain|text|data|env|encoded)$"
)
# What follows a credential word and makes it something else: `token_type`, `password_policy`, `secret_name`.
_ABOUT = words(
    """
    name names id ids type types count counts length len size limit limits budget url uri endpoint path paths
    file files filename dir field fields policy expires expiry expiration expired ttl age reset resets hint
    label title description desc text format regex pattern rule rules check checks valid validation validator
    strength min max min_length max_length required enabled disabled used usage per rate price cost created
    updated at time timestamp date version level status state mode class index position start end offset source
    provider store storage manager ring chain arn ref reference refs scope scopes algorithm alg encoding encoder
    decoder parser counter tokenizer izer ized input output prompt placeholder error errors message msg key_id
    hash_algorithm rotation lifetime in out sum total avg mean ratio window bucket buckets stream generator
    factory handler service helper provider_name map table column columns row owner
    """
)
_NOT_SECRET_KEYS = re.compile(
    r"(?i)(?:jsonwebtoken|public[ _.\-]?tokens?)$|(?:public|cache|primary|foreign|schema|bucket|natural|sequence|idx|partition|sort|idempotency|object|s3|dedup|dedupe|lookup|unique|composite|row|"
    r"group|map|dict|hash|json|i18n|translation|locale|config|column|range|routing|shard|storage_object|message|event|"
    r"state|query|react|list|item|data|field|tag|label|meta|pub|site|hot|shortcut|arrow|storagekey|local|registry|host|user|rest|read)"
    r"[ _.\-]?keys?$"
)
_TRACKING = re.compile(
    rb"(?i)(?:clid|verification|srsltid|_hsenc|_hsmi|mc_eid|igshid|braid|[?&](?:id|si|ref|v|ved|ei|usg|gs_lcp|cursor|state))=[\w-]*\Z"
)
_TRAILING = ".,:;!?)]}>*_\\"


def _cut(data: bytes, start: int, end: int, *, quoted: bool) -> Span:
    """The value without what does not belong to it: closing punctuation, the escape before a quote."""
    raw = data[start:end]
    if quoted:
        kept = raw.rstrip(b"\\")
        return start, start + len(kept)
    kept = raw.rstrip(b"\\")
    while kept and chr(kept[-1]) in _TRAILING and chr(kept[-1]) != "!":
        closer = kept[-1:]
        opener = {b")": b"(", b"]": b"[", b"}": b"{"}.get(closer)
        if opener and opener in kept and kept.count(opener) >= kept.count(closer):
            break
        kept = kept[:-1]
    return start, start + len(kept)


def _key_before(data: bytes, match_start: int, value_start: int) -> tuple[str, str]:
    """The whole key that a credential word is part of, and what stands between it and the value."""
    begin = match_start
    while begin > 0 and match_start - begin < 48 and (data[begin - 1 : begin].isalnum() or data[begin - 1] in b"_.-"):
        begin -= 1
    text = data[begin:value_start].decode("utf-8", "replace")
    found = _KEY_TEXT.match(text)
    key = found.group() if found else text
    return key, text[len(key) :]


def _strength(key: str) -> str:
    """`password`, `secret`, or nothing when the key only talks about one."""
    words = [word for word in _KEY_WORDS.findall(key) if word]
    if not words:
        return ""
    last = words[-1].lower()
    if last.isdigit() and len(words) > 1:
        last = words[-2].lower()
    if last in _ABOUT or _NOT_SECRET_KEYS.search(key):
        return ""
    if _JOINED_PASSWORD.search(key):
        return "password"
    for word in (last, words[-1].lower(), key.lower()):
        if word in _EXACT_PASSWORD:
            return "password"
        if _IS_PASSWORD.search(word) and not word.endswith(
            ("compass", "bypass", "trespass", "encompass", "surpass", "pass")
        ):
            return "password"
    if _IS_SECRET.search(last):
        return "secret"
    return "mention" if _MENTIONS.search(key) else ""


def key_words(key: str) -> list[str]:
    """The words a name is made of."""
    return [word for word in _KEY_WORDS.findall(key) if word]


def key_strength(key: str) -> str:
    """What a name promises: `password`, `secret`, `mention`, or nothing."""
    return _strength(key)


def judge_named(value: str, strength: str) -> bool:
    """Whether `value` is plausible as a literal given to a name of this strength."""
    return _judge(value, strength, quoted=True, assigned=True) and not is_code(value)


def _judge(value: str, strength: str, *, quoted: bool, assigned: bool) -> bool:
    """Whether `value` is plausible for a key of this strength. `assigned`: set by `=` rather than described by `:`."""
    rest = without_markers(value)
    if rest != value.strip(" \t.,;:!?)]}>\"'`"):
        # Partly redacted already: the rest counts only if there is a password's worth of it.
        return len(rest) >= 6 and is_password_like(rest)
    if len(value) < 4 or is_placeholder(value) or is_location(value) or _is_beginning(value):
        return False
    if not quoted and is_code(value):
        return False
    if is_scramble(value):
        return True
    if strength == "mention" and " " in value:
        return False
    if strength == "mention":
        return (is_random_value(value) and len(value) >= 16) or (quoted and is_told_value(value))
    if is_random_value(value) and not is_term(value):
        return True
    if " " in value.strip():
        return strength == "password" and quoted and assigned and is_password_like(value) and value.count(" ") <= 3
    if strength == "password":
        if is_technical(value) and not value.isdigit():
            return False
        if value.isdigit():
            return len(value) >= 6
        if is_password_like(value):
            return len(value) >= 5
        # Plain words: only where somebody assigns a literal.
        return quoted and assigned and len(value) >= 6 and not is_term(value)
    if is_term(value) or len(value) < 8:
        return False
    has_digit = any(c.isdigit() for c in value)
    has_letter = any(c.isalpha() for c in value)
    share = word_share(value)
    if has_digit and has_letter:
        if quoted and assigned and len(value) >= 16 and value.isalnum():
            return True
        if quoted and assigned and len(value) >= 10 and any(c in "!@#$%^&*+=~?" for c in value):
            return True
        return share <= (0.75 if quoted and assigned else 0.45) and len(value) >= (8 if quoted or assigned else 12)
    return quoted and assigned and len(value) >= 12 and share <= 0.6


def _is_beginning(value: str) -> bool:
    """`"application:" + key` or `(leave blank)`: a word that more words follow."""
    return (value[-1:] in ":=" and value[:-1].replace(" ", "").isalpha()) or (value[0] == "(" and value[1:].isalpha())


def _extent(data: bytes, start: int) -> int:
    """Where the value ends that begins at `start`."""
    value = _QUOTED.get(data[start - 1 : start], _BARE).match(data, start)
    return value.end() if value else start


def _assignment(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """`KEY = value` in any notation, if key and value are plausible together."""
    key, between = _key_before(data, match_start, start)
    strength = _strength(key)
    if not strength or b"arn:aws" in data[max(0, match_start - 80) : match_start]:
        return None
    quoted = between[-1:] in ("'", '"', "`")
    if not quoted and ("," in between or "(" in between):
        return None
    if "," in between and not any(q in between[: between.index(",")] for q in "\"'`"):
        return None
    start, end = _cut(data, start, end, quoted=quoted)
    value = data[start:end].decode("utf-8", "replace")
    if "," in between and ("(" not in between) and not is_told_value(value):
        return None  # A list of words.
    if strength == "mention" and "(" in between:
        return None
    assigned = "=" in between or "(" in between or "," in between or ">" in between
    if "-" in key and data[max(0, match_start - 48) : start].rsplit(b"\n", 1)[-1].count(b":") == 1:
        begin = data.rfind(key.encode(), 0, start)
        # A header in quotes: what follows is its value.
        assigned = assigned or data[begin - 1 : begin] in (b"'", b'"')
    if strength == "password" and re.fullmatch(r"[\"'][ \t]*:[ \t]*[\"']", between) and len(value) >= 12:
        assigned = True  # A pair in JSON: a literal, and too long to be a word about passwords.
    if between == "=" and data[end : end + 1] in (b";", b"&") and b"(" not in data[start:end]:
        quoted = True  # One of several pairs, in a connection string or a query: values there are literals.
    if key.isupper() and ("=" in between or ":" in between) and "_" in key:
        assigned = True
        # An environment variable: its value is a literal even without quotes.
        quoted = quoted or not is_code(value)
    if start >= end or not _judge(value, strength, quoted=quoted, assigned=assigned):
        return None
    return start, _to_the_blank(data, match_start, start, end)


_OWN_LINE = re.compile(rb"[ \t]*(?:export |set |- )?[\"']?[\w.\-]*\Z")


def _to_the_blank(data: bytes, match_start: int, start: int, end: int) -> int:
    """Where a bare value ends on a line of its own: at a blank, whatever symbols come before it."""
    if data[start - 1 : start] in (b"'", b'"', b"`") or data[end : end + 1] not in (b"<", b">", b"&", b"|", b";"):
        return end
    if b"://" in data[match_start:end] or not _OWN_LINE.match(data, data.rfind(b"\n", 0, match_start) + 1, match_start):
        return end
    more = re.compile(rb"[^\s\"'`]{2,200}").match(data, end)
    return more.end() if more else end


def _flag(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """`--password value`: a blank assigns."""
    key = re.split(rb"[ \t=]", data[match_start:start].lstrip(b"-/ \t"), maxsplit=1)[0].decode("ascii", "replace")
    strength = "" if key.endswith("-stdin") or data[start : start + 5] == b"HTTP/" else _strength(key)
    quoted = data[start - 1 : start] in (b"'", b'"')
    start, end = _cut(data, start, end, quoted=quoted)
    value = data[start:end].decode("utf-8", "replace")
    return (
        (start, end)
        if strength and _judge(value, strength, quoted=True, assigned=True) and not is_code(value)
        else None
    )


def _is_scrambled(text: str) -> bool:
    """Letter cases change back and forth, and there is no word in it."""
    changes = sum(a.islower() != b.islower() for a, b in pairwise(c for c in text if c.isalpha()))
    return len(text) >= 10 and changes >= 4 and word_share(text) <= 0.3


def _told(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """A sentence that tells a secret: `the password for x is ...`, `token: ...`."""
    return _telling(data, match_start, start, end, copula=True)


def _shown(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """A secret right behind its name: `password ...`, `the token ...`."""
    return _telling(data, match_start, start, end, copula=False)


def _telling(data: bytes, match_start: int, start: int, end: int, *, copula: bool) -> Span | None:
    if match_start and (data[match_start - 1] in b"-_." or b"arn:aws" in data[max(0, match_start - 80) : match_start]):
        return None  # The word is part of a name, which the rule for assignments judges whole.
    if _NOT_SECRET_KEYS.search(data[max(0, match_start - 12) : match_start + 3].decode("utf-8", "replace")):
        return None  # A public key, the primary key.
    words = data[match_start:start].decode("utf-8", "replace")
    quoted = words[-1:] in ("'", '"', "`")
    start, end = _cut(data, start, end, quoted=False)
    value = data[start:end].decode("utf-8", "replace")
    if without_markers(value) != value.strip(" \t.,;:!?)]}>\"'`"):
        return None
    if _is_fingerprint(data, match_start, words, value) or _is_beginning(value or "("):
        return None
    bare = words.rstrip("\"'`*(")
    if copula and bare[-1:] not in " \t":
        # Nothing but a sign between them: more than a sentence is needed.
        likely = is_told_value(value) if bare[-1:] == ":" else bare[-1:] == "=" and is_random_value(value)
        if not likely:
            return None
    if "," in words and not (is_random_value(value) and len(value) >= 16):
        return None
    if len(value) < 6 or is_placeholder(value) or is_term(value) or is_location(value) or is_code(value):
        return None
    has_digit = any(c.isdigit() for c in value)
    if re.match(rf"(?i)(?:{_PASSWORD}|pw|login|credentials?|(?:access|auth|pin|recovery|backup) code)", words):
        scrambled = _is_scrambled(value)
        clear = has_digit or scrambled or ((copula or quoted) and "/" not in value)
        told = clear and (scrambled or is_password_like(value)) and not value.isdigit()
        return (start, end) if told else None
    if is_random_value(value):
        return start, end
    mixed = has_digit and any(c.isalpha() for c in value) and word_share(value) <= 0.5
    return (start, end) if copula and mixed and len(value) >= 10 else None


def _is_fingerprint(data: bytes, match_start: int, words: str, value: str) -> bool:
    """What tells a public key apart, not a key."""
    if "fingerprint" in words.lower() or re.fullmatch(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,}", value):
        return True
    before = data[max(0, match_start - 12) : match_start + 8].lower()
    return bool(re.fullmatch(r"(?:0x)?[0-9A-F]{8,40}", value)) and (b"gpg" in before or b"pgp" in before)


_DIGESTS = frozenset({"sha1", "sha256", "sha384", "sha512", "md5", "integrity", "etag", "checksum", "digest"})
# In front of both keys and identifiers.
_SHARED = frozenset({"user", "app", "session", "service", "client"})
_KEYISH = words(
    """
    live test prod production sandbox secret sk pk rk key keys token tok pat api apikey auth access priv private
    oauth bot app admin svc srv service client user personal refresh session sess dev staging stg root master
    deploy ci cli bearer credential cred pwd password webhook wh whsec signing sign
    """
)
_IDENTIFIERS = words(
    """
    chatcmpl resp msg req request run thread file asst call toolu evt event session trace span job task batch
    img image vs step cus pi ch price prod sub inv in txn ba card acct seti cs si pm src order ord usr team org
    proj repo commit build deploy sha sha1 sha256 sha384 sha512 md5 etag hash digest checksum integrity id uid
    uuid ulid ref node pod container docker layer instance i vpc subnet sg ami eni vol snap rtb igw acl lb
    cluster bundle chunk main vendor polyfills runtime app index
    """
)


def _prefixed_token(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """A token by its prefix, unless it is a parameter that marks a visit or a page, or a key meant for everyone."""
    text = data[start:end].decode("utf-8", "replace")
    if _TRACKING.search(data[max(0, start - 80) : start]) or text.startswith(("pk_", "pk-", "pub_")):
        return None
    if text.startswith("Z") and data[start - 1 : start] == b"_":
        return None  # A mangled name.
    if data[max(0, start - 3) : start] in (b"pk_", b"pk-", b"ub_"):
        return None
    return (start, end) if _prefixed(text) else None


def _prefixed(text: str) -> bool:
    """`xyz_live_` and a long random tail. Identifiers look much the same, so without a word such as `live` or `key` in
    front the tail must be long and use both letter cases and digits."""
    parts = re.split(r"[_-]", text)
    front = 1
    while front < len(parts) - 1 and (parts[front].lower() in _KEYISH or is_wordy(parts[front])):
        front += 1
    words = {word.lower() for word in parts[:front]}
    tail = "".join(parts[front:])
    keyish = bool(words & _KEYISH) and not words <= _IDENTIFIERS | _SHARED
    if not looks_random(tail) or word_share(tail) > (0.45 if keyish else 0.3):
        return False
    if is_placeholder(text) or words & _DIGESTS:
        return False
    if max(map(len, parts[front:])) < 8:
        return False  # Many short pieces: a dashed name or a UUID behind a word.
    if keyish:
        return len(tail) >= 20
    mixed = any(c.islower() for c in tail) and any(c.isupper() for c in tail) and any(c.isdigit() for c in tail)
    return len(tail) >= 30 and mixed and not words & _IDENTIFIERS


RULES = (
    Rule(
        "generic-secret",
        rf"(?i:{_WORD}){_REST}{_CLOSE}{_SEPARATOR}{_OPEN}{_VALUE}",
        trigger=rf"{KEY_HINT}[\\\"'`\[\])*0-9]*(?:[ \t]*(?:[:=>|]|->|[?+.!~&]{{1,3}}[:=|]|\?\?)|[ \t]+(?:or\b|(?:string|\[\]byte|String|str|char\*?|text)[ \t]*=)|\([ \t]*[A-Za-z0-9@$*()\\ ]*[\"'`]|[\"'`][\\)\]*\"'`]*[ \t]*,)",
        extent=_extent,
        refine=_assignment,
        generic=True,
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
        ),
    ),
    Rule(
        "flag-secret",
        rf"(?:^|[\s\"'])(?:--?|/)[A-Za-z0-9_\-]{{0,24}}(?i:{_PASSWORD}|secret|token|key|auth|credentials?|pat)[A-Za-z0-9_\-]{{0,16}}[ \t=]{{1,3}}[\"']?([^\s\"'`|&<>;]{{4,256}})",
        trigger=rf"[\-/][A-Za-z0-9_\-]*(?i:{_PASSWORD_HINT}|secret|token|key|auth|cred|pat)[A-Za-z0-9_\-]*[ \t=]+[\"']?[^\s\"'`|&<>;]{{4}}",
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
        ),
    ),
    Rule(
        "told-secret",
        rf"(?i)\b(?:{_TOLD})\b(?:[ \t]+[A-Za-z0-9_.@'/\-]{{1,30}}){{0,6}}?(?:[ \t]*(?:[:=→–]|->|=>)|[ \t]+(?:is|was|are|be|to|as|now|becomes|-))"
        r"(?:[ \t]+(?:now|still|just|currently|set to|changed to|simply))?[ \t]{0,4}[\"'`*(]{0,3}([^\s\"'`,;<>]{6,256})",
        trigger=rf"(?i:{_TOLD_HINT})\b[ \t:=\-]",
        refine=_told,
        generic=True,
        examples=(
            "the password is hunter2-Xy9!",
            "my API key: ⟨w32⟩",
            "the password for staging is ⟨w12⟩.",
            "I changed the wifi password to Blue!Kettle77",
            "the admin password of the old database server is now maple-horse-69",
            "our token is now ⟨h40⟩",
            "their API token, ⟨h40⟩, expires soon",
            "password for master:⟨w9⟩4",
        ),
        near_misses=(
            "the password is incorrect",
            "the token is invalid",
            "the key is to keep well-known things simple",
            "the secret to good coffee is fresh-ground beans",
            "the API key is stored in AWS-Secrets-Manager",
            "the password is 12-characters long",
            "cache-key: build-⟨h20⟩",
            "public key: ⟨b43⟩",
            "Host key fingerprint is ⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩",
            "gpg key ⟨H40⟩ imported",
        ),
    ),
    Rule(
        "shown-secret",
        rf"(?i)\b(?:{_TOLD})\b(?:[ \t:*(]{{1,4}}|,[ ])[\"'`*]{{0,3}}([^\s\"'`,;<>]{{6,256}})",
        trigger=rf"(?i:{_TOLD_HINT})\b[ \t:*(,]+[\"'`*]*[^\s\"'`,;<>]{{6}}",
        refine=_shown,
        generic=True,
        examples=("password hunter2x9", "use the token ⟨w40⟩ to log in", "login with password `⟨w10⟩7`"),
        near_misses=(
            "password authentication failed for user",
            "a password manager",
            "token v2.0 was released",
            "password OAuth2",
        ),
    ),
    Rule(
        "named-value-secret",
        rf"(?i)(?:{_WORD}){_REST}[\"'][ \t]{{0,3}},?[ \t]{{0,3}}[\"']?value[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']([^\"'\n]{{4,256}})",
        trigger=r"(?i)[\"'][ \t]*,?[ \t]*[\"']?value[\"']?[ \t]*[:=]",
        refine=_assignment,
        generic=True,
        examples=('{"name": "DB_PASSWORD", "value": "⟨w14⟩"}', '<add key="ApiSecret" value="⟨w32⟩" />'),
        near_misses=('{"name": "DB_PASSWORD", "value": "${DB_PASSWORD}"}',),
    ),
    Rule(
        "prefixed-token",
        rf"{LEFT}([A-Za-z][A-Za-z0-9]{{0,19}}(?:[_-][A-Za-z0-9]{{1,12}}){{0,3}}?[_-][A-Za-z0-9_\-]{{20,256}})(?:[^A-Za-z0-9_/-]|$)",
        trigger=r"[A-Za-z0-9][_-][A-Za-z0-9_\-]{20}",
        refine=_prefixed_token,
        generic=True,
        apart=True,
        examples=("xyz_live_⟨w32⟩", "acme-key-⟨h32⟩", "acmecorp_⟨w40⟩", "zz_test_⟨w24⟩"),
        near_misses=(
            "chatcmpl-⟨w29⟩",
            "resp_⟨h48⟩",
            "sha256-⟨h64⟩",
            "my-service-accountnameforproduction1",
            "req_⟨w24⟩",
            "main-⟨h20⟩.js",
        ),
    ),
)
