"""Backups: what a failed one leaves behind."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.app import open_store
from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.core.errors import Invalid, StoreError
from reverie.core.files import open_new
from reverie.host import Host
from reverie.ops import backup


@pytest.mark.parametrize("engine", ["sqlite"], scope="session")
def test_a_backup_that_fails_at_its_manifest_leaves_no_key_and_its_name_free(
    make_host: Callable[..., Host], ada: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, file, key = make_host(), tmp_path / "memory.backup", tmp_path / "reverie.key"
    host.entries.put(ada, "notes", [Draft("The tank holds 30 litres.")])
    key.write_bytes(b"k" * 32)
    before = sorted(tmp_path.iterdir())

    def full(path: Path) -> int:
        if path.suffix == ".json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return open_new(path)

    with monkeypatch.context() as patch:
        patch.setattr(backup, "open_new", full)
        with pytest.raises(OSError, match="No space"):
            backup.create(host, file, open_store=open_store, key=key)
    assert sorted(tmp_path.iterdir()) == before
    backup.create(host, file, open_store=open_store, key=key)
    assert file.is_file()


def test_of_two_backups_to_one_name_at_once_one_is_refused_and_the_other_is_whole(
    make_host: Callable[..., Host], ada: Actor, tmp_path: Path
) -> None:
    host, file, refused = make_host(), tmp_path / "memory.backup", list[Invalid]()
    host.entries.put(ada, "notes", [Draft("The tank holds 30 litres.")])

    def make(progress: backup.Progress | None = None) -> None:
        try:
            backup.create(host, file, open_store=open_store, progress=progress)
        except Invalid as fault:
            refused.append(fault)

    meanwhile = iter([make])
    make(lambda *_: next(meanwhile, lambda: None)())
    assert ["exists already" in fault.message for fault in refused] == [True]
    assert backup.verify(file, open_store=open_store)["tenants"]
    assert sorted(one.name for one in tmp_path.glob("*memory.backup*")) == ["memory.backup", "memory.backup.json"]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"], scope="session")
def test_a_store_writes_no_backup_over_another_that_came_meanwhile(
    make_host: Callable[..., Host], ada: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    host, file, refused = make_host(), tmp_path / "copy", list[StoreError]()
    host.entries.put(ada, "notes", [Draft("The tank holds 30 litres.")])
    store: Any = host.parts.store
    verb = "_reading" if engine == "sqlite" else "_transact"
    real = getattr(store, verb)

    def back_up() -> None:
        try:
            store.backup(str(file))
        except StoreError as fault:
            refused.append(fault)

    def meanwhile(*given: Any, **how: Any) -> Any:
        monkeypatch.undo()
        back_up()
        return real(*given, **how)

    monkeypatch.setattr(store, verb, meanwhile)
    back_up()
    assert ["exists already" in fault.message for fault in refused] == [True]
    assert file.stat().st_size
