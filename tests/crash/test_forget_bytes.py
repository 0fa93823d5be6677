"""After a forget, no byte of the subject's text is anywhere: database, write-ahead log, free pages, later backups."""

from __future__ import annotations

from pathlib import Path

import reverie
from reverie.core.dream import DreamPlan

WORDS = ("Quixoticon", "zephyrania", "VBX-99817", "marzipanfjord")


def traces(folder: Path) -> list[tuple[str, str]]:
    found = []
    for file in sorted(folder.rglob("*")):
        data = file.read_bytes().lower() if file.is_file() else b""
        found += [(file.name, word) for word in WORDS if word.lower().encode() in data]
    return found


def fill(memory: reverie.Memory) -> None:
    bot = memory.ref("bot")
    bot.put_many([f"Order {n} left hall {n % 7} with {n * 13} crates for the usual customer." for n in range(200)])
    for n in range(20):
        bot.put(
            f"Quixoticon asked for zephyrania number {n} under file VBX-99817 near marzipanfjord.",
            subject="quix",
            tags=["Quixoticon"],
            attributes={"place": "marzipanfjord"},
        )
    bot.put_many([f"Later order {n} left hall {n % 5} with {n * 17} crates." for n in range(200)])


def test_nothing_of_a_subject_remains_after_dreams_and_a_forget(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with reverie.open(folder) as memory:
        memory.set_policy(dream_budget=100_000)
        fill(memory)
        first = memory.host.dreaming.run(memory.actor, DreamPlan("bot"))
        fill(memory)
        second = memory.host.dreaming.run(memory.actor, DreamPlan("bot"))
        assert first is not None
        assert second is not None
        assert traces(folder)
        done = memory.forget("quix")
        assert done.forgotten == 40
        assert done.derived == 2
        assert memory.verify().ok
        (tmp_path / "later").mkdir()
        memory.host.parts.store.backup(str(tmp_path / "later" / "copy.db"))
    assert not traces(folder)
    assert not traces(tmp_path / "later")
