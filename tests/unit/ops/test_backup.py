"""Backups: what a failed one leaves behind."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.app import open_store
from reverie.core.actor import Actor
from reverie.core.entry import Draft
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
