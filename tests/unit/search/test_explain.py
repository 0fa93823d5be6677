"""Why these and not others."""

from __future__ import annotations

from reverie.search import Candidate, Filtered, explain, rank
from reverie.search.text import comparable, searchable


def test_explanation_names_hits_cut_and_near_misses():
    candidates = [
        Candidate(id=f"e{n}", position=n, created_at=0, content=f"garden gate {n}", lexical=float(n), dense=0.1)
        for n in range(1, 10)
    ]
    candidates.append(Candidate(id="e10", position=10, created_at=0, content="only beside"))
    ranked = rank("the garden", candidates, neighbours={}, now_ms=0)
    told = explain(
        "the garden", ranked, candidates, limit=2, filtered=[Filtered("e99", "expired")], degraded=["no vectors"]
    )
    assert told.terms == ("garden",)
    assert [hit.id for hit in told.hits] == ["e9", "e8"]
    assert told.hits[0].matched_terms == ("garden",)
    assert told.hits[0].found_by == ("words", "meaning")
    assert [hit.rank for hit in told.near_misses] == [3, 4, 5, 6, 7]
    assert (told.cut.limit, told.cut.considered, told.cut.score) == (2, 10, told.hits[-1].score)
    assert told.filtered == (Filtered("e99", "expired"),)
    assert told.degraded == ("no vectors",)


def test_found_only_through_neighbours():
    candidates = [Candidate(id="e1", position=1, created_at=0, content="beside")]
    told = explain("x", rank("x", candidates, neighbours={}, now_ms=0), candidates, limit=5)
    assert told.hits[0].found_by == ("context",)
    assert told.near_misses == ()


def test_no_hits_no_cut_score():
    assert explain("x", [], [], limit=5).cut.score is None


def test_searchable_names_speaker_and_labels():
    assert searchable("hello", speaker="Ana") == "Ana: hello"
    assert searchable("hello", speaker=None, tags=("greeting",), subject="Bob") == "hello (Bob, greeting)"
    assert searchable("hello Bob", tags=["hello"], subject="Bob", created_at=5) == "hello Bob"


def test_comparable_drops_question_words_only_if_something_is_left():
    assert comparable("When did Ana's brother move to Lisbon?") == "Ana's brother move Lisbon"
    assert comparable("who are you?") == "who are you?"
