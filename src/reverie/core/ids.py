"""Ids: 26 characters of Crockford's base 32 over a version 7 UUID. They sort in order of creation and read as ULIDs."""

from __future__ import annotations

import uuid_utils

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_FORTY = (1 << 40) - 1
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)


class TimeIds:
    """The real id generator. Safe to share between threads and processes."""

    def new(self) -> str:
        """A new id, larger than every id this process made before."""
        return encode(uuid_utils.uuid7().int)


def encode(number: int) -> str:
    """128 bits as 26 characters, most significant first."""
    high, middle, low = number >> 80, number >> 40 & _FORTY, number & _FORTY  # small numbers are quicker to shift
    return (
        f"{_PAIRS[high >> 40]}{_PAIRS[high >> 30 & 1023]}{_PAIRS[high >> 20 & 1023]}{_PAIRS[high >> 10 & 1023]}"
        f"{_PAIRS[high & 1023]}{_PAIRS[middle >> 30]}{_PAIRS[middle >> 20 & 1023]}{_PAIRS[middle >> 10 & 1023]}"
        f"{_PAIRS[middle & 1023]}{_PAIRS[low >> 30]}{_PAIRS[low >> 20 & 1023]}{_PAIRS[low >> 10 & 1023]}"
        f"{_PAIRS[low & 1023]}"
    )
