"""Names from other frameworks (namespaces, users, sessions) as segments of refs, and digests that mark entries."""

from __future__ import annotations

import hashlib
from uuid import UUID

LONGEST = 80
"""Characters of a segment, unless the name must be read back from it."""


def digest(text: str) -> str:
    """A text as a UUID: short, and never taken for a secret."""
    return str(UUID(bytes=hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:16]))


def segment(label: str) -> str:
    """A label as a segment of a ref, shortened with a hash when it is long."""
    encoded = encode(label)
    return encoded if len(encoded) <= LONGEST else f"{encoded[: LONGEST - 40]}-{digest(label)}"


def encode(label: str) -> str:
    """A label as a segment of a ref. A dot begins an escape: `a@b` is `a.40b`, `é` is `.u00e9`."""
    if not label:
        return "._"
    return "".join(letter if letter in _PLAIN else _escape(ord(letter)) for letter in label)


_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def _escape(code: int) -> str:
    return f".{code:02x}" if code < 0x80 else f".u{code:04x}" if code < 0x10000 else f".v{code:06x}"


def decode(segment: str) -> str:
    """The label of a segment. A segment that encodes no label is returned as it is."""
    if segment == "._":
        return ""
    first, *parts = segment.split(".")
    label = first
    try:
        for part in parts:
            size, start = (5, 1) if part.startswith("u") else (7, 1) if part.startswith("v") else (2, 0)
            label += chr(int(part[start:size], 16)) + part[size:]
    except ValueError:
        return segment
    return label if encode(label) == segment else segment
