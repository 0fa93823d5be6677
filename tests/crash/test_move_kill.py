"""Kill a real `reverie migrate-store` at any line, go on, kill it again: the memory arrives as it was, to the last hash."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.test_move import content
from tests.crash import mover
from tests.crash.converser import SCOPE, open_window
from tests.processes import run
from tests.responses_emulator import Emulator, message, thought
from tests.stores import open_store

import reverie
from reverie.api.cli import main
from reverie.core.dream import DreamPlan
from reverie.core.errors import ReadOnly
from reverie.core.ports import ForgetLine
from reverie.ops.move import carry_files
from reverie.privacy.ledger import FileLedger
from reverie.settings import Settings

SOAK = bool(os.environ.get("REVERIE_SOAK"))
SECRET = "velvetquokkahunter"
LINES = 6000
"""As many as are executed in a move of what `fill` stores."""
LATE = ("carry_files", "put_above", "seal", "set_head", "stopped", "reopen")
"""Functions with few lines, which matter most: a random line would seldom be one of theirs."""


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=8000, model=lambda turn: [thought(), message(f"{len(turn.facts)} facts.")]) as emulator:
        yield emulator


def fill(target: str, provider: Emulator) -> None:
    """One of everything: dreams with links and archives, what was forgotten, a registered secret, a window, a neighbour."""
    with reverie.open(target) as memory:
        bot = memory.ref("bot")
        bot.put_many([f"Order {n} was shipped to warehouse {n % 7} and invoice {n * 31} is paid." for n in range(30)])
        memory.host.dreams.run(memory.actor, DreamPlan("bot"))
        bot.put_many([{"content": f"Shelf {n} holds box {n * 17}.", "tags": ["shelf", f"s{n % 3}"]} for n in range(30)])
        bot.put("Carol likes tea.", subject="carol")
        memory.forget("carol")
        memory.register_secret("phrase", SECRET)
        memory.host.keys.create("default", name="bot")
        memory.host.schedules.save(memory.actor, {"cron": "0 3 * * *", "ref": "bot"})
        window = open_window(memory, provider.url, provider.key)
        for number in range(3):
            window.create(model="gpt-5.6-sol", input=f"fact:first-{number} " + "word " * 80)
    with reverie.open(target, tenant="other") as memory:
        memory.ref("notes").put("A neighbour lives here.")


def everything(target: str) -> dict[str, Any]:
    store = open_store(target)
    try:
        return content(store)
    finally:
        store.close()


def write_meanwhile(source: str, target: str, number: int) -> None:
    """Somebody uses the memory between two attempts. It is closed only when all of it has arrived."""
    with reverie.open(source) as memory:
        try:
            memory.ref("bot").put(f"Meanwhile {number}.", tags=["shelf"])
            memory.host.lifecycle.erase(memory.actor, "bot", memory.ref("bot").list(limit=9).items[-1].id)
        except ReadOnly:
            assert everything(target) == everything(source)


def url_of(target: str) -> str:
    return target if "://" in target else f"sqlite:///{target}/reverie.db"


def move_with_deaths(source: str, target: str, keys: Path, chance: random.Random) -> int:
    """Start the move until one comes through; how many of them died."""
    before = everything(source)
    deaths = 0
    points = [
        ("put", chance.randrange(6, 9), chance.randrange(1, 8)),  # some entries are there, and others are not
        ("put", chance.randrange(2, 8), chance.randrange(1, 8)),
        (chance.choice(LATE), chance.randrange(1, 3), chance.randrange(1, 9)),
        ("", 0, chance.randrange(LINES)),
        None,
    ]
    for number, point in enumerate(points):
        deaths += run(mover.main, url_of(source), url_of(target), point, REVERIE_DATA=str(keys)) != 0
        if point and chance.random() < 0.5:
            write_meanwhile(source, target, number)
    after = everything(source)
    assert everything(target) == after
    assert after["default/event"][: len(before["default/event"])] == before["default/event"]  # nothing was rewritten
    return deaths


def use(target: str, provider: Emulator, name: str) -> None:
    """It is whole, verified, and goes on: the log, the dream, the secret, the window."""
    for tenant in ("default", "other"):
        with reverie.open(target, tenant=tenant) as memory:
            assert memory.verify().ok
    with reverie.open(target) as memory:
        (dream,) = memory.dreams.list("bot")
        assert memory.dreams.verify(dream.id).ok
        assert memory.archive(str(dream.checksum))
        stored = memory.ref("bot").put(f"{name} said {SECRET} again.")
        assert "[REDACTED:phrase]" in memory.ref("bot").get(stored.id).content  # its key came along
        window = open_window(memory, provider.url, provider.key)
        known = len({word for item in window.items() for word in str(item).split() if "fact:" in word})
        answer = window.create(model="gpt-5.6-sol", input=f"fact:{name}")
        assert answer.output_text == f"{known + 1} facts."
        assert memory.host.windows.show(memory.actor, SCOPE)["items"]


def test_a_move_that_is_killed_again_and_again_arrives_unchanged_there_and_back(
    tmp_path: Path, make_database: Callable[[], str], provider: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = 0
    for turn in range(100 if SOAK else 1):
        chance = random.Random(20261117 + turn)
        here, there, back = str(tmp_path / f"{turn}-here"), make_database(), str(tmp_path / f"{turn}-back")
        keys = tmp_path / f"{turn}-keys"
        monkeypatch.setenv("REVERIE_DATA", str(keys))
        fill(here, provider)
        deaths += move_with_deaths(here, there, keys, chance)
        use(there, provider, f"there-{turn}")
        deaths += move_with_deaths(there, back, keys, chance)
        use(back, provider, f"back-{turn}")
        for left in (here, there):
            with reverie.open(left) as memory, pytest.raises(ReadOnly):
                memory.ref("bot").put("Too late.")
    assert deaths >= 4


def test_the_files_beside_the_database_are_carried_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REVERIE_DATABASE_URL", raising=False)
    source, outcome, number = tmp_path / "source", -9, 0
    source.mkdir()
    (source / "reverie.key").write_bytes(os.urandom(32))
    for n in range(3):
        FileLedger(source / "forgotten.jsonl").add(ForgetLine(tenant="default", subject=f"hash-{n}", ref=None, at=n))
    while outcome == -9:
        number += 1
        target = tmp_path / str(number)
        outcome = run(mover.carry, str(source), str(target), number)
        key = target / "reverie.key"
        assert not key.exists() or key.read_bytes() == (source / "reverie.key").read_bytes()
        carry_files(Settings.load(data=str(source)), Settings.load(data=str(target)))
        assert key.read_bytes() == (source / "reverie.key").read_bytes()
        carried = list(FileLedger(target / "forgotten.jsonl").all())
        assert carried == list(FileLedger(source / "forgotten.jsonl").all())
    assert number > 10


def test_a_target_with_another_key_is_refused_before_anything_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REVERIE_DATABASE_URL", raising=False)
    for name in ("here", "there"):
        with reverie.open(tmp_path / name) as memory:
            memory.register_secret("phrase", SECRET)
    (tmp_path / "there" / "reverie.db").unlink()
    urls = [f"sqlite:///{tmp_path / name / 'reverie.db'}" for name in ("here", "there")]
    assert main.run(["migrate-store", *urls]) != 0
    assert "another key" in capsys.readouterr().err
    assert not (tmp_path / "there" / "reverie.db").exists()
