"""Second factors, wallets and keys written as codes, groups or numbers."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import is_wordy, looks_random
from reverie.redact.markers import Lazy
from reverie.redact.patterns.plausible import is_placeholder, is_random_value
from reverie.redact.patterns.rule import Rule, Span

_FACTOR = r"(?i:\b(?:2fa|mfa|totp|otp|two-factor|authenticator|one-time))"


def _seed(text: str) -> bool:
    """Base32 that is no word: groups or one run, with a digit in it or long."""
    plain = text.replace(" ", "").replace("-", "")
    if is_placeholder(plain) or not (plain.isupper() or plain.islower()):
        return False
    pieces = [piece for piece in re.split(r"[ -]", text) if piece]
    wordy = sum(is_wordy(piece) for piece in pieces)
    digits = sum(c.isdigit() for c in plain)
    return len(plain) >= 16 and wordy * 2 <= len(pieces) and (digits >= 1 or len(plain) >= 24) and not plain.isdigit()


_CODES_WORD = Lazy(
    rb"(?i)\b(?:backup|recovery|scratch|emergency|2fa|mfa|one-time|rescue)[ -](?:2fa |mfa |login |access )?codes?\b"
)
_CODE = Lazy(
    rb"(?:[\s,;|:=*()\[\]\"'`.-]|\b(?:is|are|was|and|und)\b|\b[0-9]{1,2}[.)])*"
    rb"\b([A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8}){1,5}|[0-9]{4} [0-9]{4}|[0-9]{6,10}|[a-z0-9]{8,16}|[A-Z0-9]{8,16})\b"
)
_MOST_CODES = 40


def _codes(data: bytes) -> Iterator[Span]:
    """Each code of a list behind the words `backup codes`, on the same line or below."""
    for words in _CODES_WORD.finditer(data):
        position = words.end()
        for _ in range(_MOST_CODES):
            code = _CODE.match(data, position, min(len(data), position + 80))
            if code is None or not any(0x30 <= c <= 0x39 for c in code.group(1)):
                break
            yield code.span(1)
            position = code.end()


def _numbers(text: str) -> bool:
    """The bytes of a key: 32 or 64 different numbers below 256."""
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    return len(numbers) in (32, 64) and max(numbers) < 256 and len(set(numbers)) > 20


RULES = (
    Rule(
        "otp-seed",
        rf"{_FACTOR}[^\n]{{0,60}}?(?:[ :=\"'`(])((?:[A-Z2-7]{{4}}[ \-]){{3,15}}[A-Z2-7]{{2,4}}|(?:[a-z2-7]{{4}}[ \-]){{3,15}}[a-z2-7]{{2,4}}|[A-Z2-7]{{16,64}})\b"
        rf"|\b([A-Z2-7]{{16,64}}|(?:[A-Z2-7]{{4}}[ ]){{3,15}}[A-Z2-7]{{4}})\b[^\n]{{0,40}}{_FACTOR}",
        trigger=_FACTOR,
        check=_seed,
        examples=(
            "mfa secret key: ⟨k4⟩ ⟨k4⟩ ⟨k4⟩ 2⟨k3⟩ ⟨k4⟩ ⟨k4⟩ ⟨k4⟩ ⟨k4⟩",
            "scan or type ⟨k15⟩2 in the authenticator app",
            "2FA setup key ⟨k31⟩4",
        ),
        near_misses=(
            "the TOTP is shown by your authenticator",
            "MFA is required for ADMINISTRATORS",
            "two-factor login with some very long word here",
        ),
    ),
    Rule(
        "backup-codes",
        r"(?i:codes?\b)",
        trigger=r"(?i)\b(?:backup|recovery|scratch|emergency|2fa|mfa|one-time|rescue)[ -](?:2fa |mfa |login |access )?codes?\b",
        locate=_codes,
        examples=(
            "backup codes: ⟨d4⟩-⟨d4⟩ ⟨d4⟩-⟨d4⟩ ⟨d4⟩-⟨d4⟩",
            "Recovery codes:\n1. ⟨a4⟩1-⟨a5⟩\n2. ⟨a4⟩2-⟨a5⟩\n",
            "recovery code ⟨a4⟩1-⟨a5⟩",
        ),
        near_misses=("the backup codes are in the safe", "Recovery codes can be made again in settings"),
    ),
    Rule(
        "key-bytes",
        r"(?i:keypair|secret|private|wallet|seed|id\.json|\bkey\b)[^\n]{0,40}?(\[[ ]{0,2}(?:[0-9]{1,3},[ ]{0,2}){31,63}[0-9]{1,3}[ ]{0,2}\])",
        trigger=r"\[[ ]*(?:[0-9]{1,3},[ ]*){8}",
        check=_numbers,
        examples=(
            "solana keypair [1,22,33,44,55,66,77,88,99,110,121,132,143,154,165,176,187,198,209,220,231,242,253,3,14,25,36,47,58,69,80,91]",
        ),
        near_misses=("key sizes [1,2,3,4,5,6,7,8,9,10]",),
    ),
    Rule(
        "wallet-key",
        r"(?i:\b(?:accounts|wallet|signer|deployer|private|secret)\b)[^\n]{0,40}?[\"'`\[( ](?:0x)?([0-9a-f]{64})\b",
        trigger=r"[\"'`\[( x][0-9a-f]{16}",
        check=looks_random,
        generic=True,
        examples=('accounts: ["0x⟨h64⟩"]', 'new ethers.Wallet("0x⟨h64⟩", provider)'),
        near_misses=("accounts: [deployer.address]", "tx 0x⟨h64⟩ confirmed", "wallet 0x⟨h40⟩"),
    ),
    Rule(
        "app-password",
        r"(?i:\bapp(?:lication)?(?:[ -]specific)?[ -]passw(?:or)?d)\b[^\n]{0,30}?[ :=\"'`(]((?:[a-z]{4}[ \-]){3}[a-z]{4})\b",
        check=lambda text: sum(map(is_wordy, re.split(r"[ -]", text))) <= 1,
        examples=("app-specific password: xqzj-kvwp-zzqk-hjxw", "gmail app password is qzxj kvwp zzqk hjxw"),
        near_misses=("the app password must have four long words here",),
    ),
    Rule(
        "spoken-passphrase",
        r"(?i:\bpassphrase\b)[^\n\"'`]{0,60}?(?:[ ](?:is|was)|[:=])[ ]?[\"'`“]([a-z]{3,12}(?:[ \-][a-z]{3,12}){2,8})[\"'`”]",
        trigger=r"(?i:\bpassphrase\b)",
        check=lambda text: not is_placeholder(text),
        examples=('The passphrase for the backup disk is "harbor river copper jungle"',),
        near_misses=('the passphrase is "your passphrase here"',),
    ),
    Rule(
        "minisign-key",
        r"\b(RW[A-Za-z0-9+/]{1,2}TY0Iy[A-Za-z0-9+/=]{80,})",
        trigger=r"\bRW[A-Za-z0-9+/]{1,2}TY0Iy",
        examples=("untrusted comment: minisign encrypted secret key\nRWRTY0Iy⟨b200⟩",),
    ),
    Rule(
        "robot-account",
        r"\b[a-z0-9][a-z0-9._\-]{1,60}[+$][a-z0-9._\-]{2,60}:([A-Z0-9]{32,80})\b",
        trigger=r"[a-z0-9._\-][+$][a-z0-9._\-]+:[A-Z0-9]{8}",
        check=is_random_value,
        examples=("acme+builder:⟨A64⟩",),
        near_misses=("acme+builder:LATEST",),
    ),
    Rule(
        "directory-hash",
        r"(\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT|PBKDF2[A-Z0-9\-]{0,10}|ARGON2|BCRYPT)\}[A-Za-z0-9+/=$.,]{16,})|\{(?:PLAIN|CLEARTEXT|CLEAR|noop)\}([^\s:\"'\\]{4,128})|\b(pbkdf2_sha(?:1|256|512)\$[0-9]{1,8}\$[A-Za-z0-9+/=$.]{16,})|\b([0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::",
        trigger=r"\{(?:PLAIN|CLEARTEXT|CLEAR|noop)\}[^\s]|\{(?:S?SHA|S?MD5|CRYPT|PBKDF2|ARGON2|BCRYPT)|\bpbkdf2_sha|[0-9a-fA-F]:::",
        examples=("admin:{SHA}⟨b27⟩=", "pbkdf2_sha256$600000$⟨w22⟩$⟨b43⟩=", "Administrator:500:⟨h32⟩:⟨h32⟩:::"),
        near_misses=("{SHA} is an old scheme",),
    ),
)
