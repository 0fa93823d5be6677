"""Facts inside questions."""

from __future__ import annotations

import pytest

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.questions import facts
from reverie.distil.source import Source
from reverie.distil.tokens import join, tokenize


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        (
            "I prefer hiking over team sports because I set my own pace, could you help me plan a trail?",
            "I prefer hiking over team sports because I set my own pace",
        ),
        ("I am vegetarian and hate mushrooms - any ideas for dinner?", "I am vegetarian and hate mushrooms"),
        ("Can you recommend a quiet hotel, since I hate noise?", "I hate noise"),
        ("When we met, you were a vegetarian, do you eat fish now?", "When we met, you were a vegetarian"),
        ("I love jazz, what should I listen to next?", "I love jazz"),
    ],
)
def test_a_fact_is_kept_without_the_request_around_it(asked: str, stated: str) -> None:
    assert join(facts(tokenize(asked))) == stated


@pytest.mark.parametrize(
    "asked",
    [
        "How long will you stay, and do you have a budget in mind?",
        "What do you think about that?",
        "You prefer trains?",
        "And so, how are you?",
    ],
)
def test_a_sentence_that_only_asks_states_nothing(asked: str) -> None:
    assert facts(tokenize(asked)) == []


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        ("Sunflowers mean warmth and happiness, right?", "Sunflowers mean warmth and happiness"),
        ("The printer in room 4 is broken, isn't it?", "The printer in room 4 is broken"),
    ],
)
def test_a_question_tag_leaves_a_statement(asked: str, stated: str) -> None:
    assert join(facts(tokenize(asked))) == stated


def test_a_question_stays_with_the_answer_that_lives_on_it() -> None:
    source = Source("a", "What would you say about shoes? Mine have 700 km on them.", 1_700_000_000_000, "user")
    made = ExtractiveDistiller().distil([source], output_tokens=100, count=lambda text: len(text.split()))
    assert "(What would you say about shoes?) Mine have 700 km on them" in made.text
