"""Fixtures are factories: each test makes what it needs, and nothing stands ready."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpcore2
import psycopg
import pytest
from hypothesis import settings
from tests.postgres import PostgresServer, shared_server

from reverie.core.actor import Actor
from reverie.core.entry import Entry
from reverie.host import Host
from reverie.providers.static import StaticEmbedder
from reverie.redact import load_redactor
from reverie.services import Services
from reverie.store.conformance import HandClock, make_entry
from reverie.store.contract import Store
from reverie.store.postgres import PostgresStore
from reverie.store.sqlite import SqliteStore

REDACTOR = load_redactor()
EMBEDDER = StaticEmbedder()
# Every client reads the certificates of the machine, which takes 30 ms, and then speaks plain HTTP to a test.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)

# Temporary files are in memory where there is room for them: no test is about a disk, and a commit waits for it.
_MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 6 << 30:
    os.environ["TMPDIR"], tempfile.tempdir = str(_MEMORY), None

_LONG = (
    "tests/fuzz/",
    "tests/contract/doors/test_secret_fields.py",
    "tests/acceptance/test_openwop_runs.py",
    "tests/crash/test_chaos.py",
)

# `make test` tries the same examples every time, `make soak` new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("default" if os.environ.get("REVERIE_SOAK") else "same")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: there is little, and half a million objects stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files with the longest tests come first: at the end they would keep one process busy and the others idle."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


@pytest.fixture(name="make_entry")
def _make_entry() -> Callable[..., Entry]:
    """`make_entry(**overrides)`: a sound entry."""
    return make_entry


@pytest.fixture
def clock() -> HandClock:
    """A clock that moves when told to."""
    return HandClock()


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    """Which store: every test that makes a store, a host or a server runs on each. A folder may choose one."""
    return str(request.param)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    """The PostgreSQL server of this run."""
    return shared_server(tmp_path_factory)


@pytest.fixture(scope="session")
def _databases() -> list[str]:
    """Databases that are as new, for the next test that needs one. They go with their server."""
    return []


@pytest.fixture
def make_database(request: pytest.FixtureRequest, _databases: list[str]) -> Iterator[Callable[[], str]]:
    """`make_database()`: the URL of a PostgreSQL database with Reverie's schema and nothing in it."""
    made: list[tuple[PostgresServer, str]] = []

    def make() -> str:
        server: PostgresServer = request.getfixturevalue("postgres")
        url = _databases.pop() if _databases else server.make_database()
        made.append((server, url))
        return url

    yield make
    for server, url in made:
        if server.empty_database(url):
            _databases.append(url)
        else:
            server.drop_database(url)


@pytest.fixture
def make_target(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_database: Callable[[], str]
) -> Callable[..., str]:
    """`make_target(name="data")`: what `reverie.open` takes: a new folder, or the URL of a new database.

    `empty`: a database without a schema, as a file that does not exist.

    Key file and forget ledger of a database are in the folder of the test, also for processes it starts.
    """
    if engine == "postgres":
        monkeypatch.setenv("REVERIE_DATA", str(tmp_path / "keys"))

    def make(name: str = "data", *, empty: bool = False) -> str:
        if engine == "sqlite":
            return str(tmp_path / name)
        url = make_database()
        if empty:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA reverie CASCADE")
        return url

    return make


@pytest.fixture
def make_store(
    engine: str, tmp_path: Path, clock: HandClock, make_database: Callable[[], str]
) -> Iterator[Callable[..., Any]]:
    """`make_store(name="memory.db")`: the store of that name; closed afterwards."""
    made: list[Store] = []
    databases: dict[str, str] = {}

    def make(name: str = "memory.db", **options: Any) -> Store:
        options = {"clock": clock} | options
        if engine == "sqlite":
            made.append(SqliteStore(tmp_path / name, **options))
        else:
            if name not in databases:
                databases[name] = make_database()
            made.append(PostgresStore(databases[name], **options))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def make_host(make_store: Callable[..., Store], clock: HandClock) -> Callable[..., Host]:
    """`make_host(**parts)`: a host on a new store. Redactors are the same everywhere, so one is made."""

    def make(**parts: Any) -> Host:
        store = parts.pop("store", None) or make_store()
        return Host(Services(store=store, **({"clock": clock, "redactor": REDACTOR} | parts)))

    return make


@pytest.fixture
def ada() -> Actor:
    """A caller of the tenant `acme` who may do everything."""
    return Actor(tenant="acme", id="ada")
