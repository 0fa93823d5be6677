from __future__ import annotations

import pytest

from reverie.distil.shorten import shorten, vocatives
from reverie.distil.tokens import join, tokenize

NAMES = vocatives({"Caroline Fox", "Ben"})


def short(text: str, *, spoken: bool = True) -> str:
    return join(shorten(tokenize(text), NAMES, spoken=spoken))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Hey Caroline!", ""),
        ("Wow, that's so cool, Ben!", ""),
        ("Thanks for the tip, Caro.", ""),
        ("Yeah, I painted that lake in 2022!", "painted that lake in 2022"),
        ("I'm really keen on pottery and I've bought a wheel.", "keen on pottery and bought a wheel"),
        ("Max and I fixed the parser.", "Max and I fixed the parser"),
        ("We hiked to the summit, and it was so great!", "We hiked to the summit"),
        ("I want to join, but I can't.", "want to join, but can't"),
        ("No, the server is down.", "No, the server is down"),
        ("If so, restart the worker.", "If so, restart the worker"),
        ("Not really finished, the parser.", "Not really finished, the parser"),
        ("I read about sisterhood, love, and dreams.", "read about sisterhood, love, and dreams"),
        ("The key is [REDACTED:api_key], really.", "The key is [REDACTED:api_key]"),
        ("Is the cache warm?", "Is the cache warm?"),
        ("Thanks for the 500 dollars!", "Thanks for the 500 dollars"),
        ("Hi! I'm Noor, I moved here in January.", "I'm Noor, I moved here in January"),
        ("Hello, I am Noor and I teach physics.", "I am Noor and I teach physics"),
        ("**Monday**: lentil soup with bread", "Monday: lentil soup with bread"),
        ("Well, a plan: **Monday** soup, **Friday**: fish", "a plan: **Monday** soup, **Friday**: fish"),
        (
            "Congratulations on the twins, they look great, born on 4 May!",
            "Congratulations on the twins, born on 4 May",
        ),
        ("Thanks for the cake, but I'm sober since March.", "I'm sober since March"),
        ("Oh well, use just the blue cable for the pump.", "use just the blue cable for the pump"),
        ("I just saw the heron at the mill.", "saw the heron at the mill"),
        ("Nope, the cellar key is lost.", "Nope, the cellar key is lost"),
        ("Ok, after: rest for a day.", "after: rest for a day"),
        ("Hey, ~~use Redis for the queue~~", "~~use Redis for the queue~~"),
    ],
)
def test_a_spoken_sentence_keeps_what_it_says(said: str, kept: str) -> None:
    assert short(said) == kept


def test_without_a_speaker_the_first_person_stays() -> None:
    assert short("I moved to Porto.", spoken=False) == "I moved to Porto"


def test_words_never_grow_together() -> None:
    assert short("Use `make`really`test` here") == "Use `make` `test` here" or "`make`" in short(
        "Use `make`really`test` here"
    )


@pytest.mark.parametrize(
    "text", ["v1.2.3", "a_b.c", "CS:GO", "ana@example.org", "[REDACTED:x]", "https://e.org/a?b=1", "-5", "1,200"]
)
def test_identifiers_are_single_hard_tokens(text: str) -> None:
    (token,) = tokenize(text)
    assert token.hard
