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


def _near(
    lab: Lab, vector: bytes, where: Filter | None = None, *, limit: int = 10, model: str = _MODEL, **at: str
) -> list[str]:
    found = lab.read(lambda tx: tx.nearest((model, vector), where or Filter(), limit=limit), **at)
    return [match.entry.id for match in found]


def are_exact(lab: Lab) -> None:
    """The order is that of a plain sum of products, ties by insertion, at every limit."""
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
    """The best matching entries are found, even when no nearer entry matches."""
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


def only_one_model_takes_part(lab: Lab) -> None:
    """A vector of another model, or of another length, is not a candidate; a zero vector finds nothing.

    `name+2` is the model `name` over texts that were cut in another way; such vectors are compared.
    """
    two = lab.put(id="two", vector=("m2", _vector(1, 2)))
    other = lab.put(id="other", vector=("m9", _vector(1, 2)))
    lab.put(id="cut", vector=("m2+7", _vector(1, 2)))
    lab.put(id="three", vector=("m3", _vector(1, 2, 3)))
    lab.put(id="none")
    assert _near(lab, _vector(1, 2), model="m2") == ["two", "cut"]
    assert _near(lab, _vector(1, 2), model="m2+8") == ["two", "cut"]
    assert _near(lab, _vector(1, 2), model="m9") == ["other"]
    assert _near(lab, _vector(3, 2, 1), model="m3") == ["three"]
    assert _near(lab, _vector(3, 2, 1), model="m2") == []
    assert _near(lab, _vector(0, 0), model="m2") == []
    positions = [two.position, other.position]
    assert lab.read(lambda tx: tx.cosines(("m9", _vector(3, 4)), positions)).keys() == {other.position}
    lab.write(lambda tx: tx.index("two", seq=tx.append(make_event()), terms=None, vector=("m9", _vector(1, 2))))
    assert _near(lab, _vector(1, 2), model="m2") == ["cut"]
    assert _near(lab, _vector(1, 2), model="m9") == ["two", "other"]


def find_agrees_with_match_and_nearest(lab: Lab) -> None:
    """`find` is both at once: the same passages, scores and cosines, with and without a filter."""
    chance = random.Random(11)  # noqa: S311
    entries = [
        make_entry(
            id=f"{n}",
            content=" ".join(f"w{chance.randrange(12)}" for _ in range(6)),
            tags=("half",) if n % 2 else (),
        )
        for n in range(150)
    ]
    vectors = [_vector(*(chance.randint(-127, 127) for _ in range(8))) for _ in entries]
    lab.write(lambda tx: [put(tx, entry, vector=(_MODEL, own)) for entry, own in zip(entries, vectors, strict=True)])
    asked, query = ["w3", "w7", "nothing"], (_MODEL, _vector(*range(8)))
    for where in (Filter(), Filter(tags=("half",)), Filter(tags=("no",))):
        found, matched, near = lab.read(
            lambda tx, where=where: (  # type: ignore[misc]
                tx.find(asked, query, where, limit=20, ahead=5),
                tx.match(asked, where, limit=20),
                tx.nearest(query, where, limit=20),
            )
        )
        by_words = {one.entry.id: (one.score, one.cover) for one in found if one.score is not None}
        assert by_words == {one.entry.id: (one.score, one.cover) for one in matched}
        cosines = {one.entry.id: one.cosine for one in found}
        assert cosines.items() >= {one.entry.id: one.score for one in near}.items()
        exact = lab.read(lambda tx, found=found: tx.cosines(query, [one.entry.position for one in found]))  # type: ignore[misc]
        assert {one.entry.position: [one.cosine] for one in found} == exact
    assert lab.read(lambda tx: tx.find([], None, Filter(), limit=5)) == []
    assert lab.read(lambda tx: len(tx.find(asked, None, Filter(), limit=5))) == 5
    assert lab.read(lambda tx: len(tx.find([], query, Filter(), limit=5))) == 5


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
    assert lab.read(lambda tx: tx.cosines((_MODEL, _vector(3, 4)), positions)) == {with_vector.position: [11 / 127**2]}
    assert lab.read(lambda tx: tx.cosines((_MODEL, _vector(3, 4)), positions), tenant="rival") == {}


def cosines_follow_every_change(lab: Lab) -> None:
    """Cosines are those of a search by meaning: of the present vector, if there is one of that length."""
    query = _vector(127, 0)
    entry = lab.put(id="a", vector=(_MODEL, _vector(127, 0)))

    def scores() -> list[tuple[dict[int, Sequence[float]], bool]]:
        return [
            (dict(lab.read(lambda tx, q=q: tx.cosines((_MODEL, q), [entry.position]))), bool(_near(lab, q)))  # type: ignore[misc]
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
    """A write sees its own vectors; when it fails, no other transaction sees them."""
    lab.put(id="a", vector=(_MODEL, _vector(1, 2)))

    def body(tx: WriteTx) -> None:
        put(tx, make_entry(id="b"), vector=(_MODEL, _vector(1, 2)))
        assert [m.entry.id for m in tx.nearest((_MODEL, _vector(1, 2)), Filter(), limit=5)] == ["a", "b"]
        raise KeyError

    try:
        lab.write(body)
    except KeyError:
        assert _near(lab, _vector(1, 2)) == ["a"]
    else:
        raise AssertionError("the body's error was swallowed")
