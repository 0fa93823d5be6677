"""How much work a text is worth."""

from __future__ import annotations

from typing import Final

_LEAST: Final = 500
_PER_KILOBYTE: Final = 12


class Meter:
    """The number of verdicts on values that a text is worth: some to begin with, and more with every block read."""

    __slots__ = ("_left", "dry", "ran_dry")

    def __init__(self, size: int = 0) -> None:
        self._left = _LEAST + size * _PER_KILOBYTE // 1024
        self.dry = False
        self.ran_dry = False

    def earn(self, size: int) -> None:
        """The next block, of `size` bytes."""
        self._left += size * _PER_KILOBYTE // 1024
        self.dry = False

    def take(self) -> bool:
        """Whether there is one left; then it is taken."""
        if self._left <= 0:
            self.dry = self.ran_dry = True
            return False
        self._left -= 1
        return True
