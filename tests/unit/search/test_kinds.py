"""Kinds of answers: what a question asks for, and which passages have it."""

from __future__ import annotations

from time import process_time

import pytest

from reverie.search.explain import explain
from reverie.search.kinds import kinds
from reverie.search.rank import Candidate, Question, rank


@pytest.mark.parametrize(
    ("question", "has", "lacks"),
    [
        ("How much is the deposit?", "Ask for 50 as a deposit", "The deposit is paid in cash"),
        ("What does the plot cost?", "The plot is 48 quid a year", "Got the plot by the weir"),
        ("When does the committee meet?", "The committee meets on Sunday", "Clive runs the committee"),
        ("Who keeps the keys?", "The keys are with Moira", "The keys are on the hook"),
        ("Wie lange gilt der Pass?", "Der Pass gilt bis 2031", "Der Pass liegt im Schrank"),
        ("¿Cuándo abre la tienda?", "La tienda abre el lunes", "La tienda es grande"),
        ("会議はいつ？", "会議は月曜日", "会議は長い"),
    ],
)
def test_a_passage_has_what_the_question_asks_for(question: str, has: str, lacks: str) -> None:
    assert kinds(question, [has, lacks]) == [1, 0]


def test_a_question_may_ask_for_two_kinds_or_none() -> None:
    assert kinds("Who called, and when?", ["it was Moira on Monday", "it was Moira", "nobody"]) == [2, 1, 0]
    assert kinds("Where is the ladder?", ["Moira has 2 of them"]) == [0]


def test_a_figure_or_a_name_is_asked_for_on_one_line() -> None:
    assert kinds("Well: what did it, in the end, cost?", ["50", "a lot"]) == [1, 0]
    assert kinds("What is it?\nTell me the price", ["50"]) == [0]
    assert kinds("First line\nand what is the street called?", ["it is by Clive"]) == [1]


def test_a_question_of_many_question_words_is_read_at_once() -> None:
    began = process_time()
    assert kinds("what " * 8000, ["50"]) == [0]
    assert process_time() - began < 5  # 20 s when each "what" was tried to the end of the line


def test_the_kind_of_answer_decides_between_equals() -> None:
    texts = ("Clive runs the committee", "The committee meets on Sunday")
    found = [Candidate(f"e{n}", n, 0, text, lexical=2.0, cover=0.5) for n, text in enumerate(texts)]
    ranked = rank(Question("When is the committee?"), found, neighbours={})
    assert [one.id for one in ranked] == ["e1", "e0"]
    assert [one.signals["kind"] for one in ranked] == [0.3, 0.0]


def test_the_kind_of_answer_is_said_in_words() -> None:
    question, found = Question("When is it?"), [Candidate("e1", 1, 0, "It is on Sunday", lexical=2.0, cover=0.5)]
    ranked = rank(question, found, neighbours={})
    why = explain(question, ranked, found, shown=[ranked[0].key], limit=1).hits[0].why
    assert any("kind of answer" in sentence for sentence in why)
