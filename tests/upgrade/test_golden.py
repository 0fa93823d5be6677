"""Data files of every released schema, opened by today's code: everything is still there, and can be written to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.upgrade.make_golden import ADA, EVE, START, describe, open_host

from reverie.core.entry import Draft
from reverie.store.conformance import HandClock
from reverie.store.sql import load_migrations
from reverie.store.sqlite import SqliteStore

GOLDEN = sorted(Path(__file__).parent.glob("v*.db"), key=lambda path: int(path.stem[1:]))


def test_every_schema_has_its_file() -> None:
    assert [path.stem for path in GOLDEN] == [f"v{n}" for n, _, _ in load_migrations("reverie.store.sqlite")]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_old_file_opens_whole(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    clock = HandClock(START + 60_000)
    host = open_host(copy, clock)
    expected = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert json.loads(json.dumps(describe(host))) == expected
    for actor in (ADA, EVE):
        assert host.audit.verify(actor).ok
    host.parts.store.check()
    again = host.entries.put(ADA, "team/notes", [Draft("new words on the heron")], idempotency_key="new")[0]
    assert host.search.search(ADA, "team/notes", "heron new words").hits[0].entry.id == again.id
    host.lifecycle.restore(ADA, "team/other", "deleted")
    assert host.forget.forget(ADA, "zoë").forgotten == 1
    assert host.audit.verify(ADA).ok
    host.close()


@pytest.mark.parametrize("path", [path for path in GOLDEN if int(path.stem[1:]) <= 12], ids=lambda path: path.stem)
def test_vectors_of_an_older_table_are_made_again(path: Path, tmp_path: Path) -> None:
    """Until then the entries are found by words, and the answer says so."""
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    host = open_host(copy, HandClock(START + 60_000))
    before = host.search.search(ADA, "team/notes", "blue kettle")
    assert before.degraded == ("vectors_missing",)
    assert not host.embeddings.complete(ADA)
    host.embeddings.fill(ADA)
    assert host.embeddings.complete(ADA)
    after = host.search.search(ADA, "team/notes", "blue kettle")
    assert after.degraded == ()
    assert after.hits[0].entry.id == before.hits[0].entry.id
    assert after.hits[0].signals["meaning"] > 0
    assert host.audit.verify(ADA).ok
    host.close()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_migrations_it_was_made_with_have_not_changed(path: Path, tmp_path: Path) -> None:
    """A migration that files out there have been through is never edited; a change is a new one."""
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    store = SqliteStore(copy)
    for number, _, checksum in load_migrations("reverie.store.sqlite"):
        recorded = store.control(lambda tx, number=number: tx.setting(f"migration/{number:04d}"))
        assert recorded is not None
        assert recorded.decode().split()[0] == checksum
    store.close()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_old_file_is_small(path: Path) -> None:
    assert path.stat().st_size < 200_000
