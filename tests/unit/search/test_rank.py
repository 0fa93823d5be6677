"""One ranking, whatever the store and the order of its answers."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from reverie.search.rank import SESSION_GAP_MS, SIGNALS, WEIGHTS, Candidate, rank, worth_widening

MAY_8 = 1683554160000  # 2023-05-08 13:56 UTC


def make_candidate(name: str, **overrides) -> Candidate:
    position = int(name.strip("abcdefghijklmnopqrstuvwxyz") or 0)
    defaults = {"position": position, "created_at": MAY_8, "content": f"content of {name}", "lexical": None}
    return Candidate(id=name, **{**defaults, **overrides})


def chain(*ids: str) -> dict[str, tuple[str | None, str | None]]:
    return {one: (before, after) for before, one, after in zip((None, *ids), ids, (*ids[1:], None), strict=False)}


def order(query: str, candidates, neighbours=None) -> list[str]:
    return [one.id for one in rank(query, candidates, neighbours=neighbours or {}, now_ms=MAY_8)]


def test_words_and_meaning_both_count():
    candidates = [make_candidate("e1", lexical=1.0, dense=0.1), make_candidate("e2", lexical=2.0, dense=0.1)]
    assert order("x", candidates) == ["e2", "e1"]
    candidates = [make_candidate("e1", dense=0.2), make_candidate("e2", dense=0.8)]
    assert order("x", candidates) == ["e2", "e1"]


def test_score_is_the_sum_of_its_signals():
    candidates = [make_candidate(f"e{n}", lexical=float(n), dense=n / 10, speaker="Ana") for n in range(6)]
    for one in rank("Ana in May", candidates, neighbours=chain(*(f"e{n}" for n in range(6))), now_ms=MAY_8):
        assert tuple(one.signals) == SIGNALS
        assert one.score == pytest.approx(sum(one.signals.values()), abs=1e-5)


def test_the_answer_after_a_matching_question_rises():
    candidates = [
        make_candidate("e1", content="Which city did you move to?", lexical=5.0),
        make_candidate("e2", content="Lisbon, in the spring. We love it there so far."),
        make_candidate("e3", content="I had soup for lunch and it was fine, thank you."),
        make_candidate("e4", content="I will call the plumber tomorrow about the sink."),
    ]
    ranked = rank("city moved", candidates, neighbours=chain("e1", "e2", "e3", "e4"), now_ms=MAY_8)
    assert [one.id for one in ranked][:2] == ["e1", "e2"]
    assert ranked[1].signals["answers"] > 0


def test_context_ends_with_the_session():
    far = MAY_8 + SESSION_GAP_MS + 1
    candidates = [make_candidate("e1", lexical=1.0), make_candidate("e2", created_at=far)]
    by_time = rank("x", candidates, neighbours=chain("e1", "e2"), now_ms=far)
    assert by_time[1].signals["context"] == 0
    one_session = [replace(candidate, session="s") for candidate in candidates]
    assert rank("x", one_session, neighbours=chain("e1", "e2"), now_ms=far)[1].signals["context"] > 0
    two_sessions = [replace(candidates[0], session="s"), replace(candidates[1], session="t", created_at=MAY_8)]
    assert rank("x", two_sessions, neighbours=chain("e1", "e2"), now_ms=far)[1].signals["context"] == 0


def test_who_is_named_counts():
    candidates = [
        make_candidate("e1", lexical=1.0, speaker="Bob"),
        make_candidate("e2", lexical=1.0, speaker="Ana Lima"),
    ]
    assert order("what does Ana's sister do", candidates) == ["e2", "e1"]


def test_when_is_named_counts():
    later = MAY_8 + 90 * 86_400_000
    candidates = [make_candidate("e1", lexical=1.0, created_at=later), make_candidate("e2", lexical=1.0)]
    assert order("what happened in May 2023?", candidates) == ["e2", "e1"]
    assert order("what happened?", candidates) == ["e1", "e2"]


def test_length_stops_counting():
    short = make_candidate("e1", lexical=1.0, content="word " * 50)
    long = make_candidate("e2", lexical=1.0, content="word " * 5000)
    one, other = rank("x", [short, long], neighbours={}, now_ms=0)
    assert one.score == other.score


def test_ties_go_by_position_then_id():
    candidates = [
        make_candidate("b", position=2), make_candidate("c", position=1), make_candidate("a", position=2),
    ]  # fmt: skip
    same = [replace(candidate, content="same") for candidate in candidates]
    assert order("x", same) == ["c", "a", "b"]


def test_order_of_candidates_does_not_matter():
    shuffled = [make_candidate(f"e{n}", lexical=n % 7 / 3, dense=n % 5 / 7) for n in range(60)]
    neighbours = chain(*(f"e{n}" for n in range(60)))
    expected = rank("x", shuffled, neighbours=neighbours, now_ms=0)
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        assert rank("x", shuffled, neighbours=neighbours, now_ms=0) == expected


def test_limit_only_cuts():
    candidates = [make_candidate(f"e{n}", lexical=float(n)) for n in range(20)]
    everything = rank("x", candidates, neighbours={}, now_ms=0)
    assert rank("x", candidates, neighbours={}, now_ms=0, limit=5) == everything[:5]


def test_nothing_to_rank():
    assert rank("x", [], neighbours={}, now_ms=0) == []
    assert order("", [make_candidate("e1")]) == ["e1"]


def test_unknown_neighbours_are_ignored():
    assert order("x", [make_candidate("e1", lexical=1.0)], {"e1": ("e0", "e2")}) == ["e1"]


def test_worth_widening_takes_the_best():
    candidates = [make_candidate(f"e{n}", lexical=float(n)) for n in range(10)]
    assert worth_widening(candidates, 3) == ["e9", "e8", "e7"]
    assert worth_widening([], 3) == []


def test_weights_are_few_and_positive():
    assert all(getattr(WEIGHTS, name) > 0 for name in WEIGHTS.__slots__)
