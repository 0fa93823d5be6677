"""Vectors: exact cosine over int8."""

from __future__ import annotations

import random
from collections.abc import Sequence

from reverie.core.query import Filter
from reverie.store.conformance.lab import Lab, make_entry, make_event, put
from reverie.store.contract import WriteTx

_MODEL = "conformance/1"


def _vector(*numbers: int) -> bytes:
    return bytes(n % 256 for n in numbers)


def _near(lab: Lab, vector: bytes, where: Filter | None = None, *, limit: int = 10, **at: str) -> list[str]:
    return [m.entry.id for m in lab.read(lambda tx: tx.nearest(vector, where or Filter(), limit=limit), **at)]


def are_exact(lab: Lab) -> None:
    """The same order as a plain sum of products, ties by insertion, whatever the limit."""
    chance = random.Random(7)  # noqa: S311
    vectors = [[chance.randint(-127, 127) for _ in range(16)] for _ in range(300)]
    vectors += vectors[:20]
    lab.write(lambda tx: [put(tx, make_entry(id=f"{n}"), vector=(_MODEL, _vector(*v))) for n, v in enumerate(vectors)])
    query = [chance.randint(-127, 127) for _ in range(16)]
    score = [sum(a * b for a, b in zip(v, query, strict=True)) for v in vectors]
    expected = [str(n) for n in sorted(range(len(vectors)), key=lambda n: (-score[n], n))]
    for limit in (1, 7, 64, 1000):
        assert _near(lab, _vector(*query), limit=limit) == expected[:limit]


def filters_do_not_shorten_the_list(lab: Lab) -> None:
    """The best of those that match, even when everything nearer does not."""
    near, far = _vector(127, 0, 0, 1), _vector(1, 127, 0, 1)
    lab.put_many([make_entry() for _ in range(200)], vector=(_MODEL, near))
    wanted = lab.put_many([make_entry(tags=("red",)) for _ in range(5)], vector=(_MODEL, far))
    assert _near(lab, near, Filter(tags=("red",)), limit=5) == [e.id for e in wanted]


def follow_every_change(lab: Lab) -> None:
    """New, gone, returned with another vector, destroyed: each search sees the present."""
    up, down = _vector(127, 0), _vector(-127, 1)
    lab.put(id="a", vector=(_MODEL, up))
    assert _near(lab, up) == ["a"]
    lab.put(id="b", vector=(_MODEL, up))
    assert _near(lab, up) == ["a", "b"]
    lab.change("a", archived=True)
    assert _near(lab, up) == ["b"]
    lab.change("a", archived=False)
    assert _near(lab, up) == ["b"]
    lab.write(lambda tx: tx.index("a", seq=tx.append(make_event()), terms=None, vector=(_MODEL, down)))
    assert _near(lab, up) == ["b", "a"]
    assert _near(lab, down) == ["a", "b"]
    lab.purge("b")
    assert _near(lab, up) == ["a"]


def only_equal_lengths_take_part(lab: Lab) -> None:
    """A vector of another model's length is no candidate; a zero vector finds nothing."""
    lab.put(id="two", vector=("m2", _vector(1, 2)))
    lab.put(id="three", vector=("m3", _vector(1, 2, 3)))
    lab.put(id="none")
    assert _near(lab, _vector(1, 2)) == ["two"]
    assert _near(lab, _vector(3, 2, 1)) == ["three"]
    assert _near(lab, _vector(0, 0)) == []
    assert _near(lab, _vector(1, 2, 3, 4)) == []


def stay_in_scope(lab: Lab) -> None:
    """Neither another ref nor another tenant."""
    lab.put(id="a", vector=(_MODEL, _vector(1, 2)))
    assert _near(lab, _vector(1, 2), ref="other") == []
    assert _near(lab, _vector(1, 2), tenant="rival") == []


def missing_vectors_are_known(lab: Lab) -> None:
    """`index_state` counts, `unembedded` lists, `cosines` leaves out."""
    with_vector = lab.put(id="a", vector=(_MODEL, _vector(1, 2)))
    without = lab.put(id="b")
    lab.put(id="c", ref="other")
    lab.put(id="gone")
    lab.change("gone", archived=True)
    assert lab.read(lambda tx: tx.index_state(_MODEL)) == (2, 1)
    assert lab.read(lambda tx: tx.index_state(_MODEL), ref=None) == (3, 1)
    assert lab.read(lambda tx: tx.index_state("unknown")) == (2, 0)
    assert [e.id for e in lab.read(lambda tx: tx.unembedded(_MODEL, limit=10), ref=None)] == ["b", "c"]
    positions = [with_vector.position, without.position]
    assert lab.read(lambda tx: tx.cosines(_vector(3, 4), positions)) == {with_vector.position: [11 / 127**2]}
    assert lab.read(lambda tx: tx.cosines(_vector(3, 4), positions), tenant="rival") == {}


def cosines_follow_every_change(lab: Lab) -> None:
    """The same as a search by meaning would give: of the present vector, if there is one of that length."""
    query = _vector(127, 0)
    entry = lab.put(id="a", vector=(_MODEL, _vector(127, 0)))

    def scores() -> list[tuple[dict[int, Sequence[float]], bool]]:
        return [
            (dict(lab.read(lambda tx, q=q: tx.cosines(q, [entry.position]))), bool(_near(lab, q)))  # type: ignore[misc]
            for q in (query, _vector(127, 0, 0))
        ]

    assert scores() == [({entry.position: [1.0]}, True), ({}, False)]
    for vector, expected in (
        (_vector(-127, 0), [({entry.position: [-1.0]}, True), ({}, False)]),
        (_vector(127, 0, 0), [({}, False), ({entry.position: [1.0]}, True)]),
        (_vector(127, 0), [({entry.position: [1.0]}, True), ({}, False)]),
    ):
        lab.write(lambda tx, v=vector: tx.index("a", seq=tx.append(make_event()), terms=None, vector=(_MODEL, v)))  # type: ignore[misc]
        assert scores() == expected
    lab.change("a", archived=True)
    lab.change("a", archived=False)
    assert scores() == [({}, False), ({}, False)]


def are_seen_inside_their_transaction(lab: Lab) -> None:
    """A write sees its own vectors; when it fails, nobody does."""
    lab.put(id="a", vector=(_MODEL, _vector(1, 2)))

    def body(tx: WriteTx) -> None:
        put(tx, make_entry(id="b"), vector=(_MODEL, _vector(1, 2)))
        assert [m.entry.id for m in tx.nearest(_vector(1, 2), Filter(), limit=5)] == ["a", "b"]
        raise KeyError

    try:
        lab.write(body)
    except KeyError:
        assert _near(lab, _vector(1, 2)) == ["a"]
    else:
        raise AssertionError("the body's error was swallowed")
