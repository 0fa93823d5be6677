"""Templates for tests: `⟨w20⟩` becomes twenty random characters of class `w`; `⟨w20!⟩` need not be redacted."""

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
"""A class, a length, and a mark for text that is random but no secret."""


def fill(template: str, seed: int = 0) -> str:
    """Fill the holes of `template`, each beginning and ending in a letter or digit. Deterministic for a seed."""
    source = random.Random(f"{seed}:{template}")  # noqa: S311

    def characters(match: re.Match[str]) -> str:
        alphabet, length = CLASSES[match.group(1)], int(match.group(2))
        plain = [c for c in alphabet if c.isalnum()]
        inner = [source.choice(alphabet) for _ in range(length - 2)]
        # At least one digit and one letter, as in nearly every real token.
        ends = [source.choice(plain), source.choice(plain)]
        made = [ends[0], *inner, ends[1]][:length]
        if length >= 12:
            if not any(c.isdigit() for c in made) and any(c.isdigit() for c in alphabet):
                made[5] = source.choice([c for c in alphabet if c.isdigit()])
            if not any(c.isalpha() for c in made) and any(c.isalpha() for c in alphabet):
                made[6] = source.choice([c for c in alphabet if c.isalpha()])
        return "".join(made)

    return HOLE.sub(characters, template)
