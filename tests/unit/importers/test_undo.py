"""Taking an import back: how many transactions it takes, and entries of another author."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft, EntryState, Source
from reverie.host import Host
from reverie.importers.run import Importer, undo

ME = Actor(tenant="default", id="local:library", door="library")


def test_an_undo_is_a_transaction_for_many_entries(
    make_host: Callable[..., Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"Line {number}."}) for number in range(450)))
    importer = Importer(host, ME, path, format="jsonl", ref="notes")
    assert importer.store().entries == 450

    store, writes = host.lifecycle._parts.store, list[Any]()
    write = store.write
    monkeypatch.setattr(store, "write", lambda *given, **named: writes.append(given) or write(*given, **named))
    seen: list[int] = []
    assert undo(host, ME, importer.id, progress=lambda done, _: seen.append(done)).entries == 450
    assert len(writes) == 3
    assert seen == [200, 400, 450]


def test_entries_of_another_author_are_deleted(make_host: Callable[..., Host]) -> None:
    host = make_host()
    other = Actor(tenant="default", id="key:other", door="rest", authority=4)
    for actor, content in ((ME, "Mine."), (other, "Theirs.")):
        draft = Draft(content=content, id=content, source=Source(run="import-01K"))
        host.entries.put(actor, "notes", [draft])
    weak = Actor(tenant="default", id=ME.id, door="library", authority=4)
    assert undo(host, weak, "01K").entries == 2
    states = {one: host.reader.get(ME, "notes", one, cold=True).state for one in ("Mine.", "Theirs.")}
    assert states == {"Mine.": EntryState.RETRACTED, "Theirs.": EntryState.DELETED}


def test_two_undos_at_once_take_each_entry_back_once(
    make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has read its page when the first commits; it finds nothing left of it and goes on."""
    host = make_host()
    for content in ("One.", "Two."):
        host.entries.put(ME, "notes", [Draft(content=content, source=Source(run="import-01K"))])
    host.entries.put(ME, "other", [Draft(content="Three.", source=Source(run="import-01K"))])
    change_many = host.lifecycle.change_many

    def later(actor: Actor, ref: str, change: str, seen: Any) -> Any:
        if ref == "notes":
            change_many(actor, ref, change, seen)
        return change_many(actor, ref, change, seen)

    monkeypatch.setattr(host.lifecycle, "change_many", later)
    done = undo(host, ME, "01K")
    assert (done.entries, done.refs) == (1, ["other"])
