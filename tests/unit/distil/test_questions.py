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
        ("Can you remember that I'm vegetarian?", "I'm vegetarian"),
        ("Did you know I moved to Kiel?", "I moved to Kiel"),
        ("Did I tell you that Tim is allergic to bees?", "Tim is allergic to bees"),
        ("Could you please note that the door code is 4417?", "the door code is 4417"),
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
        "Do you remember the film with the dog?",
        "Do you know whether the shop is open?",
        "Can you tell me about the trip?",
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


def _chat(*lines: str) -> list[Source]:
    said = [line.partition(": ") for line in lines]
    return [Source(f"{n}", text, 1_775_000_000_000 + n * 60_000, who) for n, (who, _, text) in enumerate(said)]


def _text(sources: list[Source]) -> str:
    return ExtractiveDistiller().distil(sources, output_tokens=900, count=lambda text: len(text.split())).text


def test_yes_or_no_is_kept_with_its_question() -> None:
    text = _text(
        _chat(
            "ben: Can Lena eat peanuts?",
            "ana: No, never!",
            "ben: Are you coming to the rehearsal?",
            "ana: No.",
            "ben: Darf der Hund aufs Sofa?",
            "ana: Nein.",
            "ben: Do you take sugar in the tea?",
            "ana: Yes please, two.",
            "ben: How are you?",
            "ana: No idea, tired",
        )
    )
    assert "(Can Lena eat peanuts?) No, never" in text
    assert "(Are you coming to the rehearsal?) No" in text
    assert "(Darf der Hund aufs Sofa?) Nein" in text
    assert "(Do you take sugar in the tea?) Yes please, two" in text


def test_the_same_answer_to_two_questions_is_no_duplicate() -> None:
    chat = _chat("ben: May I park in the yard?", "ana: No.", "ben: May I use the sauna?", "ana: No.")
    text = _text(chat)
    assert "(May I park in the yard?) No" in text
    assert "(May I use the sauna?) No" in text


def test_how_an_attempt_went_is_no_chatter() -> None:
    text = _text(_chat("ana: Tried the other cable. Did not help.", "ana: Swapped the fuse of pump 2. That helped!"))
    assert "Did not help" in text
    assert "That helped" in text


def test_a_fact_that_a_question_reminds_of_stays() -> None:
    text = _text(_chat("ana: Can you remember that I'm vegetarian?", "ana: Did you know I moved to Kiel?"))
    assert "I'm vegetarian" in text
    assert "I moved to Kiel" in text
