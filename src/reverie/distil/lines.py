"""The lines of a text, indexed by their words."""

from __future__ import annotations

from collections.abc import Set

from reverie.core.pause import paced
from reverie.distil.tokens import tokenize


class LineIndex:
    """Finds a line by the words of a statement. Words are stems."""

    def __init__(self, text: str) -> None:
        self._having: dict[str, set[int]] = {}
        lines = [tokenize(line) for line in paced(text.split("\n"))]
        for number, line in enumerate(paced(lines)):
            for token in line:
                if token.word:
                    self._having.setdefault(token.stem, set()).add(number)

    def has(self, firm: Set[str], telling: Set[str], *, tenths: int = 8) -> bool:
        """Whether one line has every word of `firm` and this share of `telling`; true without any words."""
        if not firm and not telling:
            return True
        having = {word: self._having.get(word, frozenset[int]()) for word in firm | telling}
        needed = -(-len(telling) * tenths // 10)
        # A line that lacks all of these has too few: only the lines of the rarest words are compared.
        rarest = sorted(map(having.__getitem__, telling), key=len)[: len(telling) - needed + 1]
        common = min(map(having.__getitem__, firm), key=len, default=None)
        lines = frozenset[int]().union(*rarest) if common is None or telling else common
        return any(
            all(number in having[word] for word in firm) and sum(number in having[word] for word in telling) >= needed
            for number in (lines if common is None else lines & common)
        )
