"""Tests of values in places that hold nothing but a secret."""

from __future__ import annotations

from reverie.redact.markers import presence
from reverie.redact.rules.plausible import (
    is_code,
    is_location,
    is_password_like,
    is_placeholder,
    is_random_value,
    is_term,
    is_told_value,
    without_markers,
)

_ENDS = " \t.,;:!?)]}>\"'`"


def is_whole(text: str) -> bool:
    """Whether no part of `text` is redacted already."""
    return without_markers(text) == text.strip(_ENDS)


def is_literal(text: str) -> bool:
    """Whether `text`, in a place reserved for a password, is a literal."""
    return is_whole(text) and not is_placeholder(text) and not is_location(text) and len(text) >= 4


def is_argument(text: str) -> bool:
    """Whether `text` is a literal as a bare word on a command line."""
    return is_literal(text) and not is_code(text) and not text.startswith("-")


def is_told(text: str) -> bool:
    return is_whole(text) and is_told_value(text)


def is_random(text: str) -> bool:
    return is_whole(text) and is_random_value(text) and not is_placeholder(text)


def has_symbols(text: str) -> bool:
    """Whether a literal of eight characters or more has two different symbols, as no word does."""
    marks = {c for c in text if not c.isalnum() and c not in "-_./:'’,;?()[]"}
    return is_literal(text) and len(text) >= 8 and len(marks) >= 2


def is_foreign(text: str) -> bool:
    return is_whole(text) and not is_placeholder(text) and not is_term(text) and is_password_like(text)


# Marked ciphertext, and the public parts of a key.
_FOR_EVERYONE = (
    rb"(?:(?:ENC[\[(]|\{cipher\}|\$ANSIBLE_VAULT;|\bvault:v\d+:)[^\])\s\"']*"
    rb"|\\{0,3}\"(?:n|x|y|x5c|x5t(?:#S256)?|kid)\\{0,3}\"[ ]?:[ ]?\[?[ ]?\\{0,3}\"[\w+/=-]*)\z"
)


def is_for_everyone(data: bytes, start: int) -> bool:
    """Whether the value at `start` is part of a public key in JSON, or of ciphertext marked as such."""
    before = data[max(0, start - 800) : start]
    return presence(_FOR_EVERYONE).within(before, 0, len(before))


def trimmed(data: bytes, start: int, end: int) -> tuple[int, int, str]:
    kept = data[start:end].rstrip(b".,;:)]}>*`'\"")
    return start, start + len(kept), kept.decode("utf-8", "replace")
