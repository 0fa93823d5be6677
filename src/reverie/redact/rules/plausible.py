"""Tests of a value next to a credential word: secret, placeholder, code or prose."""

from __future__ import annotations

import re

from reverie.redact.entropy import is_hex, is_uuid, is_wordy, looks_random, remembered, word_share, words
from reverie.redact.lazy import lazy
from reverie.redact.rules.names import PASSWORD

_MARKER = lazy(r"\[REDACTED:[A-Za-z0-9_.-]{1,64}\]")

# Words used as placeholders for a secret, or as descriptions of one.
_PLACEHOLDER_WORDS = words(
    """
    a an the your my our their his her its user users me mine some any this that here there new old current
    existing password passwd passwords pass passphrase pwd secret secrets token tokens key keys apikey api
    access auth private public client value values string str text bytes int integer number boolean bool object
    array list dict map any optional required none null nil undefined true false yes no on off empty blank
    default unset unknown missing invalid valid incorrect wrong correct expired revoked hidden masked redacted
    removed omitted encrypted hashed protected example examples sample demo dummy fake mock test testing
    placeholder todo tbd fixme change changeme changeit replace replaceme insert enter put goes go set foo bar
    baz qux xxx xxxx xxxxx yyy zzz abc abcd abcdef letmein admin root guest postgres mysql redis hunter is are
    was were be been must should will can may not of for to from in at by with and or id name username login
    email credential credentials bearer basic session cookie header headers env environment variable var vault
    config settings file path url uri input output field type prompt reset forgot forgotten confirm confirmation
    repeat again strength length policy manager please and-or somepassword mypassword yourpassword yourtoken
    yourkey yourapikey mytoken mysecret myapikey supersecret topsecret secretkey accesskey passw0rd p@ssw0rd
    p4ssword pa55word real option options flag flags argument arguments parameter parameters
    """
) - {"supersecret", "topsecret", "passw0rd", "p@ssw0rd", "p4ssword", "pa55word", "letmein", "hunter"}  # fmt: skip
_REFERENCE = lazy(
    r"""^(?:
        <|\{\{(?!\w\})|\{%|\$[{(]|'?\$\$?[A-Za-z_][A-Za-z_0-9]*'?$|%[A-Za-z_]+%?$|%\(|\#\{|@[/{]|@@?[A-Z_]{3,}@@?$|%%[A-Z_]{3,}%%$|(?-i:__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_{0,2}$)|@Microsoft\.|\[[A-Z]|\[{2}|\*{2}|(?-i:\*[a-z_]+$)|![a-z]+(?:[-_:][a-z]+)*$|!!|--?[a-z][a-z-]*$
        |\([a-z0-9, ]*\)(?:,|->)|\\?u003c|&lt;|/\^|\^\[|pk_(?:live|test)_
        |[#.][a-z][\w-]*(?:pass|pwd|token|secret|key)[\w-]*$|//[a-z*]+\[|[a-z]+\[[a-z-]+=  # an element of a page
        |(?:process\.env|os\.(?:environ|getenv)|getenv|env[.\[(:]|ENV\b|System\.|config[.\[(]|cfg\.|settings\.|secrets?\.|
           var\.|local\.|data\.|module\.|self\.|this\.|args?\.|opts?\.|options\.|params?\.|props\.|state\.|ctx\.|req(?:uest)?\.|
           resp(?:onse)?\.|res\.|user\.|input\.|vault[:.]|(?:aws-?)?ssm:|secret(?:smanager|ref):|key-?vault:|\{cipher\}|arn:|op://|file:|projects/|keyring|await\b|new\b|async\b|lambda\b|
           func(?:tion)?\b|return\b|import\b|const\b|typeof\b|ENC\[|sops|kms:|sha(?:1|224|256|384|512)[:-]|md5:)
    )""",
    re.X | re.I,
)
_FILLER = lazy(
    r"(?-i:(.)\1{4,})|\.\.\.|…|x{4,}|\*{3,}|•{2,}|12345678(?:90?)?$|^0+$|abcdefgh|<[^>]+>|"
    r"\$\{[a-z_]\w*(?:[}:?+/.!\[-]|$)|\{\{-?\s*[\w.$]+[^{}]*(?:\}\}|$)|(?-i:%[A-Z_]{3,}%)|\[(?:a-z|0-9|\^)|(?-i:a-zA-Z)|\\[sSdw](?:[*+{]|\\)",
    re.I,
)
_WORDS = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_CALL = lazy(r"^[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*[(\[{]")
_DOTTED = lazy(r"^[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+;?$")
_TERM = lazy(
    r"""^(?:
        \d+-[a-z]+|v?\d+(?:[.,:/-]\d+)*(?:[a-z%]{0,3}|-?(?:alpha|beta|rc|dev|pre)[.-]?\d*)  # versions, dates, sizes
        |(?:oauth|sha|md|base|utf|argon|pbkdf|bcrypt|scrypt|rfc|http|ipv|web|aes|rsa|hmac|hs|rs|es|ps|ed|pkcs|tls|ssl|ssh|
          gpt|claude|llama|cl|ec|utf|iso|cve|node|python|py|java|php|es|ecma|win|level|step|part|phase|
          version|section|chapter|table|figure|issue|pr|gh|jira|task|item|option|type|mode|tier|stage|day|week|month|fy|
          page|line|col|row)[-_.]?\d[\w.+-]{0,7}
        |[a-z]\d{0,4}[-_.]?\d{1,4}(?:[-_.]\w{1,5})?[a-z]{0,2}
        |\d{1,4}(?:st|nd|rd|th|x|k|m|g|s|ms|kb|mb|gb|px|am|pm|h|d)
        |\d[a-z]{1,3}|[a-z]+/[a-z0-9]+|[a-z]+\d?(?:/[a-z]+\d?)+
        |\d{4}-\d\d-\d\d[t_]\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)?(?:z|[+-]\d\d:?\d\d)?  # a moment
        |[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.(?-i:[a-z]{2,24}|[A-Z]{2,24})              # a mail address
        |(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:/\d+)?               # an address on a network
        |(?:[\w-]+\.){1,5}(?:py|js|ts|go|rs|rb|java|php|md|txt|json|ya?ml|toml|ini|cfg|conf|env|pem|key|crt|html?|css|sh|sql|xml|com|org|net|io|dev)
    )$""",
    re.X | re.I,
)

# Names with a number. They may be a server or a password: only in a sentence are they terms.
_NUMBERED = lazy(r"(?i)(?:user|admin|test|server|host|db|node|worker|prod|dev|app)[-_.]?\d[\w.+-]{0,7}$")
# Members of modules whose names end in digits, against `maple.winter77`.
_NUMBERED_MEMBER = lazy(r"(?i)(?:sha|base|utf|u?int|float|complex|md|aes|hs|rs|es|ps|oauth|ed|http|ipv|[a-z])[-_]?\d+$")
# `Walnut47.Tundra2`: capitalised words with numbers, unlike nearly every member.
_CAPITALISED = lazy(r"[A-Z][a-z]{2,}\d*(?:\.[A-Z][a-z]{2,}\d*)*\.[A-Z][a-z]{2,}\d+$")
_INNER_NUMBER = lazy(r"[A-Za-z]{3}\d{2,6}\.")
_MEMBER_WORD = lazy(r"(?i)pass|secret|token|cred|config|setting|auth|key\b|value|field|column|props?\b|env")
# `your-token-here` in one of its spellings.
_YOURS = lazy(
    r"(?i)your[_-]?[a-z_-]{0,30}(?:token|key|secret|pass|here)|(?:token|key|secret|value)[_-]?(?:goes[_-]?)?here|"
    r"replace[_-]?(?:me|this|with)|paste[_-]?(?:me|your|here)|"
    r"(?:insert|enter|put|add|paste|fill[_-]in)[_-](?:[a-z]{1,16}[_-]){0,6}here"
)
# A reference to a stored secret: `keyvault://team/db-password`.
_KEPT = lazy(r"[a-z][a-z0-9+.-]{1,20}:///?[a-z0-9_.-]+(?:[/#?:=&]+[\w.-]+)*/?$", re.I)
# The word for a password as the label of a form, in one language or another.
_LABEL = lazy(
    rf"(?i)(?:[^\W\d_]+[ '’]){{0,4}}?(?:{PASSWORD}|palavra-passe|palabra clave|adgangskode|passord|heslo|jelszó|şifre|"
    r"mật khẩu|kata sandi|лозинка|κωδικός|סיסמה|पासवर्ड|รหัสผ่าน|كلمة المرور)(?:[ '’][^\W\d_]+){0,4}[ ]?[:*?.…]{0,3}$"
)
# Certificates and public keys in base64.
_PUBLIC = ("LS0tLS1CRUdJTiBDRVJU", "LS0tLS1CRUdJTiBQVUJM", "MIIBIjANBgkqhkiG9w0BAQEFAAOC")
_SLOT = lazy(r"\{[A-Za-z_][\w.]+(?:\[[^\]{}]*\]|\([^(){}]*\))?(?:![rsa])?(?::[^{}]*)?\}|%\(\w+\)s|%s")
_NESTS = {")": "(", "]": "[", "}": "{"}


@remembered
def without_markers(text: str) -> str:
    """Remove canonical markers and the punctuation around them: the rest may still be a secret."""
    return _MARKER.sub("", text).strip(" \t.,;:!?)]}>\"'`")


@remembered
def is_placeholder(text: str) -> bool:
    """Whether `text` is a reference to a secret, a blank to be filled in, a description of the value, or public."""
    if text.startswith((*_PUBLIC, "@Microsoft.")):
        return True
    if _REFERENCE.match(text) or _FILLER.search(text):
        return not is_scramble(text)
    if _is_yours(text) or _is_reference(text) or _LABEL.match(text):
        return True
    if "{" in text or "%" in text:
        text = _SLOT.sub("", text)
    words = (found.group().lower() for found in _WORDS.finditer(text))
    return all(word in _PLACEHOLDER_WORDS or (word.isdigit() and len(word) < 3) for word in words)


def _is_yours(text: str) -> bool:
    low = text.lower()
    return ("your" in low or "here" in low or "replace" in low or "paste" in low) and bool(_YOURS.search(text))


def _is_reference(text: str) -> bool:
    """Whether `text` is an address with a scheme, without a login or a random part: a reference to a secret, not the
    secret.
    """
    if "://" not in text or not _KEPT.match(text):
        return False
    pieces = re.split(r"[/#?:=&]+", text)[1:]
    return not any(is_random_value(piece) and not is_uuid(piece) for piece in pieces)


def is_blank(text: str) -> bool:
    """Whether a token's prefix is followed by crosses, stars or words: `ghp_xxxxxxxx`, `xoxb-your-token`."""
    if _is_yours(text):
        return True
    rest = re.sub(r"[xX*•]", "", text)
    return len(text) - len(rest) >= 8 and len(rest) <= 16


# Blanks, and parts of a regular expression.
_WRITTEN = lazy(r" |\(\?|\[A-Z|\[a-z|a-zA-Z|\\[dsSw]")


@remembered
def is_scramble(text: str) -> bool:
    """Whether `text` is random as a whole: symbols of many kinds that do not nest, or hex digits with repeats."""
    if _WRITTEN.search(text):
        return False
    if len(text) >= 40 and text.isalnum():
        return looks_random(text) and len(set(text)) >= 12
    kinds = {c for c in text if not c.isalnum() and c.isascii()}
    if len(text) < 16 or len(kinds) < 6:
        return False
    mixed = any(c.isdigit() for c in text) and any(c.islower() for c in text) and any(c.isupper() for c in text)
    return (len(text) >= 32 and mixed) or not _nests(text)


def _nests(text: str) -> bool:
    """Whether every bracket is closed by its counterpart."""
    depth: list[str] = []
    for c in text:
        if c in "([{":
            depth.append(c)
        elif c in ")]}" and (not depth or depth.pop() != _NESTS[c]):
            return False
    return not depth


@remembered
def is_code(text: str) -> bool:
    """Whether an unquoted value is an expression, not a literal."""
    if _CALL.match(text):
        return not is_scramble(text)
    if not _DOTTED.match(text) or word_share(text) <= 0.5:
        return False
    if _MEMBER_WORD.search(text) or "->" in text or "::" in text:
        return True
    last = text.rsplit(".", 1)[-1]
    numbered = re.search(r"[A-Za-z]{3}\d{2,6}$", last) and not _NUMBERED_MEMBER.match(last)
    return not (numbered or _CAPITALISED.match(text) or _INNER_NUMBER.search(text))


@remembered
def is_location(text: str) -> bool:
    """Whether `text` is a path or an address."""
    if re.match(r"(?:https?|s3|gs|file|wss?|ftp)://|\.{0,2}/[\w.-]+/|~/|[A-Za-z]:\\|\.{1,2}/", text, re.I):
        return not (len(text) >= 30 and "." not in text and _is_base64(text) and looks_random(text))
    return False


def _is_base64(text: str) -> bool:
    """Whether `text` has no more slashes than random base64, or signs that no path has."""
    return text.count("/") <= 3 or (len(text) >= 40 and ("+" in text or text.endswith("=")))


@remembered
def is_technical(text: str) -> bool:
    """Whether `text` is a version, date, size, address or technical word with a number: `oauth2`, `3.11.4`, `10MB`."""
    if not _TERM.match(text):
        return False
    if "/" in text:
        last = text.rsplit("/", 1)[-1]
        return not (_is_mixed(last) or (len(text) >= 20 and looks_random(text)))
    return True


def _is_mixed(text: str) -> bool:
    """Whether `text` has six characters or more, with both letter cases and a digit."""
    kinds = any(c.islower() for c in text) and any(c.isupper() for c in text) and any(c.isdigit() for c in text)
    return kinds and len(text) >= 6


# A line of a file, a field of a log, an account on a blockchain, a part of a regular expression.
_SITE = lazy(
    r"(?i)[\w/-]+\.[a-z]{1,5}:\d+(?::\d+)?$|(?:ip|addr|host|from|port|user|method|status|src|dst)=[\w.:@/-]+$|"
    r"0x[0-9a-f]{40}$|(?-i:\\[sSdDwW][*+{])"
)


_LONGEST_TERM = 24
_ON_CHAIN = 42


@remembered
def is_term(text: str) -> bool:
    """Whether `text` is technical, a name with a number (`server12`), or a place in a file, a log or a blockchain."""
    if len(text) > _LONGEST_TERM and text.isalnum() and len(text) != _ON_CHAIN and not text[1:-3].isdigit():
        return False  # Longer terms have signs in them.
    return is_technical(text) or bool(_NUMBERED.match(text)) or bool(_SITE.match(text))


_NAMED_ID = lazy(
    r"((?:[A-Za-z]{1,20}[0-9]{0,4}[-_.]){1,8})"
    r"(?:([0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})|[0-9a-f]{8,128}|[0-9A-F]{8,128})"
)
_SAMPLE_NAMES = frozenset({"acme", "contoso", "globex", "initech", "umbrella", "hooli"})


@remembered
def is_named_id(text: str) -> bool:
    """Whether `text` is words joined by `-`, `_` or `.` in front of a UUID or a hex digest: `order-key-<uuid>`.

    Such a name identifies something, whatever its words are. It is a secret only in a place for secrets (the value of
    `api_key=`) or with a prefix that a provider has published. In front of a digest, each part must be a word or an
    abbreviation: unknown services write their keys as `qxwv-secret-<hex>`.
    """
    found = _NAMED_ID.fullmatch(text)
    if found is None or found.group(2):
        return found is not None
    names = re.split(r"[0-9]*[-_.]", found.group(1))[:-1]
    return all(len(n) <= 3 or n.isupper() or n.lower() in _SAMPLE_NAMES or is_wordy(n) for n in names)


def is_joined(data: bytes, start: int) -> bool:
    """Whether the name at `start` continues a word in front of it: `order-` before `key-<hex>`."""
    return start > 1 and data[start - 1] in b"-_." and data[start - 2 : start - 1].isalnum()


@remembered
def is_random_value(text: str) -> bool:
    """Whether `text` is machine-made: hex, a UUID, or a mix of kinds without words."""
    if is_uuid(text):
        return True
    if is_hex(text):
        return len(text) >= 16 and looks_random(text)
    if len(text) >= 12 and looks_random(text):
        return True
    # Letters only: rare in base62 beyond twenty characters, but not excluded.
    return len(text) >= 20 and text.isalnum() and text.isascii() and word_share(text) < 0.3


# Nearly all values are ASCII; there a search is several times as fast as a loop over the characters.
_LETTER = lazy(r"[A-Za-z]")
_DIGIT = lazy(r"[0-9]")
_SYMBOL = lazy(r"[^A-Za-z0-9\-_.'/,:;?]")


@remembered
def is_password_like(text: str) -> bool:
    """Whether `text` reads like a password that a person chose: kinds of characters mixed within one word."""
    if text.isascii():
        letters, digits = bool(_LETTER.search(text)), bool(_DIGIT.search(text))
        symbols = bool(_SYMBOL.search(text))
    else:
        letters, digits = any(map(str.isalpha, text)), any(map(str.isdigit, text))
        symbols = any(not c.isalnum() and c not in "-_.'’/,:;?" for c in text)
    if not letters:
        return digits and symbols and len(text) >= 6
    if digits or symbols:
        return True
    inner_upper = text[1:].lower() != text[1:] and text.upper() != text
    return inner_upper and not is_wordy(text) and "-" not in text and "." not in text


@remembered
def is_told_value(text: str) -> bool:
    """Whether `text` is certainly a value, regardless of context: random, or letters and digits that form no term."""
    if len(text) < 6 or is_placeholder(text) or is_location(text) or is_term(text) or is_code(text):
        return False
    if is_random_value(text):
        return True
    has_digit, has_letter = any(c.isdigit() for c in text), any(c.isalpha() for c in text)
    return has_digit and has_letter and len(text) >= 8
