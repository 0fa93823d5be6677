"""Real processes dreaming, writing and forgetting on one memory at once."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.processes import Child

import reverie
from reverie.core.dream import DreamPlan
from reverie.core.entry import EntryState, Scope
from reverie.memory.read import ANYTHING

SOAK = bool(os.environ.get("REVERIE_SOAK"))
ROUNDS = 40 if SOAK else 6
SCOPE = Scope("default", "bot")


def dream(target: str, rounds: int) -> None:
    with reverie.open(target) as memory:
        for _ in range(rounds):
            try:
                memory.host.dreams.run(memory.actor, DreamPlan("bot", fit=True))
            except reverie.ReverieError as error:
                if error.reason not in ("busy", "dream_gate_failed"):
                    raise


def write(target: str, rounds: int, name: str) -> None:
    with reverie.open(target) as memory:
        for n in range(rounds * 10):
            subject = "zed" if n % 5 == 0 else None
            text = f"Writer {name} noted item {n} on shelf {n % 9} with code K{n:04d}."
            os.write(1, f"{memory.ref('bot').put(text, subject=subject).id}\n".encode())


def forget(target: str, rounds: int) -> None:
    with reverie.open(target) as memory:
        for _ in range(rounds):
            try:
                memory.forget("zed")
            except reverie.ReverieError as error:
                if error.reason != "busy":
                    raise


def test_dreaming_writing_and_forgetting_at_once_loses_and_doubles_nothing(make_target: Callable[..., str]) -> None:
    folder = make_target()
    with reverie.open(folder) as memory:
        memory.ref("bot").put_many([f"Seed note {n} about crate {n % 6} and tag T{n}." for n in range(60)])
    writers = [Child(write, folder, ROUNDS, str(n)) for n in range(2)]
    others = [Child(main, folder, ROUNDS) for main in (dream, dream, forget)]
    assert [process.end(seconds=240) for process in (*writers, *others)] == [0] * 5
    acknowledged = [entry_id for process in writers for entry_id in process.said.decode().split()]
    with reverie.open(folder) as memory:
        memory.forget("zed")
        assert memory.verify().ok
        notes = memory.ref("bot")
        readable = {entry.id for entry in notes.list(limit=1000).items}
        reports = memory.host.lineage.reports(memory.actor, limit=1000)

        def sources(*states: str) -> list[str]:
            outputs = [report.output_id for report in reports if report.state in states and report.output_id]
            links = [link for output in outputs for link in notes.links(output)]
            return [link.to_id for link in links if link.type == "distilled-from"]

        taken = sources("done")
        assert len(taken) == len(set(taken)), "two dreams took one entry"
        kept = readable | set(sources("done", "superseded"))
        for entry_id in acknowledged:
            entry = memory.host.parts.store.read(SCOPE, lambda tx, wanted=entry_id: tx.get(wanted, where=ANYTHING))
            assert entry is not None
            assert entry.state is EntryState.ERASED or entry.id in kept
            assert entry.subject != "zed"
