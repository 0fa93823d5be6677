"""schema.sql is the sum of the migrations; each is applied once, whole, and recorded."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from reverie.core.entry import Scope
from reverie.store import sql
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite import migrate as migrate_module
from reverie.store.sqlite.read import QUERIES

PACKAGE = "reverie.store.sqlite"


def shape(db: apsw.Connection) -> list[tuple[str, str, str]]:
    """Every object of a schema, with its SQL freed of spacing and comments."""
    rows = db.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").fetchall()
    return [
        (str(kind), str(name), " ".join(re.sub(r"([(),])", r" \1 ", str(text)).split())) for kind, name, text in rows
    ]


def test_the_schema_is_the_sum_of_the_migrations() -> None:
    fresh, migrated = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    fresh.execute(files(PACKAGE).joinpath("schema.sql").read_text("utf-8"))
    migrate_module.migrate(migrated, 0)
    assert shape(fresh) == shape(migrated)


def test_a_new_file_has_it_and_says_so(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    migrations = sql.load_migrations(PACKAGE)
    assert store.check()["schema"] == len(migrations)
    for number, _, checksum in migrations:
        recorded = store.control(lambda tx, number=number: tx.setting(f"migration/{number:04d}"))
        assert recorded is not None
        assert recorded.decode().split()[0] == checksum
    store.close()
    db = apsw.Connection(store.path)
    expected = apsw.Connection(":memory:")
    expected.execute(files(PACKAGE).joinpath("schema.sql").read_text("utf-8"))
    assert shape(db) == shape(expected)
    assert db.execute("PRAGMA application_id").get == migrate_module.APPLICATION_ID


def test_opening_again_changes_nothing(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.close()
    before = Path(store.path).read_bytes()
    make_store().close()
    assert Path(store.path).read_bytes() == before


def test_a_later_migration_is_applied_to_an_old_file_once(
    make_store: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope("acme", "notes")
    store = make_store()
    store.write(scope, lambda tx: put(tx, make_entry(id="a")))
    store.close()
    known = sql.load_migrations(PACKAGE)
    more = [*known, (len(known) + 1, "CREATE TABLE later (x); INSERT INTO later VALUES (1)", "sum")]
    monkeypatch.setattr(migrate_module, "load_migrations", lambda package: more)
    for _ in range(2):
        store = make_store()
        assert store.check()["schema"] == len(more)
        assert store.read(scope, lambda tx: tx.get("a")) is not None
        store.close()
    db = apsw.Connection(store.path)
    assert db.execute("SELECT count(*) FROM later").get == 1


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    make_store: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    store.close()
    known = sql.load_migrations(PACKAGE)
    broken = [*known, (len(known) + 1, "CREATE TABLE later (x)", "a"), (len(known) + 2, "CREATE TABLE later (x)", "b")]
    monkeypatch.setattr(migrate_module, "load_migrations", lambda package: broken)
    with pytest.raises(Exception, match="refused"):
        make_store()
    monkeypatch.undo()
    store = make_store()
    assert store.check()["schema"] == len(known)
    store.close()
    names = {name for _, name, _ in shape(apsw.Connection(store.path))}
    assert "later" not in names


def test_every_query_has_a_purpose_and_is_used() -> None:
    text = files(PACKAGE).joinpath("queries.sql").read_text("utf-8")
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("-- name: "):
            assert lines[number + 1].startswith("-- "), line
    folder = Path(str(files(PACKAGE)))
    paths = (*folder.glob("*.py"), *folder.parent.glob("*.py"))
    source = "".join(path.read_text("utf-8") for path in paths)
    assert [name for name in QUERIES if f'"{name}"' not in source] == []
