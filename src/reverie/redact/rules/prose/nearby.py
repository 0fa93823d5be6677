"""The catch-all behind the other rules: clearly random text on the same line as a credential word."""

from __future__ import annotations

from reverie.redact.entropy import is_hex, is_uuid, remembered, word_share, words
from reverie.redact.lazy import lazy
from reverie.redact.markers import spans
from reverie.redact.rules.literals import is_for_everyone
from reverie.redact.rules.plausible import is_named_id, is_placeholder, is_technical, without_markers
from reverie.redact.rules.rule import Rule, Span

_AFTER, _BEFORE = 90, 60
_LONGEST_WORD = 20
_CANDIDATE = lazy(rb"[A-Za-z0-9](?:[A-Za-z0-9_+=!@#%^*~-]|/(?=[A-Za-z0-9+/]*[+=])){8,199}")
# Text before a random part that makes it a hash, a path, a member, an address or an escape.
_PART_OF = lazy(
    rb"(?i)(?:[/\\.#&?%$<@+]|[\w)]\[|[?&]\w{1,20}=|\b(?:sha\d*|md5|h1|base64|etag|rev|commit|id|blob|uuid|guid|hash|version)[\"']?"
    rb"[-:,= ]{1,2}[\"'({]?|data-[\w-]*=[\"']|[{,][ ]?[\"']?(?:x|y|n|x5t)[\"']?:[ ]?[\"'])\Z"
)
_MEMBER = lazy(rb"[(\[./:]\w|->|::|=>?[^=]|\(")
_ABOUT = lazy(rb"[a-z]*(?:[-_]?[iI][dD]s?|_?[nN]ame)\b")
_PUBLIC = lazy(rb"(?i)public[ _-]?\Z")
_SMALL_WORDS = words(
    """
    get set add has new old use via the and for all any not max min int str len url uri api app key map row col
    sql xml yml csv pdf png jpg gif svg css dom div img btn nav tab top end out log err msg arg env cfg cmd src dst
    tmp dir bin lib pkg ref idx pos num sum avg mod sub sup pre alt ctx req res doc obj val var func type test user
    name list item data node file path code text size time date is to by of in on at as or if id my no do go up
    aws gcp iam jwt mfa otp sso tls ssl ssh rsa aes sha md hs rs es utf ip db ui io os py js ts go rb kt
    """
)
_PIECES = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@remembered
def _is_random_word(text: str) -> bool:
    """Whether `text` has ten characters or more, both letter cases, digits, and hardly a word in it."""
    lower, upper, digits = (sum(map(kind, text)) for kind in (str.islower, str.isupper, str.isdigit))
    if len(text) < 10 or lower < 2 or upper < 2 or not digits:
        return False
    if text.startswith("AAAA") or is_uuid(text) or is_hex(text) or is_named_id(text) or word_share(text) > 0.3:
        return False
    if is_placeholder(text) or is_technical(text):
        return False
    small = sum(len(piece) for piece in _PIECES.findall(text) if piece.lower() in _SMALL_WORDS and len(piece) > 2)
    return small * 4 <= len(text) and text.count("-") + text.count("_") <= 2


def _nearby(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """Find a clearly random word with a credential word before or after it on the same line."""
    start += data[start:end].rstrip(b"=").rfind(b"=") + 1
    for found in _CANDIDATE.finditer(data, start, end):
        kept = found.group().rstrip(b"=!~_-") if data[end : end + 1].strip(b"\r\n") else found.group()
        span = _random_word(data, found.start(), found.start() + len(kept))
        if span is not None and _is_near_credential(data, *span):
            return span
    return None


def _is_near_credential(data: bytes, start: int, end: int) -> bool:
    """Whether a credential word is within reach that is not part of the name of something else."""
    reach = max(0, start - _AFTER - _LONGEST_WORD)
    begin = data.rfind(b"\n", reach, start) + 1 or reach
    limit = min(len(data), start + _BEFORE + _LONGEST_WORD)
    stop = data.find(b"\n", end, limit)
    for ((first, last),) in spans(f"(?i){_CONTEXT}".encode()).each(data, begin, limit if stop < 0 else stop):
        near = start - _AFTER < last <= start or end <= first <= start + _BEFORE
        if near and not _is_about(data, first, last):
            return True
    return False


def _is_about(data: bytes, first: int, last: int) -> bool:
    """Whether the credential word is part of the name of something else, or of a marker."""
    if _ABOUT.match(data, last) or _PUBLIC.search(data, max(0, first - 8), first):
        return True
    marker = data.rfind(b"[REDACTED:", max(0, first - 74), first)
    return marker >= 0 and data.find(b"]", marker, first) < 0


def _random_word(data: bytes, start: int, stop: int) -> Span | None:
    """Return the span of the word if it is random and nothing around it explains that."""
    if data[start - 1 : start].isalnum() or data[start - 1 : start] in (b"_", b"-"):
        return None
    text = data[start:stop].decode("ascii")
    if not _is_random_word(text) or without_markers(text) != text.strip("!="):
        return None
    if _PART_OF.search(data, max(0, start - 24), start) or _MEMBER.match(data, stop):
        return None
    return None if is_for_everyone(data, start) else (start, stop)


_CONTEXT = (
    r"passw(?:or)?d|passwort|passphrase|passcode|pwd|\bpw\b|mot de passe|contraseña|senha|пароль|credential|\bcreds?\b|"
    r"secret|api[ _-]?key|apikey|token|\bpsk\b|access[ _-]?key|private[ _-]?key|\blog(?:in|on)\b|"
    r"\bwi-?fi\b|\bssid\b|\bssh\b|\bbearer\b|auth_|[_-]auth\b"
)
# Digits between letters, or alternating letter cases: rare in words, and nearly always present in random text.
_IN = r"[A-Za-z0-9_+=!@#%^*~/\-]"
_MIXED = r"(?:[A-Za-z][0-9]{1,3}[A-Za-z]|[a-z][A-Z]{1,3}[a-z0-9]{1,3}[A-Z])"

RULES = (
    Rule(
        "nearby-secret",
        rf"(?:(?m:^)|[^A-Za-z0-9_+=!@#%^*~/\-])({_IN}*?(?:[A-Z]{_IN}*?[0-9]|[0-9]{_IN}*?[A-Z]){_IN}*)",
        trigger=rf"(?i:{_CONTEXT})[^\n]*{_MIXED}|{_MIXED}[^\n]*(?i:{_CONTEXT})",
        refine=_nearby,
        generic=True,
        apart=True,
        examples=(
            "its ⟨l4⟩7⟨l4⟩42⟨l3⟩Bq (the root password i mean)",
            'child.sendline("Qz⟨l4⟩7⟨l4⟩42⟨l3⟩x")  # password',
            'credentials += Credentials("Nexus", "nexus.example.org", "ci", "Qz⟨l4⟩7⟨l4⟩42⟨l3⟩x")',
            "WiFi: Attic / Qz⟨l4⟩7⟨l4⟩42⟨l3⟩x",
        ),
        near_misses=(
            "the token fix is in commit ⟨h40⟩",
            "token sha256-⟨b43⟩=",
            "def get_token_by_user_v2(userId2Name):",
            "Accepted publickey for login: ED25519 SHA256:⟨w43⟩",
            "class OAuth2PasswordBearerWithCookie(OAuth2):",
            "see https://example.org/d/⟨w40⟩ for the password policy",
            "api_key: ENC[AES256_GCM,data:⟨b24⟩,iv:⟨b43⟩=,tag:⟨b22⟩==,type:str]",
            "db_password: ENC[PKCS7,⟨b64⟩]",
            'token_keys {"keys": [{"kty": "RSA", "n": "⟨u43⟩-⟨u43⟩", "e": "AQAB"}]}',
        ),
    ),
)
