"""Words rank as BM25 says, whatever came, left or was indexed again before."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.core.query import QueryWord
from reverie.index import words as scoring
from reverie.index.parts import Part, Parts
from reverie.index.postings import Question, ask, hashed, pack
from reverie.index.segment import ScoredPassage, build
from reverie.search.passages import mark

KEY = b"k" * 32


class Words:
    """The words of a memory: segments, of which each change makes new ones."""

    def __init__(self) -> None:
        self.parts = Parts()

    def update(self, rows: list[tuple[int, bytes]]) -> None:
        self.parts = self.parts.updated([(position, packed, None, None) for position, packed in rows])

    def remove(self, positions: list[int]) -> None:
        self.parts = self.parts.without(positions)

    def best(self, question: Question, limit: int, among: Sequence[int] | None = None) -> list[ScoredPassage]:
        chosen = None if among is None else np.array(among, dtype=np.int64)
        return scoring.best(self.parts.parts, question, limit, chosen)

    def known(self, words: list[int]) -> list[bool]:
        return scoring.known(self.parts.parts, words)


WORD = st.sampled_from(["kettle", "shelf", "err_42", "zoë", "犬小", "a", "port", "lisbon", "x" * 64, "7"])
TEXT = st.lists(WORD, max_size=12)
CHANGE = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 12), TEXT),
    st.tuples(st.just("remove"), st.integers(1, 12), st.just([])),
)


def expected(model: dict[int, list[str]], asked: list[str], limit: int) -> list[tuple[int, float]]:
    """BM25 by the book, over a plain dictionary; the memory counts as if it had sixty passages more, without the word."""
    average = sum(map(len, model.values())) / len(model) if model else 0
    scores: dict[int, float] = {}
    for term in dict.fromkeys(asked):
        having = [position for position, terms in model.items() if term in terms]
        weight = math.log(1 + (len(model) + 60 - len(having) + 0.5) / (len(having) + 0.5))
        for position in having:
            times = Counter(model[position])[term]
            norm = times + 1.2 * (1 - 0.75 + 0.75 * len(model[position]) / average)
            scores[position] = scores.get(position, 0.0) + weight * times * 2.2 / norm
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]


@settings(max_examples=200, deadline=None)
@given(
    changes=st.lists(st.lists(CHANGE, max_size=6), max_size=8),
    asked=st.lists(WORD, min_size=1, max_size=5),
)
def test_scores_are_those_of_a_plain_model(changes: list[list[tuple[str, int, list[str]]]], asked: list[str]) -> None:
    model: dict[int, list[str]] = {}
    index = Words()
    for group in changes:
        rows = {position: terms for act, position, terms in group if act == "put"}
        index.update([(position, pack(terms, KEY)) for position, terms in rows.items()])
        model |= rows
        gone = [position for act, position, _ in group if act == "remove"]
        index.remove(gone)
        for position in gone:
            model.pop(position, None)
        found = index.best(ask(asked, KEY), 100)
        wanted = expected(model, asked, 100)
        assert {one.position for one in found} == {position for position, _ in wanted}
        scores = dict(wanted)
        for one in found:
            assert math.isclose(one.score, scores[one.position], rel_tol=1e-12)
            assert 0 < one.cover <= 1 + 1e-12
        assert index.parts.size == len(model)
        assert found[:3] == index.best(ask(asked, KEY), 3)
        odd = [row for row in found if row[0] % 2]
        assert odd[:2] == index.best(ask(asked, KEY), 2, range(1, 99, 2))


def test_equal_entries_come_by_position_however_they_were_added() -> None:
    one, two = Words(), Words()
    rows = [(position, pack(["kettle", "on", "shelf"], KEY)) for position in range(1, 50)]
    one.update(rows)
    for row in reversed(rows):
        two.update([row])
    question = ask(["kettle", "shelf"], KEY)
    assert one.best(question, 10) == two.best(question, 10)
    assert [found.position for found in one.best(question, 10)] == list(range(1, 11))


def test_a_word_is_kept_as_a_hash_under_the_key() -> None:
    packed = pack(["kettle", "kettle", "shelf"], KEY)
    assert len(packed) == 20
    assert b"kettle" not in packed
    assert pack(["kettle", "kettle", "shelf"], b"x" * 32) != packed
    assert pack(["w"] * 100_000, KEY)[8:] == (2**15 - 1).to_bytes(2, "big")


def test_a_long_entry_is_found_by_its_passages() -> None:
    index = Words()
    long = [mark(0, 40), "kettle", "shelf", mark(30, 90), "port", "lisbon", "port", mark(90, 120), "zebra"]
    index.update([(1, pack(["kettle"], KEY)), (2, pack(long, KEY)), (3, pack([], KEY)), (4, pack(["port"], KEY))])
    (found,) = index.best(ask(["lisbon"], KEY), 5)
    assert (found.position, found.number, found.span) == (2, 1, (30, 90))
    assert [(one.position, one.number) for one in index.best(ask(["port"], KEY), 5)] == [(4, 0), (2, 1)]
    assert [one.span for one in index.best(ask(["kettle"], KEY), 5)] == [None, (0, 40)]
    assert index.parts.size == 6
    assert [one.number for one in index.best(ask(["kettle", "zebra"], KEY), 5, [2])] == [2, 0]
    index.update([(2, pack(["kettle"], KEY))])
    assert index.best(ask(["lisbon"], KEY), 5) == []
    assert index.known([hashed("lisbon", KEY), hashed("port", KEY)]) == [False, True]


def test_one_of_several_terms_is_enough_and_the_best_counts() -> None:
    index = Words()
    index.update([(1, pack(["sofa"], KEY)), (2, pack(["couch"], KEY)), (3, pack(["shelf"], KEY))])
    one_word = [QueryWord((("couch", 1.0), ("sofa", 0.5)))]
    found = index.best(ask(one_word, KEY), 5)
    assert [one.position for one in found] == [2, 1]
    assert math.isclose(found[0].score, 2 * found[1].score)
    assert index.best(ask([QueryWord((("none", 1.0),))], KEY), 5) == []


def test_a_similar_word_covers_a_word_in_part() -> None:
    """Also where no passage has the word itself."""
    index = Words()
    index.update([(1, pack(["sofa", "red"], KEY)), (2, pack(["shelf"], KEY))])
    (found,) = index.best(ask([QueryWord((("couch", 1.0), ("sofa", 0.5)))], KEY), 5)
    assert math.isclose(found.cover, 0.5)


def test_a_word_that_nothing_has_lowers_the_cover() -> None:
    index = Words()
    index.update([(1, pack(["kettle", "shelf"], KEY)), (2, pack(["port"], KEY))])
    (whole,) = index.best(ask(["kettle", "shelf"], KEY), 5)
    (part,) = index.best(ask(["kettle", "unheard"], KEY), 5)
    (little,) = index.best(ask(["kettle", QueryWord((("unheard", 1.0),), 0.1)], KEY), 5)
    assert whole.cover == 1.0
    assert part.cover < little.cover < 1.0


def test_few_passages_of_a_further_segment_are_scored_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of them share one word with the question and cannot be among the best."""
    rows = [(n, pack(["kettle", *(["shelf"] if n % 4 == 0 else []), *(["port"] if n % 9 == 0 else [])], KEY), None, None)
            for n in range(1, 2001)]  # fmt: skip
    scored: list[int] = []
    exact = scoring._Search.exact

    def counted(self: scoring._Search, chosen: Any) -> Any:
        scored.append(len(chosen))
        return exact(self, chosen)

    monkeypatch.setattr(scoring._Search, "exact", counted)
    question = ask(["kettle", "shelf", "port"], KEY)
    one = scoring.best([Part(build(rows))], question, 10)
    scored.clear()
    assert scoring.best([Part(build(rows[:1000])), Part(build(rows[1000:]))], question, 10) == one
    assert scored[1] < 50  # all that have its rarest word are 111


@pytest.mark.parametrize("limit", [1, 7, 60, 200])
def test_the_best_of_many_passages_are_those_that_a_full_scoring_finds(limit: int) -> None:
    chance = np.random.default_rng(limit)
    texts = {n: [f"word{int(w)}" for w in chance.zipf(1.3, 8) if w < 400] for n in range(1, 4001)}
    words = Words()
    words.update([(n, pack(terms, KEY)) for n, terms in texts.items()])
    gone = [int(n) for n in chance.choice(4000, 300, replace=False) + 1]
    words.remove(gone)
    left = {n: terms for n, terms in texts.items() if n not in set(gone)}
    for asked in (["word1", "word2"], ["word1", "word3", "word40", "word200"], ["word7"]):
        found = words.best(ask(asked, KEY), limit)
        assert [(one.position, pytest.approx(one.score)) for one in found] == expected(left, asked, limit)
        odd = [n for n in left if n % 2]
        everything = words.best(ask(asked, KEY), 4000)
        assert words.best(ask(asked, KEY), limit, odd) == [one for one in everything if one.position % 2][:limit]
