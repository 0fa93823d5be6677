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
        # Another word in the middle names another thing, or denies or bounds what is said.
        ("Feed the cat every morning with dry food", "Feed the neighbour's cat every morning with dry food"),
        ("The garage door opener needs a new battery", "The garage side door opener needs a new battery"),
        ("The children may watch cartoons after dinner", "The children may rarely watch cartoons after dinner"),
        ("Lock the shed when leaving the garden", "Lock the shed when leaving the garden overnight"),
        ("Mama nimmt die Tabletten vor dem Essen", "Mama nimmt die Tabletten nicht vor dem Essen"),
        ("Le chien peut dormir sur le canapé", "Le chien peut rarement dormir sur le canapé"),
        ("La llave está debajo de la maceta", "La llave ya no está debajo de la maceta"),
        # The place of a negation, the tense, a preposition, a judgement that belongs to a noun, a mark.
        ("Mum does not eat fish but eats meat", "Mum eats fish but does not eat meat"),
        ("Ben smoked cigars on the porch", "Ben smokes cigars on the porch"),
        ("The passport is in the desk upstairs", "The passport is on the desk upstairs"),
        ("My great aunt lives in Leeds with two cats", "My aunt lives in Leeds with two cats"),
        ("Sweet potatoes for dinner on Friday", "Potatoes for dinner on Friday"),
        ("Keep humidity > 40 % in the attic", "Keep humidity < 40 % in the attic"),
        ("☐ paint the fence", "☑ paint the fence"),
        ("The gate is open", "The gate is open?"),
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
        ("Deploy needs two approvals of the team.", "Deploy needs two approvals of the team. Ask Rosa."),
    ],
)
def test_fillers_and_moods_make_no_difference(one: str, other: str) -> None:
    assert same(one, other)
