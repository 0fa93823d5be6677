"""Why these and not others."""

from __future__ import annotations

from reverie.search.analysis import question
from reverie.search.explain import Filtered, explain
from reverie.search.rank import Candidate, Question, rank
from reverie.search.text import comparable, searchable


def test_explanation_names_hits_cut_and_near_misses():
    candidates = [
        Candidate(
            id=f"e{n}", position=n, created_at=0, content=f"garden gate {n}", lexical=float(n), dense=0.1, cover=1.0
        )
        for n in range(1, 10)
    ]
    candidates.append(Candidate(id="e10", position=10, created_at=0, content="only beside"))
    asked = Question("the garden", question("the garden"))
    ranked = rank(asked, candidates, neighbours={})
    made = explain(
        asked,
        ranked,
        candidates,
        shown=[one.key for one in ranked[:2]],
        limit=2,
        filtered=[Filtered("e99", "expired")],
        degraded=["no vectors"],
    )
    assert made.terms == ("garden",)
    assert [hit.id for hit in made.hits] == ["e9", "e8"]
    assert made.hits[0].matched_terms == ("garden",)
    assert made.hits[0].found_by == ("words", "meaning")
    assert made.hits[0].why[0] == "has 1 of 1 word of the question: garden"
    assert [hit.rank for hit in made.near_misses] == [3, 4, 5, 6, 7]
    assert (made.cut.limit, made.cut.considered, made.cut.score) == (2, 10, made.hits[-1].score)
    assert made.filtered == (Filtered("e99", "expired"),)
    assert made.degraded == ("no vectors",)


def test_found_only_through_neighbours():
    candidates = [Candidate(id="e1", position=1, created_at=0, content="beside")]
    asked = Question("x")
    made = explain(asked, rank(asked, candidates, neighbours={}), candidates, shown=[(1, 0)], limit=5)
    assert made.hits[0].found_by == ("context",)
    assert made.near_misses == ()


def test_no_hits_no_cut_score():
    assert explain(Question("x"), [], [], shown=[], limit=5).cut.score is None


def test_searchable_names_speaker_and_labels():
    assert searchable("hello", speaker="Ana") == "Ana: hello"
    assert searchable("hello", speaker=None, tags=("greeting",), subject="Bob") == "hello (Bob, greeting)"
    assert searchable("hello Bob", tags=["hello"], subject="Bob") == "hello Bob"


def test_comparable_drops_question_words_only_if_something_is_left():
    assert comparable("When did Ana's brother move to Lisbon?") == "Ana's brother move Lisbon"
    assert comparable("who are you?") == "who are you?"
