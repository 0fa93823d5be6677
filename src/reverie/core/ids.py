"""Ids: 26 characters of Crockford's base 32 over a version 7 UUID. They sort as made and read as ULIDs."""

from __future__ import annotations

import uuid_utils

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)


class TimeIds:
    """The real id maker. Safe to share between threads and processes."""

    def new(self) -> str:
        """A new id, larger than every id this process made before."""
        return encode(uuid_utils.uuid7().int)


def encode(number: int) -> str:
    """128 bits as 26 characters, most significant first."""
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])
