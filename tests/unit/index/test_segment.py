"""A segment without some rows: the same as one that never had them."""

from __future__ import annotations

import mmap
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from reverie.index import codes, parts, segment
from reverie.index.postings import pack
from reverie.index.segment import Row, Seen, Segment, build, merged
from reverie.search.passages import mark

KEY = b"k" * 32


def rows(count: int) -> list[Row]:
    """Every third entry has two passages, every fifth no vector, and each a word of its own."""
    chance = np.random.default_rng(4)
    made: list[Row] = []
    for n in range(1, count + 1):
        words = [f"word{chance.integers(20)}" for _ in range(6)] + [f"only{n}"]
        if n % 3 == 0:
            words = [mark(0, 10), *words, mark(10, 20), "second", f"word{n % 20}"]
        vector = chance.integers(-127, 128, 64 * (2 if n % 3 == 0 else 1), dtype=np.int8).tobytes()
        made.append((n * 2, pack(words, KEY), vector if n % 5 else None, "static" if n % 5 else None))
    return made


def same(one: Segment, other: Segment) -> None:
    assert one.total == other.total
    for (name, mine), (named, theirs) in zip(one.columns(), other.columns(), strict=True):
        assert name == named
        assert mine.dtype == theirs.dtype, name
        assert np.array_equal(mine, theirs), name


def test_rows_left_out_leave_nothing() -> None:
    given = rows(60)
    whole = build(given)
    gone = {2, 6, 50, 120}
    dead = whole.rows_of(np.array(sorted(gone)))
    same(merged([(whole, dead)]), build([row for row in given if row[0] not in gone]))


def test_rows_left_out_of_a_segment_with_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "FEWEST", 16)
    monkeypatch.setattr(segment, "FEWEST", 16)
    whole = build(rows(60))
    dead = whole.rows_of(np.array([4, 6, 90]))
    other = build([(999, pack(["elsewhere"], KEY), None, None)])
    same(merged([(whole, dead)]), merged([(whole, dead), (other, np.array([0], dtype=np.int32))]))
    nearly_all = np.arange(5, len(whole), dtype=np.int32)
    assert not len(next(iter(merged([(whole, nearly_all)]).vectors.values())).codes)


def test_a_segment_without_any_rows_is_empty() -> None:
    whole = build(rows(4))
    left = merged([(whole, np.arange(len(whole), dtype=np.int32))])
    assert len(left) == len(left.words) == len(left.rows) == left.total == 0


def test_whole_pages_of_vectors_and_of_postings_are_unmapped() -> None:
    page = mmap.PAGESIZE

    class Mapped:
        def __init__(self) -> None:
            self.dropped: list[tuple[int, int]] = []

        def madvise(self, _: int, first: int, size: int) -> None:
            self.dropped.append((first, size))

    mapped = Mapped()
    seen = Seen(mapped, [(1, 3 * page)], [(4 * page, 6 * page + 5)])  # type: ignore[arg-type]
    seen.drop_vectors()
    assert mapped.dropped == [(4 * page, 2 * page)]
    seen.drop_postings()
    assert mapped.dropped[1:] == [(page, 2 * page)]


def test_postings_stay_mapped_until_the_process_has_mapped_much(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[str] = []

    class Pages:
        def drop_vectors(self) -> None:
            dropped.append("vectors")

        def drop_postings(self) -> None:
            dropped.append("postings")

    large = parts.Parts((parts.Part(replace(build(rows(4)), seen=cast(Seen, Pages()))),))
    large.rest()
    assert not dropped  # a small memory keeps its pages
    monkeypatch.setattr(parts, "_LARGE", 1)
    monkeypatch.setattr(parts, "_MAPPED", 1 << 50)
    large.rest()
    monkeypatch.setattr(parts, "_MAPPED", 0)
    large.rest()
    assert dropped == ["vectors", "vectors", "postings"]
