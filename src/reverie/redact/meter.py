"""How much work a text is worth."""

from __future__ import annotations

from typing import Final

_LEAST: Final = 500
_PER_KILOBYTE: Final = 30


class Meter:
    """The number of verdicts on values that a text of `size` bytes is worth."""

    __slots__ = ("dry", "left")

    def __init__(self, size: int) -> None:
        self.left = max(_LEAST, size * _PER_KILOBYTE // 1024)
        self.dry = False

    def take(self) -> bool:
        """Whether there is one left; then it is taken."""
        self.left -= 1
        self.dry = self.dry or self.left < 0
        return not self.dry
