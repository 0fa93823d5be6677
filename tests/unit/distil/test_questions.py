"""Facts inside questions."""

from __future__ import annotations

import pytest

from reverie.distil.questions import facts
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
