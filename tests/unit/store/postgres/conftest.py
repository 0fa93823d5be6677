"""These tests look inside the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from reverie.store.postgres import PostgresStore


@pytest.fixture(scope="session")
def engine() -> str:
    """PostgreSQL only."""
    return "postgres"


@pytest.fixture
def url(make_database: Callable[[], str]) -> str:
    """A database."""
    return make_database()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    """A store in it."""
    opened = PostgresStore(url)
    yield opened
    opened.close()


@pytest.fixture
def connection(url: str, store: PostgresStore) -> Iterator[psycopg.Connection]:
    """Someone with the store's own role and no manners."""
    with psycopg.connect(url, autocommit=True) as opened:
        yield opened
