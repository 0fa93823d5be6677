"""Statements that differ in a word that matters are no duplicates, however alike they are."""

from __future__ import annotations

import pytest

from reverie.distil.duplicates import gist, says_all_of
from reverie.distil.tokens import tokenize


def same(one: str, other: str) -> bool:
    return says_all_of(gist(tokenize(other), None), gist(tokenize(one), None))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Take the blue pill before dinner", "Take the blue pill after dinner"),
        ("Take 5 mg of Ramipril in the morning", "Take 5 mg of Ramipril in the evening"),
        ("Turn on the pump of the pool", "Turn off the pump of the pool"),
        ("Read replicas are up in Frankfurt", "Read replicas are down in Frankfurt"),
        ("He has the key of the shed", "She has the key of the shed"),
        ("My key is with the neighbour", "Your key is with the neighbour"),
        ("Use the big key for the cellar door", "Use the small key for the cellar door"),
        ("Keep the old boiler manual on the shelf", "Keep the new boiler manual on the shelf"),
        ("More salt in the bread dough", "Less salt in the bread dough"),
        ("Give the parcel to Ana at the desk", "Take the parcel to Ana at the desk"),
        ("The tickets are only for Ana", "The tickets are also for Ana"),
        ("Long nails are easy to clean", "Short nails are hard to clean"),
        ("Guests may park in the yard", "Guests must park in the yard"),
        ("Move the sofa in from the garden", "Move the sofa out to the garden"),
    ],
)
def test_a_word_that_makes_a_difference_is_not_dropped(one: str, other: str) -> None:
    assert not same(one, other)
    assert not same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The meeting with Ana is at ten", "Meeting with Ana at ten"),
        ("Please feed the cat", "Feed the cat"),
        ("So happy that the gate works again", "Really glad that the gate works again"),
        ("The harbour opens at nine", "Well, the harbour opens at nine"),
    ],
)
def test_fillers_and_moods_make_no_difference(one: str, other: str) -> None:
    assert same(one, other)
