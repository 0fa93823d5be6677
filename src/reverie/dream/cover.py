"""Choose statements that tell most for their tokens, without saying anything twice.

Lazy greedy over a submodular gain: a concept next to the same neighbour counts less each time it has
been told. Integers only; ties go to the earlier statement. A statement is looked at again only when
something it tells was told since, so the work stays near-linear.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

_TOLD_AGAIN = (1000, 600, 360, 216, 130)  # per mille a concept still counts after being told n times
_OVERHEAD = 5  # tokens: what a line costs beside its words


def order(
    concepts: Sequence[Sequence[int]],
    weights: Sequence[Sequence[int]],
    costs: Sequence[int],
    *,
    first: Iterable[int],
    enough: int,
) -> list[int]:
    """Statement indices, best first, until their costs add up to `enough`.

    `concepts[i]` are the concept numbers of statement i, `weights[i]` what each of them weighs in it.
    `first` come first whatever they weigh.
    """
    told: dict[int, int] = {}
    most = len(_TOLD_AGAIN) - 1

    def density(i: int) -> int:
        gain = 0
        for concept, weight in zip(concepts[i], weights[i], strict=True):
            gain += weight * _TOLD_AGAIN[told.get(concept, 0)]
        return gain * 64 // (costs[i] + _OVERHEAD)

    def tell(i: int) -> None:
        for concept in concepts[i]:
            n = told.get(concept, 0)
            if n < most:
                told[concept] = n + 1

    chosen = list(first)
    used = 0
    for i in chosen:
        tell(i)
        used += costs[i]
    done = set(chosen)
    heap = [(-density(i), i) for i in range(len(weights)) if i not in done]
    heapq.heapify(heap)
    while heap and used < enough:
        promised, i = heap[0]
        now = -density(i)
        if now > promised:  # it tells less than it promised: back in line
            heapq.heapreplace(heap, (now, i))
            continue
        heapq.heappop(heap)
        chosen.append(i)
        used += costs[i]
        tell(i)
    return chosen
