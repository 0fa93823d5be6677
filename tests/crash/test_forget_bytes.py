"""After a forget, no byte of the subject's text is anywhere: database, write-ahead log, free pages, later backups.

What PostgreSQL keeps in its files until it needs the room is gone after the rewrite that docs/postgres.md names; before
it, no query can reach it any more, whoever asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.postgres import PostgresServer

import reverie
from reverie.core.dream import DreamPlan
from reverie.protocols.mem0.memories import Memories

WORDS = ("Quixoticon", "zephyrania", "VBX-99817", "marzipanfjord")


def words_in(data: bytes) -> list[str]:
    """Words that stand there, as they are or as hexadecimal digits."""
    low = data.lower()
    forms = ((word, word.lower().encode()) for word in WORDS)
    return [word for word, plain in forms if plain in low or plain.hex().encode() in low]


def traces(folder: Path) -> list[tuple[str, str]]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [(file.name, word) for file in files for word in words_in(file.read_bytes())]


def files_of(server: PostgresServer, database: str) -> Path:
    server.execute("CHECKPOINT")
    number = server.execute(f"SELECT oid FROM pg_database WHERE datname = '{database}'")[0][0]
    return server.folder / "base" / str(number)


def traces_after_rewrite(target: str, server: PostgresServer, database: str) -> list[tuple[str, str]]:
    """What is left by the rewrite of docs/postgres.md, repeated as it says: while the server's own ANALYZE has a snapshot
    open, old rows are copied into the new files."""
    with psycopg.connect(target, autocommit=True) as connection:
        for _ in range(20):
            connection.execute("VACUUM FULL reverie.entry, reverie.tag, reverie.link, reverie.document")
            connection.execute("VACUUM FULL pg_catalog.pg_statistic")
            left = traces(files_of(server, database))
            if not left:
                break
            time.sleep(0.5)
    return left


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


def test_a_forgotten_user_of_mem0_is_not_named_anywhere(
    make_target: Callable[..., str], engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The log keeps the names of memories, in its chain and in tombstones: such a name does not hold the user's."""
    target, user = make_target(), f"{WORDS[0]}@{WORDS[1]}.example"
    with reverie.open(target) as memory:
        memory.set_policy(dream_budget=100_000)
        memories = Memories(memory.host, memory.actor)
        told = [("user", f"Order {n} left hall {n % 7} with {n * 13} crates.") for n in range(200)]
        memories.add(told, {"user_id": user}, metadata={}, created_at=None, expires_at=None)
        assert memories.search("What left hall 3?", {"user_id": user}, limit=3, threshold=0.0)
        assert memories.page({"user_id": user.upper()}, start=0, size=1)[0] == 0
        assert memory.host.dreams.run(memory.actor, DreamPlan(memories.entities()[0]["id"])) is not None
        if engine == "sqlite":
            assert traces(Path(target))
        assert memory.forget(user).forgotten == 200
        assert memory.verify().ok
        (tmp_path / "later").mkdir()
        memory.host.parts.store.backup(str(tmp_path / "later" / "copy"))
    assert not traces(tmp_path / "later")
    if engine == "sqlite":
        assert not traces(Path(target))
    else:
        server = request.getfixturevalue("postgres")
        assert not server.tables_with(WORDS, str(psycopg.conninfo.conninfo_to_dict(target)["dbname"]))


def test_nothing_of_a_subject_remains_after_dreams_and_a_forget(
    make_target: Callable[..., str], engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target = make_target()
    with reverie.open(target) as memory:
        memory.set_policy(dream_budget=100_000)
        fill(memory)
        first = memory.host.dreams.run(memory.actor, DreamPlan("bot"))
        fill(memory)
        second = memory.host.dreams.run(memory.actor, DreamPlan("bot"))
        assert first is not None
        assert second is not None
        if engine == "postgres":
            server = request.getfixturevalue("postgres")
            database = str(psycopg.conninfo.conninfo_to_dict(target)["dbname"])
            server.execute("ANALYZE", database=database)  # as it does by itself, some time
            assert server.tables_with(WORDS, database)
            assert traces(files_of(server, database))
        else:
            assert traces(Path(target))
        done = memory.forget("quix")
        assert done.forgotten == 40
        assert done.derived == 2
        assert memory.verify().ok
        (tmp_path / "later").mkdir()
        memory.host.parts.store.backup(str(tmp_path / "later" / "copy"))
    assert not traces(tmp_path / "later")
    if engine == "sqlite":
        assert not traces(Path(target))
        return
    assert not server.tables_with(WORDS, database)
    assert not traces_after_rewrite(target, server, database)
