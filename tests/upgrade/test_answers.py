"""Idempotency keys of older releases are hashed by the upgrade, and a retry across it still stores nothing twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres import PostgresServer, shared_server
from tests.upgrade.make_golden import ADA, START, open_host

from reverie.core.entry import Draft, Scope
from reverie.core.event import answer_key
from reverie.host import Host
from reverie.services import Services
from reverie.store.conformance import HandClock
from reverie.store.postgres import PostgresStore, migrate
from reverie.store.postgres.pool import connect

OLD = [path for path in sorted(Path(__file__).parent.glob("v*.db")) if int(path.stem[1:]) <= 6]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_sqlite_keeps_no_key_as_it_came(path: Path, tmp_path: Path) -> None:
    assert b"golden-0" in path.read_bytes()
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    host = open_host(copy, HandClock(START + 60_000))

    def found(key: str) -> object:
        return host.parts.store.read(Scope("acme"), lambda tx: tx.recall_answer(key))

    key = host.parts.store.read(Scope("acme"), lambda tx: answer_key(tx.log_key(), "put", "golden-0"))
    assert found(key) is not None
    assert found("golden-0") is None
    host.close()
    assert b"golden-0" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server: PostgresServer = shared_server(tmp_path_factory)
    made = server.make_database()
    yield made
    server.drop_database(made)


def test_postgres_hashes_what_the_older_release_kept(url: str) -> None:
    clock = HandClock(START)
    store = PostgresStore(url, clock=clock)
    host = Host(Services(store=store, clock=clock))
    first = host.entries.put(ADA, "notes", [Draft("once")], idempotency_key="new-key")[0]
    hashed = store.read(Scope("acme"), lambda tx: answer_key(tx.log_key(), "put", "new-key"))
    digest, answer = store.read(Scope("acme"), lambda tx: tx.recall_answer(hashed))
    until = START + 10**9
    akashik = f"akashik/{'0' * 64}"

    def as_before(tx) -> None:
        tx.remember_answer("zoë's old-key", digest, answer, until=until)
        tx.remember_answer(akashik, digest, answer, until=until)

    store.write(Scope("acme"), as_before)
    # While both releases run, a retry of what the older one stored is recognised.
    assert host.entries.put(ADA, "notes", [Draft("once")], idempotency_key="zoë's old-key")[0].id == first.id
    with connect(url) as connection:
        step = next(n for n, name in names().items() if name.endswith("post_answers"))
        connection.execute("DELETE FROM reverie.setting WHERE name = %s", (f"migration/{step:04d}",))
        host.close()
        assert migrate.migrate(connection, 1, create=False, post=True) == [step]
        with connection.transaction():
            connection.execute("SELECT set_config('reverie.tenant', '1', true)")
            keys = {row[0] for row in connection.execute("SELECT key FROM reverie.answer").fetchall()}
    store = PostgresStore(url, clock=clock)
    host = Host(Services(store=store, clock=clock))
    log_key = store.read(Scope("acme"), lambda tx: tx.log_key())
    assert keys == {hashed, akashik, answer_key(log_key, "put", "zoë's old-key")}
    again = host.entries.put(ADA, "notes", [Draft("once")], idempotency_key="zoë's old-key")[0]
    assert (again.id, again.replayed) == (first.id, True)
    host.close()


def names() -> dict[int, str]:
    folder = Path(str(migrate.__file__)).parent / "migrations"
    return {int(path.name[:4]): path.stem for path in folder.glob("*.sql")}
