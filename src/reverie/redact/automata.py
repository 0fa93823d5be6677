"""Multi-pattern search: one pass over a text per group of patterns, regardless of their number."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import re2

# Memory for the automata, which are built while text is read. With too little they start over again and again.
_MEMORY: Final = 64 << 20
# Nanoseconds per byte: the cost in an automaton that has its states, and the credit that every byte earns.
_WARM: Final = 50
_EARNED: Final = 80
# Nanoseconds that every text earns in addition: the extra cost of the other way for a text of one line.
_EARNED_EACH: Final = 20_000
_CREDIT: Final = 20_000_000
# The credit of new automata, which is not earned again. Three hundred ordinary notes build most of the states they will
# ever need, for 50 to 120 ms. With a credit of 20 ms, a process that stores one entry at a time sent the next thousands
# the other way, which costs three to eight times as much each.
_LENT: Final = 200_000_000
# Less is noise: the cost of reading the clock, or of a short text on a busy machine, where the processor's cache has
# lost the automata. With 20 microseconds, nine in ten puts of a busy host were sent the slow way.
_NOTICED: Final = 100_000
_PROBE: Final = 1024
_PROBED: Final = 8 * 1024
_LONG: Final = 64 * 1024
# The fractional parts of its multiples are spread evenly, however many there are.
_GOLDEN: Final = 0.6180339887498949


def _compiled(patterns: Sequence[tuple[int, bytes]]) -> re2.Set:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    options.log_errors = False
    made = re2.Set.SearchSet(options)
    for _, pattern in patterns:
        made.Add(pattern)
    made.Compile()
    return made


class Automata:
    """Patterns compiled to a few automata.

    A state of an automaton is a combination of how far each of its patterns has got. Patterns that keep count of
    different things multiply each other's states, so groups are compiled apart: adding is cheaper than multiplying.

    They are fast on text of a kind they have read before. On noise nearly every byte makes a new state, which costs
    microseconds. The time spent on new states is paid from a credit that grows with the texts and bytes read, so text
    made to be expensive cannot spend more than the credit.
    """

    def __init__(self, groups: Sequence[Sequence[tuple[int, bytes]]]) -> None:
        self._sets = [(_compiled(group), [number for number, _ in group]) for group in groups if group]
        self._credit = _LENT
        self._probes = 0

    def match(self, data: bytes) -> list[int] | None:
        """Return the numbers of the patterns that occur in `data`; None when the search would cost too much."""
        if (self._credit < _CREDIT or len(data) > _LONG) and not self._affords(data):
            return None
        return self.search(data)

    def _affords(self, data: bytes) -> bool:
        """Whether the credit lasts for all of `data`, estimated from two pieces of it. The pieces differ each time: the
        automata already have the states for the last ones, and for nothing around them."""
        earned = min(self._credit + len(data) * _EARNED + _EARNED_EACH, _CREDIT)
        self._credit = max(self._credit, earned)
        before = self._credit
        if before < 0 or len(data) <= _PROBED:
            return before >= 0
        for _ in range(2):
            self._probes += 1
            start = int(self._probes * _GOLDEN % 1 * (len(data) - _PROBE))
            self.search(data[start : start + _PROBE])
        return self._credit > (before - self._credit) * (len(data) // (2 * _PROBE))

    def search(self, data: bytes) -> list[int]:
        """Return the numbers of the matching patterns, without a limit on cost."""
        started = time.thread_time_ns()
        found = [numbers[i] for patterns, numbers in self._sets for i in patterns.Match(data) or ()]
        spent = time.thread_time_ns() - started - len(data) * _WARM
        if spent > _NOTICED:
            self._credit -= spent
        return found
