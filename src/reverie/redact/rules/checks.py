"""Checks by name, which a rule of `formats.toml` may apply to the text that its pattern matched."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from reverie.redact.entropy import is_wordy, looks_random, luhn, mod97, remembered, word_share, words
from reverie.redact.rules.literals import is_argument, is_random, is_told
from reverie.redact.rules.plausible import (
    is_code,
    is_location,
    is_placeholder,
    is_random_value,
    is_told_value,
    without_markers,
)

_STAND_INS = words(
    """
    password pass passwd pwd pw secret token xxx xxxx xxxxx redacted hidden user username pswd mypassword
    yourpassword
    """
)


@remembered
def is_real(text: str) -> bool:
    """Whether `text` is a real value, not a placeholder such as `user:password@host` in a manual."""
    rest = without_markers(text)
    if not rest or (rest != text.strip(" \t.,;:!?)]}>\"'`") and len(rest) < 4):
        return False
    if re.match(r"[ \t]*[,:;)\]=]", text):
        return False  # The quote closed a literal: `'--password', help='...'`.
    return text.lower() not in _STAND_INS and not is_placeholder(text) and not re.match(r"[.…*x]+$", text, re.I)


def is_real_literal(text: str) -> bool:
    """Whether `text` is a real value, and neither code nor a flag."""
    return is_real(text) and not is_code(text) and not text.startswith("-")


def _is_armour(text: str) -> bool:
    """Whether `text` is base64 of an armoured private key, not of a certificate."""
    try:
        head = base64.b64decode(text[:64] + "=" * (-len(text[:64]) % 4))
    except (binascii.Error, ValueError):
        return False
    return b"PRIVATE" in head


def is_basic(text: str) -> bool:
    """Whether `text` is base64 of `user:password`."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain


def is_bearer(text: str) -> bool:
    """Whether `text` is random, or long with digits and few words."""
    return not (is_placeholder(text) or is_location(text)) and (
        is_random_value(text) or (len(text) >= 20 and any(c.isdigit() for c in text) and word_share(text) <= 0.6)
    )


def _key_like(text: str) -> bool:
    """Whether `text` is no name: `sk-learn-model-selection-utils` has words where a key has noise."""
    tail = text.split("-", 1)[-1]
    return any(c.isdigit() for c in tail) and word_share(tail) <= 0.5


def _seed(text: str) -> bool:
    """Whether `text` is base32 without words: groups or one run, long or with a digit."""
    plain = text.replace(" ", "").replace("-", "")
    if is_placeholder(plain) or not (plain.isupper() or plain.islower()):
        return False
    pieces = [piece for piece in re.split(r"[ -]", text) if piece]
    wordy = sum(is_wordy(piece) for piece in pieces)
    digits = sum(c.isdigit() for c in plain)
    return len(plain) >= 16 and wordy * 2 <= len(pieces) and (digits >= 1 or len(plain) >= 24) and not plain.isdigit()


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _base58check(text: str) -> bool:
    """Whether the last four bytes are the checksum of the others (double SHA-256), as in an exported wallet key."""
    number = 0
    for c in text:
        number = number * 58 + _BASE58.index(c)
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def _card(text: str) -> bool:
    return luhn(text) and len({c for c in text if c.isdigit()}) > 1


# Length of an IBAN, by country.
_IBAN = {
    country: int(line.split()[0])
    for line in """
    15 NO
    16 BE
    18 DK FO FI GL NL SD
    19 MK SI
    20 AT BA EE KZ LT LU XK MN
    21 CH HR LI LV
    22 BG BH CR DE GB GE IE ME RS VA
    23 AE GI IL IQ OM SO TL
    24 AD CZ ES MD PK RO SA SE SK TN VG
    25 LY PT ST
    26 IS TR
    27 FR GR IT MC MR SM BI DJ
    28 AL AZ BY CY DO GT HU LB NI PL SV
    29 BR EG PS QA UA
    30 JO KW MU YE
    31 MT SC
    32 LC
    33 RU
    """.strip().splitlines()
    for country in line.split()[1:]
}


def _iban(text: str) -> bool:
    """Whether an IBAN has the length of its country and the right check digits."""
    plain = "".join(text.split())
    return _IBAN.get(plain[:2]) == len(plain) and mod97(plain)


def is_mixed(text: str) -> bool:
    """Whether `text` has letters of both cases and a digit, as forty random characters of base64 always do."""
    return any(c.islower() for c in text) and any(c.isupper() for c in text) and any(c.isdigit() for c in text)


def _has_random_tail(text: str) -> bool:
    return looks_random(text.split(":", 1)[-1])


CHECKS: Final = MappingProxyType[str, Callable[[str], bool]](
    {
        "argument": is_argument,
        "armour": _is_armour,
        "base58check": _base58check,
        "basic": is_basic,
        "bearer": is_bearer,
        "card": _card,
        "certain": is_told,
        "certain-value": is_told_value,
        "digits": lambda text: sum(c.isdigit() for c in text) >= 3,
        "filled": lambda text: not is_placeholder(text),
        "iban": _iban,
        "key": _key_like,
        "long": lambda text: len(text) >= 20,
        "mixed": is_mixed,
        "mixed-random": lambda text: is_mixed(text) and looks_random(text),
        "random": looks_random,
        "random-literal": is_random,
        "random-tail": _has_random_tail,
        "random-value": is_random_value,
        "real": is_real,
        "real-literal": is_real_literal,
        "seed": _seed,
    }
)
