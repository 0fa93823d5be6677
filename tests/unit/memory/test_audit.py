"""audit verify: whatever is changed behind the store's back is found, and the first broken link is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope
from reverie.host import Host
from reverie.memory.audit import Verdict
from reverie.store.conformance import HandClock
from reverie.store.rows import positions_of

ROWS = 9
COLUMNS: dict[str, list[str]] = {
    # every column with values that could have stood there
    "n": ["n + 1000", "-n", "0", "n + (1 << 40)", "n - (1 << 40)"],
    "epoch": ["epoch + 1", "epoch - 1", "0", "1 << 60"],
    "at": ["at + 1", "at - 1", "0", "'soon'", "1 << 62", "-1"],
    "type": ["'memory.pinned'", "'memory.written '", "''", "upper(type)"],
    "operation": ["'GET'", "''", "lower(operation)"],
    "actor": ["'eve'", "''", "actor || ' '"],
    "session": ["'s-9'", "''"],
    "entry_id": ["'another'", "''"],
    "conflict_id": ["'c-9'", "''"],
    "task_id": ["'t-9'", "''"],
    "data": [
        "'{}'",
        "'garbage'",
        "'[]'",
        "''",
        "replace(data, 'notes', 'other')",
        "json_set(data, '$.bytes', 1)",
        "json_set(data, '$.hash', lower(hex(randomblob(32))))",
        "json_set(data, '$.extra', NULL)",
        "json_remove(data, '$.ref')",
        "x'ff00'",
    ],
    "prev_hash": ["hash", "randomblob(32)", "zeroblob(32)", "x''", "'text'", "zeroblob(64)"],
    "hash": ["prev_hash", "randomblob(32)", "zeroblob(32)", "x''", "'text'"],
}


@pytest.fixture(scope="session")
def engine() -> str:
    """These tests damage a file."""
    return "sqlite"


@pytest.fixture
def built(make_host: Callable[..., Host], ada: Actor, clock: HandClock) -> tuple[Host, Path]:
    """A host with a log of nine events and of all kinds of rows."""
    host = make_host()
    eve = Actor(tenant="rival", id="eve")
    host.entries.put(eve, "notes", [Draft("nothing to see"), Draft("here")])
    for n in range(4):
        host.entries.put(ada, "notes", [Draft(f"The kettle is on shelf {n}.", id=f"e{n}", tags=("t",))])
        clock.advance(5)
    host.lifecycle.pin(ada, "notes", "e0")
    host.lifecycle.archive(ada, "notes", "e1")
    host.lifecycle.erase(ada, "notes", "e2")
    host.rules.set_policy(ada, {"max_tags": 9})
    host.entries.put(ada, "notes", [Draft("The last one.", id="last", subject="zoë", attributes={"k": 1})])
    assert host.audit.verify(ada) == Verdict(True, ROWS, 4, host.reader.stats(ada)["head"])
    return host, Path(host.parts.store.path)  # type: ignore[attr-defined]


def tamper(path: Path, sql: str, bindings: Any = None) -> int:
    """Change the file as someone with a database shell would; the triggers are no wall against them."""
    db = apsw.Connection(str(path))
    db.set_busy_timeout(5000)
    for trigger in ("event_is_final", "event_is_kept"):
        db.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    db.execute(sql, bindings)
    changed = db.changes()
    db.close()
    return changed


def tenant_number(host: Host) -> int:
    return host.parts.store.read(Scope("acme"), lambda tx: tx._tenant)  # type: ignore[attr-defined]


def place(tenant: int, seq: int) -> int:
    """Where an event of a tenant is stored."""
    return positions_of(tenant)[0] + seq


def tail(tenant: int, seq: int) -> tuple[int, int]:
    """Where the events of a tenant from one on are stored."""
    return place(tenant, seq), positions_of(tenant)[1]


def test_every_column_of_the_table_is_tried(built: tuple[Host, Path]) -> None:
    db = apsw.Connection(str(built[1]))
    assert {row[1] for row in db.execute("PRAGMA table_info(event)")} == set(COLUMNS)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_changed_column_is_found_in_every_row(built: tuple[Host, Path], ada: Actor, column: str) -> None:
    host, path = built
    number = tenant_number(host)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous = OFF; DROP TRIGGER event_is_final; DROP TRIGGER event_is_kept")
    db.execute("CREATE TEMP TABLE whole AS SELECT * FROM event")
    tried: dict[str, int] = {}
    for value in COLUMNS[column]:
        for seq in range(1, ROWS + 1):
            at = (place(number, seq),)
            if not db.execute(f"SELECT ({value}) IS NOT {column} FROM event WHERE n = ?", at).get:
                continue  # the value that stands there anyway
            db.execute(f"UPDATE OR REPLACE event SET {column} = {value} WHERE n = ?", at)
            verdict = host.audit.verify(ada)
            assert not verdict.ok, (value, seq)
            assert verdict.broken_at == seq, (value, seq, verdict)
            assert verdict.events == verdict.broken_at - 1
            assert verdict.reason
            tried[value] = tried.get(value, 0) + 1
            db.execute("BEGIN; DELETE FROM event; INSERT INTO event SELECT * FROM whole; COMMIT")
    assert set(tried) == set(COLUMNS[column])
    assert host.audit.verify(ada).ok
    db.close()


@pytest.mark.parametrize("seq", range(1, ROWS + 1))
def test_a_deleted_row_is_found(built: tuple[Host, Path], ada: Actor, seq: int) -> None:
    host, path = built
    tamper(path, "DELETE FROM event WHERE n = ?", (place(tenant_number(host), seq),))
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, seq)


def test_a_deleted_tail_is_found(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    tamper(path, "DELETE FROM event WHERE n BETWEEN ? AND ?", tail(tenant_number(host), 7))
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, 7)


def test_a_deleted_tail_is_found_even_if_the_head_was_moved_back(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    number = tenant_number(host)
    last = host.reader.events(ada, after=5)[0]
    tamper(path, "DELETE FROM event WHERE n BETWEEN ? AND ?", tail(number, 7))
    tamper(path, "UPDATE tenant SET seq = 6, hash = ? WHERE n = ?", (bytes.fromhex(last.hash), number))
    verdict = host.audit.verify(ada)
    assert not verdict.ok  # entries, and states of entries, that the log no longer knows


def test_an_emptied_log_is_found(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    tamper(path, "DELETE FROM event WHERE n BETWEEN ? AND ?", tail(tenant_number(host), 1))
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, 1)


@pytest.mark.parametrize(("one", "other"), [(1, 2), (3, 7), (8, 9)])
def test_two_swapped_rows_are_found(built: tuple[Host, Path], ada: Actor, one: int, other: int) -> None:
    host, path = built
    number = tenant_number(host)
    for before, after in ((one, 1000), (other, one), (1000, other)):
        tamper(path, "UPDATE event SET n = ? WHERE n = ?", (place(number, after), place(number, before)))
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, one)


def test_a_row_of_another_tenant_does_not_fit(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    number = tenant_number(host)
    neighbour = {1: 2, 2: 1}[number]
    tamper(path, "DELETE FROM event WHERE n = ?", (place(number, 1),))
    assert tamper(path, "UPDATE event SET n = ? WHERE n = ?", (place(number, 1), place(neighbour, 1))) == 1
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, 1)


def test_a_row_put_in_between_is_found(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    number = tenant_number(host)
    names = ", ".join(c for c in COLUMNS if c != "n")
    tamper(path, f"INSERT INTO event (n, {names}) SELECT n + 1, {names} FROM event WHERE n = ?", (place(number, 9),))
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, 10)


@pytest.mark.parametrize(
    ("change", "broken_at"),
    [
        ("seq = 8", 9),
        ("seq = 10", 10),
        ("hash = randomblob(32)", 9),
        ("hash = zeroblob(32)", 9),
        ("name = 'renamed'", None),
    ],
)
def test_a_changed_head_is_found(built: tuple[Host, Path], ada: Actor, change: str, broken_at: int | None) -> None:
    host, path = built
    tamper(path, f"UPDATE tenant SET {change} WHERE n = ?", (tenant_number(host),))
    if broken_at is None:  # the log is bound to the tenant's name
        verdict = host.audit.verify(Actor(tenant="renamed", id="ada"))
        broken_at = 1
    else:
        verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, broken_at)


@pytest.mark.parametrize(
    ("entry", "change", "broken_at"),
    [
        ("e0", "content = content || '!'", 1),
        ("e0", "content = ''", 1),
        ("e0", "tags = '[]'", 1),
        ("e0", """tags = '["t","u"]'""", 1),
        ("e0", "kind = 'decision'", 1),
        ("e0", "id = 'e9'", 1),
        ("e0", "ref = 'elsewhere'", 1),
        ("e1", "content = 'archived, and changed'", 2),
        ("last", "subject = 'ada'", 9),
        ("last", "subject = NULL", 9),
        ("last", """attributes = '{"k":2}'""", 9),
        ("last", "state = 'erased', content = ''", 9),
        ("e2", "state = 'active', content = 'back from the dead', gone_seq = NULL", 7),
        ("e2", "content = 'back from the dead'", 7),
    ],
)
def test_a_changed_entry_is_found(
    built: tuple[Host, Path], ada: Actor, entry: str, change: str, broken_at: int
) -> None:
    host, path = built
    changed = tamper(path, f"UPDATE entry SET {change} WHERE tenant = ? AND id = ?", (tenant_number(host), entry))
    assert changed == 1
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at) == (False, broken_at), verdict


def test_a_removed_entry_is_found(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    tamper(path, "DELETE FROM entry WHERE tenant = ? AND id = 'e3'", (tenant_number(host),))
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.broken_at, verdict.reason) == (False, 4, "a written entry is missing")


def test_a_smuggled_entry_is_found(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    number = tenant_number(host)
    db = apsw.Connection(str(path))
    names = [row[1] for row in db.execute("PRAGMA table_info(entry)") if row[1] not in ("n", "id")]
    listed = ", ".join(names)
    db.execute(
        f"INSERT INTO entry (n, id, {listed}) SELECT n + 500, 'x', {listed} FROM entry WHERE id = 'e0' AND tenant = ?",
        (number,),
    )
    db.close()
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.reason) == (False, "a stored entry is not in the log")


def test_a_neighbours_broken_log_is_not_ours(built: tuple[Host, Path], ada: Actor) -> None:
    host, path = built
    tamper(path, "DELETE FROM event WHERE n NOT BETWEEN ? AND ?", tail(tenant_number(host), 1))
    assert host.audit.verify(ada).ok
    assert not host.audit.verify(Actor(tenant="rival", id="eve")).ok


def test_the_triggers_stop_accidents(built: tuple[Host, Path]) -> None:
    db = apsw.Connection(str(built[1]))
    for sql in ("UPDATE event SET actor = 'x'", "DELETE FROM event"):
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            db.execute(sql)


def test_the_log_holds_no_text(built: tuple[Host, Path], ada: Actor) -> None:
    host, _ = built
    told = str([event.document() for event in host.audit.export(ada)])
    for word in ("kettle", "shelf", "zoë", "last one"):
        assert word not in told


def test_an_empty_tenant_verifies(make_host: Callable[..., Host], ada: Actor) -> None:
    assert make_host().audit.verify(ada).ok


def test_a_log_longer_than_a_page_verifies_and_exports(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    host.entries.put(ada, "notes", [Draft(f"note {n}") for n in range(4100)])
    seen: list[tuple[int, int]] = []
    verdict = host.audit.verify(ada, progress=lambda done, total: seen.append((done, total)))
    assert (verdict.ok, verdict.events, verdict.entries) == (True, 4100, 4100)
    assert seen[-1] == (4100, 4100)
    assert [event.seq for event in host.audit.export(ada)] == list(range(1, 4101))
    assert [event.seq for event in host.audit.export(ada, after=4098)] == [4099, 4100]
