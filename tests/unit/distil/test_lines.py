"""Lines found by the words of a statement."""

from __future__ import annotations

import time
from random import Random

from reverie.distil.lines import LineIndex
from reverie.distil.tokens import tokenize

WORDS = ["gate", "pump", "valve", "boat", "red", "12", "7", "never", "harbour", "leeds", "anna", "kettle"]


def stems(line: str) -> set[str]:
    return {token.stem for token in tokenize(line) if token.word}


def test_a_line_has_every_firm_word_and_enough_of_the_telling_ones() -> None:
    chance = Random(3)
    found = 0
    for _ in range(3_000):
        lines = [" ".join(chance.choices(WORDS, k=chance.randrange(7))) for _ in range(chance.randrange(1, 6))]
        firm = stems(" ".join(chance.choices(WORDS, k=chance.randrange(3))))
        telling = stems(" ".join(chance.choices([*WORDS, "elsewhere"], k=chance.randrange(7))))
        tenths = chance.choice([5, 8])
        expected = not (firm or telling) or any(
            (firm | telling) & said and firm <= said and len(telling & said) * 10 >= len(telling) * tenths
            for said in map(stems, lines)
        )
        assert LineIndex("\n".join(lines)).has(firm, telling, tenths=tenths) == expected
        found += expected
    assert 300 < found < 2_700


def test_statements_that_share_most_of_their_words_are_not_held_against_every_line() -> None:
    """Two thousand lines that begin alike took seconds: each statement was compared with all of them."""

    def cost(size: int) -> float:
        lines = [f"always keep gate w{number} of dock d{number} closed" for number in range(size)]
        index, own = LineIndex("\n".join(lines)), [stems(line.replace("dock", "pier")) for line in lines]
        began = time.thread_time()
        assert all(index.has(set(), telling) for telling in own)
        return time.thread_time() - began

    small = max(cost(250), 0.001)
    assert cost(4_000) < 80 * small
