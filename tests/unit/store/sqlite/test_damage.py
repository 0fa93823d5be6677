"""Damage is noticed: every flipped bit that is not in unused space, a log that was cut short, a file that vanished."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from reverie.app import build_host, upgrade_store
from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope
from reverie.core.errors import ReverieError, StoreCorrupt
from reverie.core.event import NewEvent
from reverie.host import Host
from reverie.http import run
from reverie.ops.doctor import examine
from reverie.services import Services
from reverie.settings import Settings
from reverie.store.contract import WriteTx
from reverie.store.rows import positions_of
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite.checksums import has_checksums, load, sealed, sound
from reverie.store.transfer import ENTRY

ADA, EVE = Actor(tenant="acme", id="ada"), Actor(tenant="rival", id="eve")
FLIPS = 400 if os.environ.get("REVERIE_SOAK") else 48
PAGE = 4096


def settings(folder: Path) -> Settings:
    return Settings.load({}, data=str(folder), embedder="none")


def fill(host: Host, entries: int = 120) -> None:
    """A little of everything: entries of several states, documents, links, keys, two tenants."""
    for n in range(entries):
        draft = Draft(f"note {n}: " + "the kettle is blue. " * (n % 40), tags=("a", f"t{n}"), subject=f"s{n % 9}")
        host.entries.put(ADA if n % 3 else EVE, f"notes/{n % 4}", [draft], idempotency_key=f"key-{n}")
    host.keys.create("acme", name="robot")
    host.rules.set_policy(ADA, {"max_tags": 32})
    host.forget.forget(ADA, "s1")

    def more(tx: WriteTx) -> None:
        seq = tx.append(NewEvent("document.saved", "SAVE", "ada"))
        tx.save("files", "readme", random.Random(4).randbytes(20_000), seq=seq)

    host.parts.store.write(Scope("acme", "notes/1"), more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a populated file."""
    folder = tmp_path_factory.mktemp("whole")
    host = build_host(settings(folder))
    fill(host)
    host.close()
    return (folder / "reverie.db").read_bytes()


def noticed(folder: Path) -> bool:
    """Whether `doctor`, which does what `audit verify` does for every tenant, fails on the memory in a folder."""
    try:
        host = build_host(settings(folder), create=False)
    except ReverieError:
        return True
    try:
        return any(check.status == "fail" for check in examine(host, settings(folder)))
    finally:
        host.close()


def test_a_damaged_page_stops_a_transfer_as_damage_and_not_as_an_error_of_the_driver(
    whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "reverie.db"
    path.write_bytes(whole)
    db = apsw.Connection(str(path))
    page = db.execute("SELECT pageno FROM dbstat WHERE name = 'entry' AND pagetype = 'leaf' LIMIT 1").get
    db.close()
    data = bytearray(whole)
    data[page * PAGE - 100] ^= 0xFF
    path.write_bytes(bytes(data))
    store = SqliteStore(path)
    transfer = store.transfer()
    try:
        tenants = transfer.tenants()
        keys = {tenant.n: [(positions_of(tenant.n)[0] + at,) for at in range(1, 121)] for tenant in tenants}
        with pytest.raises(StoreCorrupt):
            [list(transfer.stream(tenant, ENTRY)) for tenant in tenants]
        with pytest.raises(StoreCorrupt):
            [list(transfer.stamps(tenant, ENTRY)) for tenant in tenants]
        with pytest.raises(StoreCorrupt):
            [transfer.rows(tenant, ENTRY, keys[tenant.n]) for tenant in tenants]
    finally:
        transfer.close()
        store.close()


def free_pages(path: Path) -> set[int]:
    """Pages that hold nothing: SQLite never reads them."""
    db = apsw.Connection(str(path))
    used = {row[0] for row in db.execute("SELECT pageno FROM dbstat")}
    count = db.execute("PRAGMA page_count").get
    db.close()
    return set(range(1, count + 1)) - used


def test_a_new_file_has_checksums_on_every_page(whole: bytes) -> None:
    assert load() is not None
    assert has_checksums(whole)
    assert all(sound(whole[at : at + PAGE]) for at in range(0, len(whole), PAGE))
    page = whole[PAGE : 2 * PAGE]
    assert sealed(page[:-8] + bytes(8)) == page


def test_every_flipped_bit_is_noticed(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "reverie.db"
    path.write_bytes(whole)
    free = free_pages(path)
    chance = random.Random(20)
    places = [*range(100), *(chance.randrange(len(whole)) for _ in range(FLIPS))]
    if not os.environ.get("REVERIE_SOAK"):
        places = [*range(16, 100, 6), *places[100:]]
    missed = []
    for at in places:
        for name in ("-wal", "-shm", "-anchor", "-reserve"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :])
        if not noticed(tmp_path) and at // PAGE + 1 not in free:
            missed.append(at)
    assert missed == []
    path.write_bytes(whole)
    assert not noticed(tmp_path)


def test_a_damaged_page_is_an_error_and_never_an_answer(whole: bytes, tmp_path: Path) -> None:
    at = whole.index(b"note 101: ")
    path = tmp_path / "reverie.db"
    path.write_bytes(whole[:at] + b"nota" + whole[at + 4 :])
    with pytest.raises(StoreCorrupt, match="reverie restore"):
        SqliteStore(path).check()


def test_wiping_after_a_forget_keeps_the_checksums(tmp_path: Path) -> None:
    host = build_host(settings(tmp_path))
    fill(host)
    for n in range(2, 9):
        host.forget.forget(ADA, f"s{n}")
        host.forget.forget(EVE, f"s{n}")
    host.close()
    data = (tmp_path / "reverie.db").read_bytes()
    assert all(sound(data[at : at + PAGE]) for at in range(0, len(data), PAGE))
    assert not noticed(tmp_path)


def test_a_backup_has_checksums_too(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "reverie.db")
    fill(Host(Services(store=store)), entries=30)
    store.backup(str(tmp_path / "copy.db"))
    store.close()
    data = (tmp_path / "copy.db").read_bytes()
    assert has_checksums(data)
    assert all(sound(data[at : at + PAGE]) for at in range(0, len(data), PAGE))


def test_a_log_cut_short_is_noticed(tmp_path: Path) -> None:
    """The write-ahead log of a process that was killed, with its last frames gone: the file is whole, and older."""
    live, found = tmp_path / "live", tmp_path / "found"
    host = build_host(settings(live))
    try:
        fill(host, entries=12)
        host.parts.store.control(lambda tx: tx.tenants())
        found.mkdir(mode=0o700)
        for name in ("reverie.db", "reverie.db-wal", "reverie.db-anchor"):
            shutil.copy(live / name, found / name)
    finally:
        host.close()
    log = (found / "reverie.db-wal").read_bytes()
    assert not noticed(copy(found, tmp_path / "as-it-was"))
    frame = 24 + PAGE
    frames = (len(log) - 32) // frame
    for kept in (frames - 1, frames // 2, 0):
        cut = copy(found, tmp_path / f"kept-{kept}")
        (cut / "reverie.db-wal").write_bytes(log[: 32 + kept * frame])
        assert noticed(cut), kept
    flipped = copy(found, tmp_path / "flipped")
    middle = 32 + (frames // 2) * frame + 100
    (flipped / "reverie.db-wal").write_bytes(log[:middle] + bytes([log[middle] ^ 4]) + log[middle + 1 :])
    assert noticed(flipped)


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def test_the_evidence_stays_until_it_is_removed(tmp_path: Path) -> None:
    host = build_host(settings(tmp_path))
    fill(host, entries=12)
    host.close()
    older = (tmp_path / "reverie.db").read_bytes()
    host = build_host(settings(tmp_path))
    host.entries.put(ADA, "notes/1", [Draft("acknowledged")])
    host.close()
    (tmp_path / "reverie.db").write_bytes(older)
    assert noticed(tmp_path)
    host = build_host(settings(tmp_path))
    for n in range(20):  # more than were lost: the log is as long as it was, and another
        host.entries.put(ADA, "notes/1", [Draft(f"later {n}")])
    assert not host.audit.verify(ADA).ok
    host.close()
    assert noticed(tmp_path)
    (tmp_path / "reverie.db-anchor").unlink()
    assert not noticed(tmp_path)


def test_an_emptied_file_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    host = build_host(settings(tmp_path))
    fill(host, entries=3)
    host.close()
    (tmp_path / "reverie.db").write_bytes(b"")
    with pytest.raises(StoreCorrupt, match=r"remove .*-anchor"):
        build_host(settings(tmp_path))
    (tmp_path / "reverie.db-anchor").unlink()
    build_host(settings(tmp_path)).close()


def test_notes_are_made_for_the_tenants_that_wrote(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "reverie.db")
    host = Host(Services(store=store))
    for n in range(5):
        host.entries.put(ADA, "notes", [Draft(f"{n}")])
    host.entries.put(EVE, "notes", [Draft("theirs")])
    assert {number: note.seq for number, note in store.anchor.read().items()} == {1: 5, 2: 1}
    store.close()


def test_a_file_without_checksums_gets_them(tmp_path: Path, make_plain: Callable[[Path], None]) -> None:
    path = tmp_path / "reverie.db"
    make_plain(path)
    assert not has_checksums(path.read_bytes())
    host = build_host(settings(tmp_path))
    found = {check.name: check for check in examine(host, settings(tmp_path))}
    assert found["checksums"].status == "warn"
    assert "upgrade --finish" in found["checksums"].next_step
    with pytest.raises(ReverieError, match="Stop"):
        upgrade_store(settings(tmp_path), finish=True)
    host.close()
    upgrade_store(settings(tmp_path), finish=True)
    assert has_checksums(path.read_bytes())
    assert not noticed(tmp_path)
    host = build_host(settings(tmp_path))
    assert {check.name: check.status for check in examine(host, settings(tmp_path))}["checksums"] == "ok"
    host.close()


@pytest.fixture
def make_plain(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """`make_plain(path)`: a populated file as an older release made it."""

    def make(path: Path) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("reverie.store.sqlite.store.checksums.load", lambda: None)
            store = SqliteStore(path)
            fill(Host(Services(store=store)), entries=20)
            store.close()

    return make


def test_another_program_that_wrote_to_the_file_is_put_right(whole: bytes, tmp_path: Path) -> None:
    """A page without its checksum, and all else in order: everything is verified and the file written again."""
    path = tmp_path / "reverie.db"
    path.write_bytes(whole)
    foreign = apsw.Connection(str(path), vfs="unix")
    foreign.execute("UPDATE tenant SET wake_at = wake_at + 1")
    foreign.close()
    assert noticed(tmp_path)
    upgrade_store(settings(tmp_path), finish=True, reseal=True)
    assert not noticed(tmp_path)


def test_real_damage_is_never_sealed(whole: bytes, tmp_path: Path) -> None:
    at = whole.index(b"note 101: ")
    path = tmp_path / "reverie.db"
    path.write_bytes(whole[:at] + b"nota" + whole[at + 4 :])
    for reseal in (False, True):
        with pytest.raises(StoreCorrupt):
            upgrade_store(settings(tmp_path), finish=True, reseal=reseal)
    assert noticed(tmp_path)


def test_a_server_says_so_at_its_start(
    whole: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = whole.index(b"note 101: ")
    (tmp_path / "reverie.db").write_bytes(whole[:at] + b"nota" + whole[at + 4 :])
    served: list[str] = []
    monkeypatch.setattr(run.Server, "run", lambda self, sockets: served.append(self._url))
    with pytest.raises(StoreCorrupt, match="reverie restore FILE"):
        run.run(replace(settings(tmp_path), port=0, worker=False))
    assert not served
    run.run(replace(settings(tmp_path), port=0, worker=False, read_only=True))
    assert len(served) == 1
    assert "serve.damaged" in capsys.readouterr().err
