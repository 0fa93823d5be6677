"""The part of a memory that a dream takes: within the budget, found in few tries, the same in any order of insertion,
and as large as can be."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_must_keep import STATEMENTS

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.plan import MOST_PLANS, Share, Work, lines, oldest_that_fit, weigh
from reverie.distil.source import Source

DISTILLER = ExtractiveDistiller()


def count(text: str) -> int:
    return len(text) // 4 + 1


@st.composite
def memories(draw: st.DrawFn) -> list[Source]:
    texts = draw(st.lists(st.lists(STATEMENTS, min_size=1, max_size=6).map(" ".join), min_size=2, max_size=60))
    session, at, made = 0, 1_780_000_000_000, []
    for number, text in enumerate(texts):
        session += draw(st.integers(0, 8)) == 0
        at += draw(st.sampled_from([1_000, 60_000, 86_400_000]))
        made.append(Source(f"{number:03d}", text, at, session=str(session)))
    return made


@settings(max_examples=60, deadline=None)
@given(memories(), st.integers(300, 2500), st.sampled_from([Share(500, 600), Share(1000, 1000), Share(10, 0)]))
def test_the_part_of_a_dream(sources: list[Source], budget: int, share: Share) -> None:
    weighed: list[int] = []

    def weigh_part(part: Sequence[Source]) -> Work:
        weighed.append(len(part))
        return weigh(part, DISTILLER, count)

    part = oldest_that_fit(sources, budget, share, weigh_part, count)
    assert part is not None
    assert len(weighed) <= MOST_PLANS
    again = oldest_that_fit([*sources], budget, share, lambda given: weigh(given, DISTILLER, count), count)
    assert again is not None
    assert (again.sources, again.oversize) == (part.sources, part.oversize)
    used = part.work.input_tokens + part.work.wanted(share)
    assert used <= budget or len(part.sources) == 1
    small = [source for source in sources if count(lines([source])[0]) * 2 <= budget]
    assert [s for s in part.sources if s in small] == small[: len([s for s in part.sources if s in small])]
    text = DISTILLER.distil(
        part.work.prepared, output_tokens=max(part.work.output_limit(budget, share, floor=0), 1), count=count
    )
    assert part.work.input_tokens + text.tokens <= budget or len(part.sources) == 1
    if not {source.id for source in small} <= {source.id for source in part.sources}:
        assert used * 2 > budget


def test_a_memory_that_fits_is_taken_whole_at_once() -> None:
    """With nine tenths of the input reserved for the output, not half of this memory was taken."""
    sources = [
        Source(f"{n:03d}", f"Waiting for build {n % 3}, nothing new so far.", 1_780_000_000_000 + n * 60_000)
        for n in range(100)
    ]
    weighed: list[int] = []

    def weigh_part(part: Sequence[Source]) -> Work:
        weighed.append(len(part))
        return weigh(part, DISTILLER, count)

    budget = sum(map(count, lines(sources))) * 11 // 10
    part = oldest_that_fit(sources, budget, Share(900, 900), weigh_part, count)
    assert part is not None
    assert len(part.sources) == len(sources)
    assert weighed == [100]
    less = oldest_that_fit(sources, budget // 2, Share(900, 900), weigh_part, count)
    assert less is not None
    assert len(less.sources) == len(sources)  # what is said again is counted once
