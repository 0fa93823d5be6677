"""Documents: versioned state that is not memory."""

from __future__ import annotations

from reverie.core.entry import Document
from reverie.core.errors import Conflict
from reverie.core.query import Filter
from reverie.store.conformance.lab import Lab, make_event, refuses
from reverie.store.contract import WriteTx


def _save(lab: Lab, key: str, body: bytes, *, space: str = "files", tenant: str = "acme", **how: object) -> Document:
    return lab.write(
        lambda tx: tx.save(space, key, body, seq=tx.append(make_event("document.saved")), **how),  # type: ignore[arg-type]
        tenant=tenant,
        ref=None,
    )


def _drop(lab: Lab, key: str, *, expected: int | None = None) -> bool:
    return lab.write(
        lambda tx: tx.drop("files", key, seq=tx.append(make_event("document.dropped")), expected=expected), ref=None
    )


def _load(
    lab: Lab, key: str, *, version: int | None = None, space: str = "files", tenant: str = "acme"
) -> Document | None:
    return lab.read(lambda tx: tx.load(space, key, version=version), ref=None, tenant=tenant)


def come_back_as_saved(lab: Lab) -> None:
    """Bytes and metadata are unchanged."""
    saved = _save(lab, "a/b", bytes(range(256)), meta={"type": "x", "n": 1})
    assert (saved.version, saved.body, saved.meta) == (1, bytes(range(256)), {"type": "x", "n": 1})
    assert _load(lab, "a/b") == saved
    assert _load(lab, "a/b", space="other") is None
    assert _load(lab, "a/b", tenant="rival") is None


def keep_the_last_versions(lab: Lab) -> None:
    """The newest version is the default; older ones can be loaded as far as they are kept."""
    for n in range(1, 6):
        assert _save(lab, "k", f"{n}".encode(), keep=3).version == n
    newest = _load(lab, "k")
    assert newest is not None
    assert newest.body == b"5"
    kept = [_load(lab, "k", version=n) for n in range(1, 6)]
    assert [d.body if d else None for d in kept] == [None, None, b"3", b"4", b"5"]


def are_saved_optimistically(lab: Lab) -> None:
    """`expected` 0 means absent; anything else must be the current version."""
    _save(lab, "k", b"1", expected=0)
    with refuses(Conflict, "version_conflict"):
        _save(lab, "k", b"2", expected=0)
    _save(lab, "k", b"2", expected=1)
    with refuses(Conflict, "version_conflict"):
        _save(lab, "k", b"3", expected=1)
    with refuses(Conflict, "version_conflict"):
        _drop(lab, "k", expected=1)
    document = _load(lab, "k")
    assert document is not None
    assert document.body == b"2"


def count_on_after_a_drop(lab: Lab) -> None:
    """A dropped document is absent, and its version count continues."""
    _save(lab, "k", b"1")
    assert _drop(lab, "k", expected=1)
    assert _load(lab, "k") is None
    assert not _drop(lab, "k")
    assert _save(lab, "k", b"2", expected=0).version == 3


def are_listed_with_those_dropped(lab: Lab) -> None:
    """A list leaves dropped documents out unless it asks for their tombstones."""
    for key in ("a", "b", "c"):
        _save(lab, key, key.encode(), keep=5)
    _drop(lab, "b")

    def keys(*, dropped: bool) -> list[tuple[str, bytes | None]]:
        found = lab.read(lambda tx: tx.documents("files", dropped=dropped), ref=None).items
        return [(document.key, document.body) for document in found]

    assert keys(dropped=False) == [("a", b"a"), ("c", b"c")]
    assert keys(dropped=True) == [("a", b"a"), ("b", None), ("c", b"c")]


def lose_their_versions_when_destroyed(lab: Lab) -> None:
    """Destroying leaves no earlier version, also of a document that was dropped before."""
    for key in ("kept", "gone", "dropped"):
        _save(lab, key, b"1", keep=5)
        _save(lab, key, b"2", keep=5)
    lab.write(lambda tx: tx.drop("files", "dropped", seq=tx.append(make_event("document.dropped")), keep=5), ref=None)
    assert _load(lab, "dropped", version=1) is not None

    def destroy(tx: WriteTx) -> list[bool]:
        seq = tx.append(make_event("document.saved"))
        tx.save("files", "kept", b"3", seq=seq, destroy=True)
        return [tx.drop("files", key, seq=seq, destroy=True) for key in ("gone", "dropped", "never")]

    assert lab.write(destroy, ref=None) == [True, True, False]

    def versions(key: str) -> list[int]:
        every = range(1, 5)
        found = lab.read(lambda tx: [tx.load("files", key, version=n, dropped=True) for n in every], ref=None)
        return [document.version for document in found if document is not None]

    assert [versions(key) for key in ("kept", "gone", "dropped")] == [[3], [3], [4]]


def leave_nothing_when_asked(lab: Lab) -> None:
    """A drop that keeps no version leaves no tombstone: the count begins again."""
    _save(lab, "k", b"1", keep=5)
    _save(lab, "k", b"2", keep=5)
    assert lab.write(lambda tx: tx.drop("files", "k", seq=tx.append(make_event("document.dropped")), keep=0), ref=None)
    assert lab.read(lambda tx: tx.load("files", "k", dropped=True), ref=None) is None
    assert _save(lab, "k", b"3", expected=0).version == 1


def are_listed_by_key(lab: Lab) -> None:
    """The newest version of each document, without dropped ones; the prefix is taken literally."""
    for key in ("b", "a%", "ab", "a_c", "dropped"):
        _save(lab, key, b"old", keep=5)
        _save(lab, key, key.encode(), keep=5)
    _drop(lab, "dropped")

    def keys(prefix: str = "") -> list[tuple[str, bytes | None]]:
        page = lab.read(lambda tx: tx.documents("files", prefix=prefix), ref=None)
        return [(d.key, d.body) for d in page.items]

    assert keys() == [("a%", b"a%"), ("a_c", b"a_c"), ("ab", b"ab"), ("b", b"b")]
    assert keys("a") == [("a%", b"a%"), ("a_c", b"a_c"), ("ab", b"ab")]
    assert keys("a_") == [("a_c", b"a_c")]
    assert keys("a%") == [("a%", b"a%")]


def are_not_memory(lab: Lab) -> None:
    """No memory read finds a document."""
    _save(lab, "k", b"kettle")
    assert lab.ids(ref=None) == []
    assert lab.read(lambda tx: tx.match(["kettle"], Filter(), limit=5)) == []
    assert lab.read(lambda tx: tx.refs(), ref=None) == []


def show_their_tombstones_when_asked(lab: Lab) -> None:
    """A dropped document has a version of its own, and the next save continues from it."""
    assert lab.read(lambda tx: tx.load("files", "k", dropped=True), ref=None) is None
    _save(lab, "k", b"1")
    alive = lab.read(lambda tx: tx.load("files", "k", dropped=True), ref=None)
    assert alive is not None
    assert (alive.version, alive.body) == (1, b"1")
    assert _drop(lab, "k")
    stone = lab.read(lambda tx: tx.load("files", "k", dropped=True), ref=None)
    assert stone is not None
    assert (stone.version, stone.body) == (2, None)
    assert _load(lab, "k") is None
    assert _save(lab, "k", b"3").version == 3
