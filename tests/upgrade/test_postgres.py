"""Two releases on one PostgreSQL: code of this release on the schema of the next, which only adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.postgres import PostgresServer, shared_server

from reverie.core.errors import StoreError
from reverie.store.conformance import Case, HandClock, cases
from reverie.store.postgres import PostgresStore

NEXT = """
ALTER TABLE reverie.entry ADD COLUMN mood text, ADD COLUMN weight integer NOT NULL DEFAULT 0;
ALTER TABLE reverie.document ADD COLUMN touched bigint;
ALTER TABLE reverie.tenant ADD COLUMN plan text NOT NULL DEFAULT 'plain';
CREATE TABLE reverie.extra (tenant integer NOT NULL, n bigint NOT NULL, PRIMARY KEY (tenant, n));
CREATE INDEX entry_weight ON reverie.entry (tenant, weight);
INSERT INTO reverie.setting (name, value) SELECT 'migration/9999', '' WHERE true;
"""
"""A made-up migration of the kind that runs before the new code does."""


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    return shared_server(tmp_path_factory)


@pytest.fixture
def half_upgraded(server: PostgresServer) -> Iterator[Callable[[HandClock], PostgresStore]]:
    made: list[str] = []

    def opened(clock: HandClock) -> PostgresStore:
        made.append(server.make_database())
        store = PostgresStore(made[-1], clock=clock)
        server.execute(NEXT, database=made[-1].split("/")[3].split("?")[0])
        return store

    yield opened
    for url in made:
        server.drop_database(url)


@pytest.mark.parametrize("case", cases(["entries", "documents", "words", "log"]), ids=str)
def test_a_process_that_runs_goes_on_when_the_next_release_adds_to_the_schema(
    case: Case, half_upgraded: Callable[[HandClock], PostgresStore]
) -> None:
    case.run(half_upgraded)


def test_a_process_that_starts_asks_for_the_newer_release(server: PostgresServer) -> None:
    url = server.make_database()
    server.execute(NEXT, database=url.split("/")[3].split("?")[0])
    with pytest.raises(StoreError) as refused:
        PostgresStore(url)
    assert "newer" in refused.value.message
    server.drop_database(url)
