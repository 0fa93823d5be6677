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


_CODES = r"\b(?:backup|recovery|scratch|emergency|2fa|mfa|one-time|single-use|rescue)[ -](?:2fa |mfa |login |access )?codes?\b"
_CODES_WORD = Lazy(rf"(?i){_CODES}".encode())
# What may stand between the words and the first code: a remark, an owner, a line of its own.
_ABOUT = Lazy(rb"[^\n:]{0,80}?(?::|->|=>|\xe2\x86\x92|\b(?:read|are)\b|\n)(?:[ \t]*[=~*_#-]{3,40}[ \t]*\r?\n)?")
_CODE = Lazy(
    rb"(?:[\s,;|:=*()\[\]\"'`.>-]|\b(?:is|are|was|and|und)\b|\b[0-9]{1,2}[.)]|\\n)*"
    rb"(?:\b|\\n)([A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8}){1,5}|[0-9]{4} [0-9]{4}|[0-9]{6,10}|[a-z0-9]{8,16}|[A-Z0-9]{8,16})\b"
)
_DATE = Lazy(rb"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}")
_MOST_CODES = 40


def _codes(data: bytes) -> Iterator[Span]:
    """Each code of a list behind the words `backup codes`, on the same line or below."""
    for words in _CODES_WORD.finditer(data):
        found = list(_row(data, words.end()))
        if not found and (about := _ABOUT.match(data, words.end())) is not None:
            found = list(_row(data, about.end()))
            # Behind a line that only talks of codes, one number may be anything.
            announced = (
                data[about.start() : about.end()].rstrip(b" \t\r\n=~*_#-").endswith((b":", b">", b"read", b"are"))
            )
            found = found if announced or len(found) > 1 else []
        yield from found


def _row(data: bytes, position: int) -> Iterator[Span]:
    """The codes from `position` on. One without a digit counts among others that look the same."""
    found: list[Span] = []
    shapes: set[tuple[int, ...]] = set()
    numbered = 0
    while len(found) < _MOST_CODES and (code := _CODE.match(data, position, min(len(data), position + 80))):
        shape = tuple(map(len, code.group(1).split(b"-")))
        has_digit = any(0x30 <= c <= 0x39 for c in code.group(1))
        if _DATE.fullmatch(code.group(1)) or not (has_digit or (len(shape) > 1 and shapes <= {shape})):
            break
        shapes.add(shape)
        numbered += has_digit
        found.append(code.span(1))
        position = code.end()
    if numbered * 3 >= len(found):
        yield from found


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
        trigger=rf"(?i){_CODES}",
        locate=_codes,
        examples=(
            "backup codes: ⟨d4⟩-⟨d4⟩ ⟨d4⟩-⟨d4⟩ ⟨d4⟩-⟨d4⟩",
            "Recovery codes:\n1. ⟨a4⟩1-⟨a5⟩\n2. ⟨a4⟩2-⟨a5⟩\n",
            "recovery code ⟨a4⟩1-⟨a5⟩",
            "Backup codes (each works once):\n1⟨h9⟩, 2⟨h9⟩",
            "2FA backup codes for bob@example.org: ⟨d4⟩ ⟨d4⟩, ⟨d4⟩ ⟨d4⟩",
            "recovery codes\n=====\n1⟨a4⟩-⟨a5⟩\n2⟨a4⟩-⟨a5⟩\n",
        ),
        near_misses=(
            "the backup codes are in the safe",
            "Recovery codes can be made again in settings",
            "recovery codes were made again on: 2031-03-03",
            "backup codes: see item 2231 of the vault",
        ),
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
