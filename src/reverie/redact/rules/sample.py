"""Templates for tests: `⟨w20⟩` becomes twenty random characters of class `w`; `⟨w20!⟩` may stay where it is."""

from __future__ import annotations

import random
import re
import string

from reverie.redact.lazy import lazy

CLASSES = {
    "w": string.ascii_letters + string.digits,
    "l": string.ascii_letters,
    "a": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "u": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
    "k": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}
HOLE = lazy("⟨([a-zA-Z])([0-9]+)(!?)⟩")
"""A class, a length, and a sign for what is random and no secret."""


def fill(template: str, seed: int = 0) -> str:
    """`template` with its holes filled; the same for the same seed. The ends of a hole are letters or digits."""
    source = random.Random(f"{seed}:{template}")  # noqa: S311

    def characters(match: re.Match[str]) -> str:
        alphabet, length = CLASSES[match.group(1)], int(match.group(2))
        plain = [c for c in alphabet if c.isalnum()]
        inner = [source.choice(alphabet) for _ in range(length - 2)]
        # One digit and one letter at least, as nearly every real token has.
        ends = [source.choice(plain), source.choice(plain)]
        made = [ends[0], *inner, ends[1]][:length]
        if length >= 12:
            if not any(c.isdigit() for c in made) and any(c.isdigit() for c in alphabet):
                made[5] = source.choice([c for c in alphabet if c.isdigit()])
            if not any(c.isalpha() for c in made) and any(c.isalpha() for c in alphabet):
                made[6] = source.choice([c for c in alphabet if c.isalpha()])
        return "".join(made)

    return HOLE.sub(characters, template)
