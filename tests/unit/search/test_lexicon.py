"""The lexicon: every word is found where it is, and nothing else is."""

from __future__ import annotations

from importlib import resources

import pytest

from reverie.search import lexicon

LINES = resources.files("reverie.search").joinpath("lexicon.txt").read_text(encoding="utf-8").splitlines()


def test_every_word_is_found() -> None:
    for line in LINES:
        word, weight, *alike = line.split(" ")
        assert lexicon.weight(word) == int(weight) / 100
        assert lexicon.similar(word) == alike


@pytest.mark.parametrize("word", ["", " ", "\n", "a", "aa", "zzzz", "goz", "go 45", "zürich", "金"])
def test_other_words_tell_all_and_are_not_remembered(word: str) -> None:
    assert lexicon.weight(word) == 1.0
    assert lexicon.similar(word) == []
    assert word not in lexicon._seen


def test_the_lines_are_in_order() -> None:
    words = [line.partition(" ")[0] for line in LINES]
    assert words == sorted(set(words))
