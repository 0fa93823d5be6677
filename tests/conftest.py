"""Fixtures are factories: each test makes what it needs, and nothing stands ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.postgres import PostgresServer, shared_server

from reverie.core.actor import Actor
from reverie.core.entry import Entry
from reverie.host import Host, Parts
from reverie.redact import Redactor
from reverie.store.conformance import HandClock, make_entry
from reverie.store.sqlite import SqliteStore

REDACTOR = Redactor()

# `make test` tries the same examples every time, `make soak` new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("default" if os.environ.get("REVERIE_SOAK") else "same")


@pytest.fixture(name="make_entry")
def _make_entry() -> Callable[..., Entry]:
    """`make_entry(**overrides)`: a sound entry."""
    return make_entry


@pytest.fixture
def clock() -> HandClock:
    """A clock that moves when told to."""
    return HandClock()


@pytest.fixture
def make_store(tmp_path: Path, clock: HandClock) -> Iterator[Callable[..., SqliteStore]]:
    """`make_store(name="memory.db")`: a store in a file of that name; closed afterwards."""
    made: list[SqliteStore] = []

    def make(name: str = "memory.db", **options: Any) -> SqliteStore:
        made.append(SqliteStore(tmp_path / name, **({"clock": clock} | options)))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    """The PostgreSQL server of this run."""
    return shared_server(tmp_path_factory)


@pytest.fixture
def make_database(postgres: PostgresServer) -> Iterator[Callable[[], str]]:
    """`make_database()`: the URL of a new PostgreSQL database with Reverie's schema; dropped afterwards."""
    made: list[str] = []

    def make() -> str:
        made.append(postgres.make_database())
        return made[-1]

    yield make
    for url in made:
        postgres.drop_database(url)


@pytest.fixture
def make_host(make_store: Callable[..., SqliteStore], clock: HandClock) -> Callable[..., Host]:
    """`make_host(**parts)`: a host on a new store. Redactors are the same everywhere, so one is made."""

    def make(**parts: Any) -> Host:
        store = parts.pop("store", None) or make_store()
        return Host(Parts(store=store, **({"clock": clock, "redactor": REDACTOR} | parts)))

    return make


@pytest.fixture
def ada() -> Actor:
    """A caller of the tenant `acme` who may do everything."""
    return Actor(tenant="acme", id="ada")
