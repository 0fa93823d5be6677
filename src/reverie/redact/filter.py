"""Prefilter: finds the patterns that occur in a text, and the parts of the text in which they do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from reverie.core.pause import paced
from reverie.redact.automata import Automata
from reverie.redact.markers import presence
from reverie.redact.rules.required import FOLDED, all_required
from reverie.redact.spans import Range, pieces

# In noise, patterns without required strings are searched for this many at a time.
_FEW: Final = 4


class PatternFilter:
    """Finds patterns in one of two ways, which give the same answer.

    All patterns are compiled to a few automata, which are fastest on text of a kind they have read before. Text that
    would cost these too much is searched for the required strings of the patterns: one pass finds two thousand strings
    at a cost that no text can raise, and a pattern is then searched for only near one of its strings. Patterns without
    required strings are few.
    """

    def __init__(self, groups: Sequence[Sequence[tuple[int, bytes]]]) -> None:
        self._patterns = dict(item for group in groups for item in group)
        self._automata = Automata(groups)

    @cached_property
    def _required(self) -> dict[int, frozenset[bytes]]:
        return dict(zip(self._patterns, all_required(self._patterns.values()), strict=True))

    @cached_property
    def _users(self) -> dict[bytes, list[int]]:
        """Map each string to the patterns that require it."""
        users: dict[bytes, list[int]] = {}
        for number, strings in self._required.items():
            for string in sorted(strings):
                users.setdefault(string, []).append(number)
        return users

    @cached_property
    def _strings(self) -> tuple[BytesAhoCorasick, list[list[int]]]:
        kind, implementation = MatchKind.Standard, Implementation.DFA
        return BytesAhoCorasick(list(self._users), kind, implementation), list(self._users.values())

    @cached_property
    def _others(self) -> list[Automata]:
        others = [number for number, strings in self._required.items() if not strings]
        parts = [others[i : i + _FEW] for i in range(0, len(others), _FEW)]
        return [Automata([[(number, self._patterns[number]) for number in part]]) for part in parts]

    def match(
        self, data: bytes, near: Sequence[int] | None = None, skipped: Collection[int] = ()
    ) -> dict[int, list[Range]]:
        """Map the numbers of the patterns that occur in `data`, ascending, to the parts in which they do. Patterns in
        `skipped` are left out; with `near`, only parts within reach of these places are searched."""
        found: dict[int, list[Range]] = {}
        for parts in paced(pieces(data, near)):
            start, end = max(0, parts[0][0] - 1), parts[-1][1]
            text = data if end - start == len(data) else data[start:end]
            numbers = self._automata.match(text)
            candidates = self._candidates(text, start, parts) if numbers is None else dict.fromkeys(numbers, parts)
            for number, where in candidates.items():
                if number in skipped:
                    continue
                if verified := self._verified(number, data, where, sure=numbers is not None):
                    found.setdefault(number, []).extend(verified)
        return {number: found[number] for number in sorted(found)}

    def _verified(self, number: int, data: bytes, parts: list[Range], *, sure: bool) -> list[Range]:
        """Return the parts in which a pattern occurs."""
        if sure and len(parts) == 1:
            return parts
        within = presence(self._patterns[number]).within
        # With the byte before: a pattern may begin with the line end before its line.
        if not sure and len(parts) > 1:
            # Most candidates do not occur; one search over all parts shows it.
            text = b"\n".join([data[max(0, start - 1) : end] for start, end in parts])
            if not within(text, 0, len(text)):
                return []
        return [(start, end) for start, end in parts if within(data, max(0, start - 1), end)]

    def _candidates(self, text: bytes, offset: int, parts: list[Range]) -> dict[int, list[Range]]:
        """Map the patterns that may occur in `text` to the parts that may have them; `text` begins at `offset`."""
        automaton, users = self._strings
        hits = automaton.find_matches_as_indexes(text.translate(FOLDED), overlapping=True)
        ends = [hit[2] + offset for hit in hits]
        candidates: dict[int, list[Range]] = {}
        needed: dict[frozenset[int], set[int]] = {}
        first = 0
        for part in parts if hits else ():
            first = bisect_left(ends, part[0] + 1, first)
            last = bisect_left(ends, part[1] + 1, first)
            strings = frozenset([hit[0] for hit in hits[first:last]])
            if (numbers := needed.get(strings)) is None:
                numbers = needed[strings] = set().union(*[users[string] for string in strings])
            for number in numbers:
                candidates.setdefault(number, []).append(part)
        for automata in self._others:
            candidates |= dict.fromkeys(automata.search(text), parts)
        return candidates
