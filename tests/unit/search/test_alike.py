"""Words of a question are found in similar words of a passage."""

from __future__ import annotations

import pytest
from tests.conftest import EMBEDDER

from reverie.search.alike import WordVectors
from reverie.search.analysis import question


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors(EMBEDDER.embed)


def alike(vectors: WordVectors, asked: str, *texts: str) -> list[float]:
    return vectors.alike(question(asked), texts, "english")


def test_a_similar_word_counts_wherever_it_is(vectors):
    close, far = alike(
        vectors,
        "Who doesn't eat meat?",
        "Jonah's mum is vegetarian since the summer, remember for Christmas",
        "Bedroom radiator leaks at the valve, bucket under it",
    )
    assert close > far + 0.1


def test_all_words_of_the_question_are_the_whole_of_it(vectors):
    assert alike(vectors, "red bicycle", "The RED bicycle, sold") == [pytest.approx(1.0, abs=0.02)]


def test_what_a_word_tells_is_what_it_counts(vectors):
    thing, bicycle = alike(vectors, "bicycle thing", "a thing", "a bicycle")
    assert thing < bicycle


def test_many_words_are_not_close_by_their_number(vectors):
    filler = (
        "we walked along the river and talked about gardens, music, bread, rain, holidays, tickets, paint and shoes"
    )
    short, long = alike(vectors, "invoice", "rain and shoes", filler)
    assert abs(long - short) < 0.1


def test_texts_without_words_say_nothing(vectors):
    assert alike(vectors, "bicycle", "", "the", "...") == [0.0, 0.0, 0.0]
    assert vectors.alike([], ["bicycle"], "english") == [0.0]
    assert alike(vectors, "bicycle") == []


def test_a_word_that_every_text_has_counts_less(vectors):
    asked = "price of the lamp"
    lamp, price = alike(vectors, asked, "a lamp", "a price")
    *_, common = alike(vectors, asked, *["a price"] * 30)
    assert lamp == pytest.approx(price, abs=0.3)
    assert common < price


def test_the_order_of_texts_does_not_matter(vectors):
    texts = ["Customers pay half in advance", "The bandsaw needs a new blade", "Never glue bridges on rainy days"]
    together = alike(vectors, "What are the payment terms for clients?", *texts)
    assert alike(vectors, "What are the payment terms for clients?", *texts[::-1]) == together[::-1]
