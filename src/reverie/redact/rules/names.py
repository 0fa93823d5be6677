"""Names with a credential word in them: the words, and the kind of value that a name implies."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

from reverie.redact.entropy import remembered, words
from reverie.redact.lazy import lazy
from reverie.redact.rules.compiled import compiled

PASSWORD = "|".join(compiled().words("name"))
_KEYED = (
    r"api|access|secret|private|auth|authorization|signing|sign|encryption|encrypt|decryption|master|subscription|account|"
    r"storage|service|licen[sc]e|deploy|app|application|consumer|client|(?:pre-?)?shared|webhook|integration|write|read|admin|server|"
    r"functions?|hmac|jwt|session|cookie|ssh|gpg|pgp|aes|rsa|crypto|root|bot|project|db|database|host|personal|instrumentation|"
    r"ingest|merchant|security|vendor|platform|org|developer|dev|prod|live|sandbox|production|rest|sdk|maps|push|feed|bearer"
)
_SECRET = (
    rf"secret|token|credentials?|creds?|(?:{_KEYED})[ _.\-]?keys?|apikey|secretkey|accesskey|auth|bearer|sessionid|session[_.-]?id|"
    r"phpsessid|jsessionid|connect\.sid|csrf|xsrf|otp|nonce_secret|salt|pepper|signature|seed|connection[_-]?string|dsn|"
    r"webhook[_-]?url|cert(?:ificate)?[_-]?password|[A-Za-z0-9][_-]KEY|[A-Za-z0-9]_PAT|(?-i:[a-z]Pat\b)|[a-z]Key"
)
KEY_WORD = rf"(?:{PASSWORD}|\bpw\b|\bpsk\b|[_-]psk\b|\bpsw\b|_psw\b|[_-]pw\b|(?-i:[A-Za-z]P[Ww]\b)|{_SECRET})"
KEY_REST = r"[A-Za-z0-9_.\-]{0,24}"
# In sentences the bare word `pass` is nearly always something else.
TOLD_HINT = rf"{PASSWORD.replace(')?s?|', ')s?|', 1)}|pw|psk|pat|key(?: base)?|secret|token|credentials?|login|(?:access|auth|pin|recovery|backup) codes?"
TOLD = rf"{TOLD_HINT}|(?:{_KEYED})[ _-]?key"
# For triggers: a name with a credential word, in as few letters as identify it. Many rules look for such names, and the
# cost of a new state of an automaton grows with the number of words in it.
PASSWORD_HINT = "|".join(["(?:mot[ _]de[ _])?pass", "asword", *compiled().words("name")[2:]])
KEY_HINT = (
    rf"(?i:{PASSWORD_HINT}|pw|psk|psw|secret|token|cred|key|auth|bearer|session[_.\-]?id|sessid|connect\.sid|csrf|xsrf|otp|"
    r"salt|pepper|signature|seed|connection[_\-]?string|dsn|webhook[_\-]?url|_pat|(?-i:Pat))[A-Za-z0-9_.\-]*"
)

_KEY_WORDS = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_IS_PASSWORD = lazy(rf"(?i)(?:{PASSWORD})\d*$")
_EXACT_PASSWORD = frozenset({"pass", "pw", "pwd", "psw", "mdp", "clave", "passw", "psk"})
_JOINED_PASSWORD = lazy(
    r"(?i)(?:ssh|db|user|admin|root|my|smtp|mail|email|ftp|key|store|wifi|http|ldap|bind|proxy|sql|pg|require|login|master)pass$"
    r"|security[._]credentials$|bindpw$"
    r"|pass[ _.-](?:phrase|word|code)$"
)
# A credential word followed by other words: `my_password_secure`, `SECRET_KEY_BASE`.
_MENTIONS = lazy(r"(?i)passw|pwd|passphrase|secret|token(?!i[sz])|api[_.-]?key|private[_.-]?key")
_IS_SECRET = lazy(
    r"(?i)(?:secrets?|tokens?|credentials?|creds?|apikeys?|keys?|auth|bearer|session|sessionid|sid|phpsessid|jsessionid|csrf|xsrf|"
    r"otp|salt|pepper|signature|seed|string|dsn|url|pat|authorization|authentication|value|prod|dev|test|staging|live|main|primary|secondary|"
    r"default|v?\d+|base64|b64|hex|raw|plain|text|data|env|encoded)$"
)
# Words after a credential word that make the name something else: `token_type`, `password_policy`, `secret_name`.
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
    factory handler service helper provider_name map table column columns row owner region zone host hostname port
    header headers issuer audience backend mount vault namespace cluster account engine driver bucket domain realm
    role roles alias group selector xpath locator
    """
)
NOT_SECRET_KEYS = lazy(
    r"(?i)(?:jsonwebtoken|\buser\.signingkey|public[ _.\-]?(?:key[ _.\-]?)?tokens?)$|(?:public|cache|primary|foreign|schema|bucket|natural|sequence|idx|partition|sort|idempotency|object|s3|dedup|dedupe|lookup|unique|composite|row|"
    r"group|map|dict|hash|json|i18n|translation|locale|config|column|range|routing|shard|storage_object|message|event|"
    r"state|query|react|list|item|data|field|tag|label|meta|pub|site|hot|shortcut|arrow|storagekey|local|registry|host|user|rest|read)"
    r"[ _.\-]?keys?$"
)
# Names of values that may be random but are no secrets.
UNTOLD = words("id ids hash sha commit version event trace session span url dsn request checksum digest name public")


# A search by these patterns takes a microsecond per three characters.
_LONGEST_NAME = 96
NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"


def name_start(data: bytes, position: int) -> int:
    """Return the start of the name that contains `position`, at most 48 bytes before it."""
    head = data[max(0, position - 48) : position]
    return position - len(head) + len(head.rstrip(NAME_BYTES))


def key_words(key: str) -> list[str]:
    """Return the words of a name."""
    return [word for word in _KEY_WORDS.findall(key) if word]


def key_strength(key: str) -> str:
    """Classify a name: `password`, `secret`, `mention`, or empty when it is only about a secret. Its end decides."""
    return _strength(key[-_LONGEST_NAME:])


@remembered
def _strength(key: str) -> str:
    words = key_words(key)
    if not words:
        return ""
    last = words[-1].lower()
    if last.isdigit() and len(words) > 1:
        last = words[-2].lower()
    if last in _ABOUT or NOT_SECRET_KEYS.search(key):
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
