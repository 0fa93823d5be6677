"""A wording is found by either engine alike."""

from __future__ import annotations

import random
import re

import pytest

from reverie.search import currency
from reverie.search.wording import Wording

WORDINGS = [one for one in vars(currency).values() if isinstance(one, Wording)]


@pytest.mark.parametrize("wording", WORDINGS, ids=range(len(WORDINGS)))
def test_both_engines_find_the_same_in_ascii(wording):
    """Texts are made of the words of the patterns, joined in ways that make and break borders."""
    parts = [
        *re.findall(r"[a-z]+|['-]", " ".join(one._any.pattern for one in WORDINGS)),
        "New",
        "5",
        "5th",
        "$5",
        "\n",
        "x",
    ]
    rng = random.Random(3)
    texts = [rng.choice((" ", "", " ")).join(rng.choices(parts, k=rng.randint(1, 6))) for _ in range(4000)]
    assert WORDINGS
    assert [wording.is_in(text) for text in texts] == [wording._any.search(text) is not None for text in texts]


def test_borders_of_words_outside_ascii_are_those_of_the_language():
    wording = Wording(r"\b(?:nuova|new)\b", ignore_case=True)
    assert wording.is_in("La Nuova sede")
    assert not wording.is_in("énew")
    assert wording.is_in("è new")
