"""Speakers: a question about what the assistant said prefers its turns, one in the first person those of the person."""

from __future__ import annotations

from pathlib import Path

import pytest

import reverie
from reverie.search.rank import Candidate, Question, rank
from reverie.search.speakers import speakers

ROLES = ["user", "assistant", "Mara", None]


@pytest.mark.parametrize(
    "question",
    [
        "What did you recommend for my knee?",
        "Which village did you say is quieter?",
        "your advice about the fan",
        "the plan you gave me",
        "Was hast du mir empfohlen?",
        "¿Qué me recomendaste?",
    ],
)
def test_the_assistant_is_asked_for(question: str) -> None:
    assert speakers(question, ROLES) == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("question", ["Which song did I choose?", "What is my dog called?", "Wann ist mein Termin?"])
def test_the_person_is_asked_for_at_a_third(question: str) -> None:
    assert speakers(question, ROLES) == [1 / 3, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("question", ["Where does Idris work?", "Can you suggest a book?", "the thank-you note"])
def test_other_questions_prefer_no_speaker(question: str) -> None:
    assert speakers(question, ROLES) == [0.0] * 4


def test_the_turn_of_the_assistant_comes_first() -> None:
    turns = [
        Candidate("q", 1, 0, "my knee hurts, what helps?", 0, 2.0, 0.5, 0.6, role="user"),
        Candidate("a", 2, 0, "Rest it for a week.", 0, 1.8, 0.5, 0.6, role="assistant"),
    ]
    ranked = rank(Question("What did you advise for my knee?"), turns, neighbours={})
    assert [one.id for one in ranked] == ["a", "q"]
    assert [one.signals["speaker"] for one in ranked] == [0.3, 0.0]


def test_a_role_alone_makes_a_conversation(tmp_path: Path) -> None:
    """Turns written under one key that differ by their role are context of one another."""
    with reverie.open(tmp_path) as memory:
        notes = memory.ref("chat")
        notes.put("what shall we call the second whippet?", source={"role": "user"})
        notes.put("Salt, obviously.", source={"role": "assistant"})
        notes.put("The ferry leaves at nine.", source={"role": "user"})
        hits = notes.search("What name did you suggest for the second whippet?", explain=True)
    answer = next(hit for hit in hits if hit.text == "Salt, obviously.")
    assert answer.signals["context"] > 0
    assert answer.signals["speaker"] > 0
    assert any("whose words the question asks for" in reason for one in hits.explanation.hits for reason in one.why)
