"""How much work a text is worth."""

from __future__ import annotations

from typing import Final

_LEAST: Final = 500
_PER_KILOBYTE: Final = 12
# What a byte earns behind the first so many of a block, and in every block behind one that took more than it earned.
_FULL: Final = 32 * 1024
_PART: Final = 8


class Meter:
    """The number of verdicts on values that a text is worth: some to begin with, and more with every block read.

    A text that took more than its share once is full of words for secrets, and earns an eighth from then on.
    """

    __slots__ = ("_dense", "_left", "dry", "ran_dry")

    def __init__(self, size: int = 0) -> None:
        self._left = _LEAST + size * _PER_KILOBYTE // 1024
        self.dry = False
        self.ran_dry = self._dense = False

    def earn(self, size: int) -> None:
        """The next block, of `size` bytes."""
        full = 0 if self._dense else min(size, _FULL)
        self._left += (full + (size - full) // _PART) * _PER_KILOBYTE // 1024
        self.dry = False

    def take(self) -> bool:
        """Whether there is one left; then it is taken."""
        if self._left <= 0:
            self.dry = self.ran_dry = self._dense = True
            return False
        self._left -= 1
        return True
