"""Budget of work for the scan of one text."""

from __future__ import annotations

from typing import Final

_LEAST: Final = 500
_PER_KILOBYTE: Final = 12
# Budget per byte behind this many bytes of a block, and in every block behind one that exceeded its budget.
_FULL: Final = 32 * 1024
_PART: Final = 8

# Steps, about a microsecond each: some for every text, and more with every kilobyte. Later passes have less.
LEAST_STEPS: Final = 20_000
STEPS_PER_KILOBYTE: Final = 430
_SEARCH: Final = 1
_BYTES_PER_STEP: Final = 110
PLACE: Final = 30
"""Steps for each part of a text that a rule is searched for in."""
VERDICT: Final = 20
"""Steps for asking a rule whether what its pattern found is a secret."""


class Meter:
    """The budget of one text: a basic amount, and more for every block read.

    Two accounts. Verdicts on values: a text that took more than its share once is full of words for secrets, and earns
    an eighth from then on; it is `dry`, and its words are judged by themselves. Steps: the parts a rule is searched for
    in, the bytes read there, and verdicts, of all rules. A block that took all of its steps is `spent`: what has not
    been judged by then goes.
    """

    __slots__ = ("_dense", "_left", "_per_kilobyte", "_steps", "dry", "ran_dry", "spent")

    def __init__(self, size: int = 0, earlier: int = 0) -> None:
        """`earlier`: passes over the same text before this one."""
        self._left = _LEAST + size * _PER_KILOBYTE // 1024
        self._per_kilobyte = STEPS_PER_KILOBYTE >> earlier
        self._steps = (LEAST_STEPS >> max(0, earlier - 1)) + size * self._per_kilobyte // 1024
        self.dry = self.spent = False
        self.ran_dry = self._dense = False

    def earn(self, size: int) -> None:
        """The next block, of `size` bytes."""
        full = 0 if self._dense else min(size, _FULL)
        self._left += (full + (size - full) // _PART) * _PER_KILOBYTE // 1024
        self._steps = max(self._steps, 0) + size * self._per_kilobyte // 1024
        self.dry = self.spent = False

    def allow(self, size: int) -> None:
        """Steps for a text of `size` bytes of which only a part is read."""
        self._steps += size * self._per_kilobyte // 1024

    def take(self) -> bool:
        """Whether there is one verdict left; then it is taken."""
        if self._left <= 0:
            self.dry = self.ran_dry = self._dense = True
            return False
        self._left -= 1
        return True

    def work(self, steps: int) -> bool:
        """Whether there were so many steps left; they are taken in any case."""
        self._steps -= steps
        if self._steps <= 0:
            self.spent = self.dry = self.ran_dry = True
        return not self.spent

    def read(self, size: int) -> bool:
        """The same for a search that read `size` bytes."""
        return self.work(_SEARCH + size // _BYTES_PER_STEP)
