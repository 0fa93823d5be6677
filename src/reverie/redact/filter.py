"""Which patterns occur in a text at all: one pass per group of patterns, however many there are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import re2

# Room for the automata, which are built while text is read. Too little room makes them start over again and again.
_MEMORY: Final = 64 << 20
# Nanoseconds a byte: the price of an automaton that knows the text, and the credit that every byte earns.
_WARM: Final = 50
_EARNED: Final = 100
_CREDIT: Final = 60_000_000
# A pause of the machine is no work.
_NOTICED: Final = 20_000
_PROBE: Final = 1024
_PROBED: Final = 8 * 1024
_LONG: Final = 64 * 1024
_FEW: Final = 4
# Multiples of it, without their whole part, are spread evenly however many there are.
_GOLDEN: Final = 0.6180339887498949


def _compiled(patterns: Sequence[tuple[int, bytes]], memory: int) -> re2.Set:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = memory
    options.log_errors = False
    made = re2.Set.SearchSet(options)
    for _, pattern in patterns:
        made.Add(pattern)
    made.Compile()
    return made


class Filter:
    """Patterns compiled to a few automata, and to many small ones.

    A state of an automaton is a combination of how far each of its patterns has got. Patterns that keep count of
    different things multiply each other's states, so groups are compiled apart: adding is cheaper than multiplying.

    The few automata are fast on text of a kind they have read before. On noise nearly every byte makes a new state,
    which costs microseconds; there it is cheaper to search for a few patterns at a time, and that price is bounded.
    Both ways give the same answer. The time spent on new states is paid from a credit that grows with the bytes read,
    so text made to be expensive cannot spend more than the credit before the other way is taken.
    """

    def __init__(self, groups: Sequence[Sequence[tuple[int, bytes]]]) -> None:
        self._groups = [group for group in groups if group]
        self._sets = [(_compiled(group, _MEMORY), [number for number, _ in group]) for group in self._groups]
        self._credit = _CREDIT
        self._probes = 0

    @cached_property
    def _few(self) -> list[tuple[re2.Set, list[int]]]:
        """The same patterns, a few at a time."""
        parts = [group[i : i + _FEW] for group in self._groups for i in range(0, len(group), _FEW)]
        return [(_compiled(part, _MEMORY // 16), [number for number, _ in part]) for part in parts]

    def match(self, data: bytes) -> list[int]:
        """The numbers of the patterns that occur in `data`."""
        if (self._credit < _CREDIT or len(data) > _LONG) and not self._affords(data):
            return [numbers[i] for patterns, numbers in self._few for i in patterns.Match(data) or ()]
        return self._search(data)

    def _affords(self, data: bytes) -> bool:
        """Whether the credit lasts for all of `data`, to judge by two pieces of it: other ones each time, because the
        automata know those of the last time, and nothing of what is around them."""
        self._credit = min(self._credit + len(data) * _EARNED, _CREDIT)
        before = self._credit
        if before < 0 or len(data) <= _PROBED:
            return before >= 0
        for _ in range(2):
            self._probes += 1
            start = int(self._probes * _GOLDEN % 1 * (len(data) - _PROBE))
            self._search(data[start : start + _PROBE])
        return self._credit > (before - self._credit) * (len(data) // (2 * _PROBE))

    def _search(self, data: bytes) -> list[int]:
        started = time.perf_counter_ns()
        found = [numbers[i] for patterns, numbers in self._sets for i in patterns.Match(data) or ()]
        spent = time.perf_counter_ns() - started - len(data) * _WARM
        if spent > _NOTICED:
            self._credit -= spent
        return found
