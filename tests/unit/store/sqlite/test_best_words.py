"""Word search of a large index looks at few entries, and finds the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from reverie.core.entry import Scope
from reverie.core.query import Filter
from reverie.store.conformance.lab import make_entry, put
from reverie.store.sqlite import SqliteStore, read

WORDS = [f"word{n}" for n in range(60)]


@pytest.fixture
def store(tmp_path: Path):
    made = SqliteStore(tmp_path / "words.db")
    chance = random.Random(5)

    def fill(tx) -> None:
        for n in range(1200):
            terms = chance.sample(WORDS, 6) + ["rare"] * (n % 400 == 7) + ["filler"] * chance.randrange(4)
            put(tx, make_entry(content=" ".join(terms), ref=tx.scope.ref, id=f"e{n}"))

    for ref in ("notes", "other"):
        made.write(Scope("acme", ref), fill)
    yield made
    made.close()


@pytest.mark.parametrize("asked", [WORDS[:3], WORDS[:6], [*WORDS[:3], "rare"], ["rare", "none", WORDS[0]]])
def test_the_same_as_ranking_everything(store, monkeypatch, asked):
    def search():
        return store.read(Scope("acme", "notes"), lambda tx: tx.match(asked, Filter(), limit=20))

    everything = search()
    told = []
    monkeypatch.setattr(read, "_MANY", 1)
    monkeypatch.setattr(read, "_RARE", 12)
    monkeypatch.setattr(read, "_FEW", 2)
    best = read.SqliteReadTx._best_words
    monkeypatch.setattr(
        read.SqliteReadTx, "_best_words", lambda self, *given: told.append(best(self, *given)) or told[-1]
    )
    assert search() == everything
    assert len(told) == 1
    assert (told[0] is None) == (asked[0] == "rare")  # two of its words are too rare to fill the list


def test_two_of_needs_two():
    assert read._two_of(["a"]) == ""
    assert read._two_of(["a", "b"]) == "((a) AND (b))"
    assert read._two_of(["a", "b", "c"]) == "((b) AND (c)) OR ((a) AND (b OR c))"
