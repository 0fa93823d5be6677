"""Budget of work for the scan of one text."""

from __future__ import annotations

from typing import Final

# Steps, about a microsecond of processor time each: a basic amount for every text, and more for every kilobyte.
LEAST_STEPS: Final = 10_000
STEPS_PER_KILOBYTE: Final = 440
# Each later pass over the same text has a quarter of the steps per kilobyte.
_LATER: Final = 2
# Eighths of the steps that generic rules may take.
_GENERIC: Final = 6
_BYTES_PER_STEP: Final = 220
_STRETCH: Final = 15
SEARCH: Final = 2
"""Steps for one search by a pattern, in addition to the bytes it reads."""
BYTES_COPIED: Final = 12
"""Bytes of a decoded copy per step."""
RULE: Final = 60
"""Steps, at most, for each rule that a block or a copy is searched for: among many rules, each is cold."""
PLACE: Final = 4
"""Steps for each part of a text in which a rule is searched for."""
VERDICT: Final = 12
"""Steps for judging a match of a rule's pattern, unless the rule has a price of its own."""
WORD: Final = 2
"""Steps for judging a plain word without quotes."""
REFUSAL: Final = 40
"""Steps for a value that passed every quick check and is no secret: a rule then gives an empty span."""
FIND: Final = 16
"""Steps for a find, which is merged with others and replaced; the text around it is read again."""


class Meter:
    """The budget of one text: a basic amount, and more for every block read.

    All work that a text can cause repeatedly takes steps: parts searched, bytes read there, candidates, verdicts,
    finds, pieces decoded. A block is `dry` when the steps of its generic rules are used up: these rules are then off,
    and its words are judged by themselves. It is `spent` when all of its steps are used up: matches not judged by then
    are redacted. Multi-line rules look ahead; their steps are taken from the stretch of text that they read. When a
    stretch has none left, the rule is `broken` off, and the words of all that follows are judged by themselves.
    """

    __slots__ = ("_ahead", "_generic", "_per_kilobyte", "_steps", "broken", "dry", "ran_dry", "spent")

    def __init__(self, size: int = 0, earlier: int = 0) -> None:
        """`earlier`: number of passes over the same text before this one."""
        self._per_kilobyte = STEPS_PER_KILOBYTE >> _LATER * earlier
        earned = size * self._per_kilobyte // 1024
        self._steps = (LEAST_STEPS >> earlier) + earned
        self._generic = (LEAST_STEPS >> earlier) + earned * _GENERIC // 8
        self._ahead: dict[int, int] = {}
        self.broken = self.dry = self.spent = self.ran_dry = False

    def earn(self, size: int, start: int = 0) -> None:
        """Add the steps of the next block, `size` bytes from `start`, less those taken ahead."""
        earned = size * self._per_kilobyte // 1024
        if self._ahead:
            stretches = range(start >> _STRETCH, (start + size >> _STRETCH) + 1)
            earned = max(earned // 4, earned - sum(self._ahead.pop(stretch, 0) for stretch in stretches))
        self._steps = max(self._steps, 0) + earned
        self._generic = max(self._generic, 0) + earned * _GENERIC // 8
        self.dry, self.spent = self.broken, False

    def work(self, steps: int, *, generic: bool = False) -> bool:
        """Take steps; return whether work may go on."""
        self._steps -= steps
        if generic:
            self._generic -= steps
            if self._generic <= 0:
                self.dry = self.ran_dry = True
        if self._steps <= 0:
            self.spent = self.dry = self.ran_dry = True
        return not (self.dry if generic else self.spent)

    def read(self, size: int, *, generic: bool = False) -> bool:
        """Take the steps of a search that read `size` bytes; return whether work may go on."""
        return self.work(SEARCH + size // _BYTES_PER_STEP, generic=generic)

    def look_ahead(self, position: int, steps: int) -> bool:
        """Take steps from the stretch of text at `position`, behind this block; return whether work may go on."""
        stretch = position >> _STRETCH
        taken = self._ahead[stretch] = self._ahead.get(stretch, 0) + steps
        if taken > self._per_kilobyte * 5 << _STRETCH >> 12:
            self.broken = self.dry = self.ran_dry = True
        return not self.dry
