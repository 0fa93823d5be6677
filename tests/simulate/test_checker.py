"""The checker itself: the same number is the same run, and what it is there to find, it finds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.simulate.explore import explore
from tests.simulate.faults import Disk
from tests.simulate.runner import Run
from tests.simulate.seeds import run_seed
from tests.simulate.settle import settle
from tests.simulate.world import NOTES, OTHER, TENANT, Scene

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Entry, Scope
from reverie.dreams.engine import DreamEngine
from reverie.memory import lifecycle
from reverie.memory.entries import Entries
from reverie.memory.policy import RuleBook
from reverie.privacy.forget import Forget
from reverie.store.sqlite.checksums import sound


def first_broken(scene: Scene, *names: str, most: int = 40) -> Run:
    """The first order of these use cases that breaks something."""
    for run in explore(scene, names, most=most, epilogue=settle):
        if run.broken is not None:
            return run
    pytest.fail("nothing was found")


def test_a_seed_is_a_run(sqlite_scene: Scene) -> None:
    for seed in (3, 7, 11):
        one, other = (run_seed(sqlite_scene, seed) for _ in range(2))
        assert one.steps == other.steps
        assert (one.names, one.choices, one.outcomes, one.broken) == (
            other.names,
            other.choices,
            other.outcomes,
            other.broken,
        )


def test_a_simulated_disk_keeps_the_checksums_of_pages(sqlite_scene: Scene) -> None:
    """Pages without them are damaged to the product, which leaves such pages as they are."""
    with sqlite_scene.world(disk=Disk("checked")) as world:
        file = Path(world.store.path)  # type: ignore[attr-defined]
        world.host.entries.put(world.actor(0), NOTES, [Draft(f"Crate {n} is blue.") for n in range(300)])
        world.store.close()
        pages = file.read_bytes()
    size = int.from_bytes(pages[16:18], "big")
    assert all(sound(pages[at : at + size]) for at in range(0, len(pages), size))


def test_a_lost_write_is_found(sqlite_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Entries.put

    def lose(self: Any, actor: Actor, ref: str, drafts: Any, **more: Any) -> Any:
        receipts = put(self, actor, ref, drafts, **more)
        for receipt in receipts:
            lifecycle.Lifecycle(self._parts, self._rules).erase(actor, ref, receipt.id)
        return receipts

    monkeypatch.setattr(Entries, "put", lose)
    assert "acknowledged" in str(first_broken(sqlite_scene, "put", "pin").broken)


def test_a_dream_that_leaves_its_sources_is_found(sqlite_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DreamEngine, "_retire", lambda *_: 0)
    assert "more than once" in str(first_broken(sqlite_scene, "dream", "pin").broken)


def test_a_restored_source_of_a_dream_is_found(sqlite_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "kin", lambda *_: set())
    assert "more than once" in str(first_broken(sqlite_scene, "put", "restore").broken)


def test_text_that_a_forget_leaves_is_found(sqlite_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    forget = Forget.forget

    def pretend(self: Any, actor: Actor, subject: str, **more: Any) -> Any:
        said = forget(self, actor, subject, **{**more, "preview": True})
        seq = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.head().seq)
        return msgspec.structs.replace(said, certificate=seq)

    monkeypatch.setattr(Forget, "forget", pretend)
    assert "certified" in str(first_broken(sqlite_scene, "forget", "pin").broken)


def test_a_write_under_old_rules_is_found(sqlite_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def unguarded(self: Any, tenant: str, prepare: Any, scope: Scope, **_: Any) -> Any:
        return self._parts.store.write(scope, prepare(self.current(tenant)))

    monkeypatch.setattr(RuleBook, "guard", unguarded)
    assert "has a secret" in str(first_broken(sqlite_scene, "put", "secret").broken)


def test_a_change_of_another_tenant_is_found(sqlite_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def astray(self: Any, actor: Actor, ref: str, entry_id: str, **_: Any) -> Any:
        return Entries(self._parts, self._rules).put(Actor(tenant=OTHER, id="eve"), NOTES, [Draft("Astray.")])

    monkeypatch.setattr(lifecycle.Lifecycle, "pin", astray)
    assert "another tenant" in str(first_broken(sqlite_scene, "pin", "put").broken)


def test_a_change_without_an_event_is_found(sqlite_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(self: Any, actor: Actor, ref: str, entry_id: str, **_: Any) -> Entry:
        store: Any = self._parts.store
        with closing(store.inner._connect()) as connection:
            connection.execute("UPDATE entry SET content = 'Something else.' WHERE id = ?", (entry_id,))
        found: Entry = store.inner.read(Scope(TENANT, ref), lambda tx: tx.get(entry_id))
        return found

    monkeypatch.setattr(lifecycle.Lifecycle, "pin", silent)
    assert "audit verify" in str(first_broken(sqlite_scene, "pin", "policy").broken)
