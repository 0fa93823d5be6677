"""A full disk: reads go on, what erases is done from the reserve, everything else is refused until there is room."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft, EntryState, Scope
from reverie.core.errors import StoreFull
from reverie.core.query import Filter
from reverie.host import Host
from reverie.importers.run import Importer, undo
from reverie.ops import health as health_module
from reverie.ops.health import Health
from reverie.privacy.ledger import FileLedger
from reverie.services import Services
from reverie.settings import Settings
from reverie.store.conformance import HandClock
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite import reserve as reserve_module

ADA = Actor(tenant="acme", id="ada")
MB = 2**20


class SmallDisk:
    """A folder on a disk of so many bytes, for everything that goes through SQLite or allocates a reserve."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.capacity = 64 * MB
        self.refuses = False
        """Whether it takes no write at all, not even into room a file has."""

    def used(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir() if not path.name.endswith("-shm"))

    def need(self, path: str, end: int) -> None:
        """Raise when a file could not grow so far."""
        if self.refuses:
            raise apsw.FullError("no room")
        size = os.stat(path).st_size if os.path.exists(path) else 0  # noqa: PTH110, PTH116
        if end > size and self.used() + end - size > self.capacity:
            raise apsw.FullError("no room")

    def fill(self) -> None:
        self.capacity = self.used()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
    made = SmallDisk(tmp_path)

    class File(apsw.VFSFile):
        def __init__(self, name: Any, flags: Any) -> None:
            self.path = name.filename() if isinstance(name, apsw.URIFilename) else name
            super().__init__("", name, flags)

        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
            if self.path is not None:  # else a temporary file, elsewhere
                made.need(self.path, offset + len(data))
            super().xWrite(data, offset)

    class Vfs(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("small-disk", "")

        def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:  # noqa: N802
            return File(name, flags)

    def allocate(descriptor: int, size: int) -> None:
        if made.used() + size > made.capacity:
            raise OSError(errno.ENOSPC, "no room")
        os.ftruncate(descriptor, size)

    monkeypatch.setattr(reserve_module, "_allocate", allocate)
    monkeypatch.setattr(reserve_module, "MOST_BYTES", 2 * MB)
    monkeypatch.setattr(reserve_module, "_TRY_AGAIN_SECONDS", 0)
    vfs = Vfs()
    yield made
    vfs.unregister()


@pytest.fixture
def open_host(disk: SmallDisk) -> Iterator[Callable[[], Host]]:
    opened: list[Host] = []

    def make() -> Host:
        store = SqliteStore(disk.folder / "reverie.db", clock=HandClock(), reserve=True, vfs="small-disk")
        opened.append(Host(Services(store=store, ledger=FileLedger(disk.folder / "forgotten.jsonl"))))
        return opened[-1]

    yield make
    disk.capacity, disk.refuses = 2**40, False  # a fault that this disk raises while SQLite closes would reach Python
    for host in opened:
        host.close()


def fill(host: Host, disk: SmallDisk, entries: int = 60) -> list[str]:
    """Entries about ten subjects, and then a disk with no byte left."""
    ids = []
    for n in range(entries):
        draft = Draft(f"note {n} " + "kettle " * 300, subject=f"subject {n % 10}")
        ids.append(host.entries.put(ADA, "notes", [draft])[0].id)
    disk.fill()
    with pytest.raises(StoreFull):
        _write_until_full(host)
    return ids


def _write_until_full(host: Host) -> None:
    for _ in range(1000):  # the log has some room of its own
        host.entries.put(ADA, "notes", [Draft("more " * 2000)])


def test_reads_go_on_and_what_erases_is_done(disk: SmallDisk, open_host: Callable[[], Host]) -> None:
    host = open_host()
    ids = fill(host, disk)
    assert host.reader.get(ADA, "notes", ids[0]).id == ids[0]
    assert host.search.search(ADA, "notes", "kettle").hits
    assert host.reader.page(ADA, "notes", limit=5).cursor
    assert host.lifecycle.delete(ADA, "notes", ids[0]).state is EntryState.DELETED
    assert host.lifecycle.erase(ADA, "notes", ids[1]) > 0
    for n in range(2, 10):
        assert host.forget.forget(ADA, f"subject {n}").certificate is not None
    assert host.audit.verify(ADA).ok


def test_what_adds_never_gets_the_reserve(disk: SmallDisk, open_host: Callable[[], Host]) -> None:
    host = open_host()
    ids = fill(host, disk)
    reserve = disk.folder / "reverie.db-reserve"
    before = reserve.stat().st_size
    for _ in range(5):
        with pytest.raises(StoreFull):
            host.entries.put(ADA, "notes", [Draft("more " * 2000)])
        with pytest.raises(StoreFull):
            host.rules.set_policy(ADA, {"max_tags": 12})
    assert reserve.stat().st_size == before
    # another process had to give it up, and there is not enough room to make it again: only what erases is done
    reserve.unlink()
    disk.capacity = disk.used() + before // 2
    with pytest.raises(StoreFull):
        host.entries.put(ADA, "notes", [Draft("a short one")])
    host.lifecycle.erase(ADA, "notes", ids[1])
    disk.capacity += 8 * MB
    host.entries.put(ADA, "notes", [Draft("there is room again")])
    assert reserve.stat().st_size == before
    assert host.audit.verify(ADA).ok


def test_a_full_disk_can_be_opened_and_keys_revoked(disk: SmallDisk, open_host: Callable[[], Host]) -> None:
    host = open_host()
    made = host.keys.create("acme", name="robot")
    ids = fill(host, disk)
    again = open_host()
    assert again.reader.get(ADA, "notes", ids[0]).id == ids[0]
    again.keys.revoke(made.id)
    assert again.keys.all()[0].revoked_at is not None
    assert again.lifecycle.erase(ADA, "notes", ids[0]) > 0


def test_a_ledger_that_does_not_fit_gets_the_reserve_too(
    disk: SmallDisk, open_host: Callable[[], Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = open_host()
    host.entries.put(ADA, "notes", [Draft("about Ada", subject="ada")])
    append = FileLedger._append

    def short(self: FileLedger, lines: Any) -> None:
        if (disk.folder / "reverie.db-reserve").exists():
            raise OSError(errno.ENOSPC, "no room")
        append(self, lines)

    monkeypatch.setattr(FileLedger, "_append", short)
    assert host.forget.forget(ADA, "ada").certificate is not None
    assert (disk.folder / "reverie.db-reserve").exists()


def test_readiness_says_so_and_recovers(
    disk: SmallDisk, open_host: Callable[[], Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_module, "_FRESH_SECONDS", -1.0)
    host = open_host()
    checked = Health(Settings.load({}, data=str(disk.folder)), host)
    monkeypatch.setattr(health_module, "LOW_BYTES", 2**60)  # as if there were little room: then it really tries
    assert checked.ready().checks["write"].status == "ok"
    disk.refuses = True
    found = checked.ready()
    assert found.status == "unavailable"
    assert (found.checks["write"].status, found.checks["write"].detail) == ("unavailable", "storage_full")
    assert found.checks["read"].status == "ok"
    disk.refuses = False
    assert checked.ready().checks["write"].status == "ok"


def test_a_disk_that_fills_up_during_an_import_leaves_whole_batches_that_can_be_taken_back(
    disk: SmallDisk, open_host: Callable[[], Host], tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = open_host()
    before = host.entries.put(ADA, "notes", [Draft("the kettle is blue", subject="ada")])[0]
    source = tmp_path_factory.mktemp("source") / "a.jsonl"
    records = [{"text": f"Line {n}: {'kettle ' * 200}", "subject": f"s{n % 5}"} for n in range(2000)]
    source.write_text("\n".join(map(json.dumps, records)))
    disk.capacity = disk.used() + 2 * MB
    importer = Importer(host, ADA, source, format="jsonl", ref="notes")
    with pytest.raises(StoreFull):
        importer.store()
    kept = host.reader.page(ADA, "notes", Filter(run=f"import-{importer.id}"), limit=1000).items
    assert 0 < len(kept) < 2000
    assert len(kept) % 200 == 0  # each batch is stored whole or not at all
    assert host.search.search(ADA, "notes", "kettle line").hits
    assert host.audit.verify(ADA).ok
    assert host.forget.forget(ADA, "s3").certificate is not None
    assert undo(host, ADA, importer.id).entries == len(kept) - sum(one.subject == "s3" for one in kept)
    assert [one.id for one in host.reader.page(ADA, "notes", limit=10).items] == [before.id]
    assert host.audit.verify(ADA).ok
    disk.capacity += 64 * MB
    assert Importer(host, ADA, source, format="jsonl", ref="notes").store().entries > 1000
    assert host.audit.verify(ADA).ok


def test_a_bundle_that_does_not_fit_is_completed_when_there_is_room(
    disk: SmallDisk, open_host: Callable[[], Host]
) -> None:
    host, eve = open_host(), Actor(tenant="rival", id="eve")
    for n in range(4):
        drafts = [Draft(f"note {n} {k} " + "kettle " * 100, subject=f"s{k % 5}") for k in range(200)]
        host.entries.put(ADA, f"notes/{n}", drafts)
    lines = list(host.bundles.export(ADA))
    disk.capacity = disk.used() + MB // 2
    with pytest.raises(StoreFull):
        host.bundles.take(eve, lines)
    assert host.audit.verify(eve).ok
    stored = host.reader.stats(eve)["entries"]
    assert stored < 800
    assert host.forget.forget(ADA, "s1").certificate is not None
    disk.capacity += 64 * MB
    done = host.bundles.take(eve, lines)
    assert (done.entries, done.skipped) == (800 - stored, stored)
    assert host.audit.verify(eve).ok


def test_a_reserve_that_cannot_be_removed_does_not_stop_the_writer(
    disk: SmallDisk, open_host: Callable[[], Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = open_host()
    ids = fill(host, disk)

    def refused(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "read-only")

    disk.refuses = True
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(StoreFull):
        host.lifecycle.erase(ADA, "notes", ids[1])
    disk.refuses = False
    monkeypatch.undo()
    assert host.lifecycle.erase(ADA, "notes", ids[1]) > 0


def test_scopes_that_only_lease_are_let_through(disk: SmallDisk, open_host: Callable[[], Host]) -> None:
    host = open_host()
    fill(host, disk)
    assert host.parts.store.write(Scope("acme"), lambda tx: tx.claim("sweep", "me", until=tx.now + 1000))
    host.parts.store.write(Scope("acme"), lambda tx: tx.release("sweep", "me"))
