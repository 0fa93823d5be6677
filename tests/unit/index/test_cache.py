"""An index follows the rows of the store, and forgets what it half did."""

from __future__ import annotations

import pytest
from tests.rows import KEY, MEMORY, Rows

from reverie.core.query import Filter
from reverie.index.cache import IndexCache
from reverie.index.parts import Parts
from reverie.index.postings import ask


def found(cache: IndexCache, tx: Rows, *terms: str) -> list[int]:
    return [match.entry.position for match in cache.match(tx, MEMORY, ask(terms, KEY), Filter(), 50)]


def test_only_what_came_since_is_read() -> None:
    cache, tx = IndexCache(), Rows()
    for position in range(1, 101):
        tx.put(position, "kettle", f"w{position}")
    assert len(found(cache, tx, "kettle")) == 50
    assert found(cache, tx, "w7") == [7]
    tx.put(101, "port")
    tx.put(7, "shelf")
    assert found(cache, tx, "port", "shelf", "w7") == [7, 101]
    assert tx.read == [100, 2]


def test_what_left_is_found_by_nothing_and_counts_for_nothing() -> None:
    cache, tx = IndexCache(), Rows()
    for position in range(1, 9):
        tx.put(position, "kettle", vector=bytes([position, 1]))
    assert len(found(cache, tx, "kettle")) == 8
    for position in range(1, 8):
        tx.take(position)
    assert found(cache, tx, "kettle") == [8]
    assert [m.entry.position for m in cache.nearest(tx, MEMORY, ("m", bytes([1, 1])), Filter(), 9)] == [8]
    assert cache.cosines(tx, MEMORY, ("m", bytes([127, 0])), [1, 8]).keys() == {8}
    assert tx.read[-1] == 0, "nothing is read again"


def test_an_interrupt_in_the_middle_leaves_nothing_half_done() -> None:
    cache, tx = IndexCache(), Rows()
    for position in range(1, 5):
        tx.put(position, "kettle")
    assert found(cache, tx, "kettle") == [1, 2, 3, 4]
    tx.put(5, "kettle")
    tx.take(1)
    tx.fails = True
    with pytest.raises(KeyboardInterrupt):
        found(cache, tx, "kettle")
    tx.fails = False
    assert found(cache, tx, "kettle") == [2, 3, 4, 5]


def test_memories_searched_longest_ago_are_let_go() -> None:
    cache, tx = IndexCache(max_bytes=200_000), Rows()
    for position in range(1, 501):
        tx.put(position, f"w{position}")
    for number in range(20):
        cache.match(tx, (1, f"memory-{number}"), ask(["w7"], KEY), Filter(), 5)
    held = list(cache._held)
    assert 1 <= len(held) < 20
    assert held[-1] == (1, "memory-19")


def test_a_search_after_a_write_costs_no_more_when_many_memories_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, tx = IndexCache(), Rows()
    tx.put(1, "kettle")
    for number in range(50):
        cache.match(tx, (1, f"memory-{number}"), ask(["kettle"], KEY), Filter(), 5)
    sized: list[Parts] = []
    measure = Parts.nbytes.fget
    assert measure is not None

    def counted(parts: Parts) -> int:
        sized.append(parts)
        return measure(parts)

    monkeypatch.setattr(Parts, "nbytes", property(counted))
    tx.put(2, "kettle")
    cache.match(tx, (1, "memory-7"), ask(["kettle"], KEY), Filter(), 5)
    assert len(sized) == 1


TAGGED = Filter(tags=("t",))


def test_a_filter_that_leaves_few_is_asked_for_once_and_little_is_looked_up() -> None:
    cache, tx = IndexCache(), Rows()
    for position in range(1, 2001):
        tx.put(position, "kettle", vector=bytes([1, position % 100]))
    tx.tagged = {500, 1500, 1999}
    by_words = cache.match(tx, MEMORY, ask(["kettle"], KEY), TAGGED, 60)
    by_meaning = cache.nearest(tx, MEMORY, ("m", bytes([0, 1])), TAGGED, 60)
    assert [match.entry.position for match in by_words] == [500, 1500, 1999]
    assert [match.entry.position for match in by_meaning] == [1999, 500, 1500]
    assert tx.asked == [TAGGED]
    assert tx.looked_up == [0, 3, 1, 3]
    tx.now += 1
    cache.match(tx, MEMORY, ask(["kettle"], KEY), TAGGED, 60)
    tx.put(2001, "kettle")
    cache.match(tx, MEMORY, ask(["kettle"], KEY), TAGGED, 60)
    assert tx.asked == [TAGGED] * 3, "another instant, another position of the log"


def test_a_filter_that_leaves_much_is_not_asked_for() -> None:
    cache, tx = IndexCache(), Rows()
    for position in range(1, 2001):
        tx.put(position, "kettle")
    for every, looked_up in ((1, [60]), (2, [60]), (13, [11, 60])):
        tx.tagged = set(range(0, 2001, every))
        tx.looked_up = []
        assert len(cache.match(tx, MEMORY, ask(["kettle"], KEY), TAGGED, 60)) == 60
        assert (tx.asked, tx.looked_up) == ([], looked_up)
