"""Which patterns occur in a text at all: one pass per group of patterns, however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import re2

# Room for the automata, which are built while text is read. Too little room makes them start over again and again.
_MEMORY: Final = 64 << 20


class Filter:
    """Patterns compiled to a few automata.

    A state of an automaton is a combination of how far each of its patterns has got. Patterns that keep count of
    different things multiply each other's states, so groups are compiled apart: adding is cheaper than multiplying.
    """

    def __init__(self, groups: Sequence[Sequence[tuple[int, bytes]]]) -> None:
        self._sets: list[tuple[re2.Set, list[int]]] = []
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _MEMORY
        options.log_errors = False
        for group in groups:
            if group:
                patterns = re2.Set.SearchSet(options)
                for _, pattern in group:
                    patterns.Add(pattern)
                patterns.Compile()
                self._sets.append((patterns, [number for number, _ in group]))

    def match(self, data: bytes) -> list[int]:
        """The numbers of the patterns that occur in `data`."""
        return [numbers[i] for patterns, numbers in self._sets for i in patterns.Match(data) or ()]
