"""Choose the statements with the most information per token, without repetition.

Lazy greedy selection over a submodular gain: a concept after the same neighbour counts less each time it
is repeated. Integers only; ties go to the earlier statement. A statement is scored again only at the top
of the heap, so the work stays near-linear.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from reverie.core.pause import paced

_REPEATED = (1000, 600, 360, 216, 130)  # per mille: weight of a concept after n repetitions
_PATIENCE = 200  # statements in a row that may exceed the remaining tokens
_OVERHEAD = 11  # tokens of a line on top of its words


def densest(weights: Sequence[Sequence[int]], costs: Sequence[int], among: Iterable[int]) -> int:
    """Return the statement with the most information per token, before any is chosen."""
    return min(among, key=lambda i: (-(sum(weights[i]) * 1000 * 64 // (costs[i] + _OVERHEAD)), i))


def order(
    concepts: Sequence[Sequence[int]],
    weights: Sequence[Sequence[int]],
    costs: Sequence[int],
    *,
    needs: Sequence[int | None],
    first: Iterable[int],
    enough: int,
) -> list[int]:
    """Return statement indices, best first, while their costs add up to at most `enough`.

    `concepts[i]` are the numbers of the concepts of statement i, `weights[i]` their weights in it. `needs[i]` is
    an earlier statement without which i is not understood: it is chosen before i, and until then its cost counts
    for i. The statements of `first` come first whatever their weight.
    """
    repeats: dict[int, int] = {}
    most = len(_REPEATED) - 1
    leaning: dict[int, list[int]] = {}
    for i, needed in enumerate(needs):
        if needed is not None:
            leaning.setdefault(needed, []).append(i)
    chosen: dict[int, None] = {}
    heap: list[tuple[int, int]] = []

    def density(i: int) -> int:
        gain = cost = 0
        at: int | None = i
        while at is not None and at not in chosen:
            for concept, weight in zip(concepts[at], weights[at], strict=True):
                gain += weight * _REPEATED[repeats.get(concept, 0)]
            cost += costs[at]
            at = needs[at]
        return gain * 64 // (cost + _OVERHEAD)

    def missing(i: int) -> list[int]:
        """Return the statement and its prerequisites that are not chosen yet."""
        chain = []
        at: int | None = i
        while at is not None and at not in chosen:
            chain.append(at)
            at = needs[at]
        return chain

    def choose(i: int) -> int:
        chain = missing(i)
        for at in reversed(chain):
            chosen[at] = None
            for concept in concepts[at]:
                n = repeats.get(concept, 0)
                if n < most:
                    repeats[concept] = n + 1
        for at in chain:  # their dependents have become cheaper
            for other in leaning.get(at, ()):
                if other not in chosen:
                    heapq.heappush(heap, (-density(other), other))
        return sum(costs[at] for at in chain)

    # Lazy greedy selection: choosing a statement makes others that share its concepts less dense, so the density in the
    # heap is an upper bound, and only the top needs to be computed again. The one exception, a statement whose
    # prerequisite was chosen, is pushed again with its new density; the stale copy is skipped once it is chosen.
    used = sum(choose(i) for i in paced(first))
    heap.extend((-density(i), i) for i in paced(range(len(weights))) if i not in chosen)
    heapq.heapify(heap)
    skipped = 0
    while heap and skipped < _PATIENCE:
        promised, i = heap[0]
        if i in chosen:
            heapq.heappop(heap)
            continue
        now = -density(i)
        if now > promised:  # its density fell since it was queued: queue it again
            heapq.heapreplace(heap, (now, i))
            continue
        heapq.heappop(heap)
        if used + sum(costs[at] for at in missing(i)) > enough:  # a smaller one may still fit
            skipped += 1
            continue
        used += choose(i)
        skipped = 0
    return list(chosen)
