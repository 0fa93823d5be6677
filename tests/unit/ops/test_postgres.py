"""The doctor, the metrics and the log of a host on PostgreSQL."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from tests.postgres import PostgresServer, shared_server

from reverie.app import build_app, build_host
from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.ops import postgres
from reverie.ops.checks import Check
from reverie.ops.doctor import examine
from reverie.ops.postgres import examine_postgres
from reverie.settings import Settings
from reverie.store.postgres import pool


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    return shared_server(tmp_path_factory)


@pytest.fixture
def settings(server: PostgresServer) -> Iterator[Settings]:
    url = server.make_database()
    yield Settings(database_url=url, embedder="none")
    server.drop_database(url)


def found(settings: Settings) -> dict[str, Check]:
    return {check.name: check for check in examine_postgres(settings)}


def database(settings: Settings) -> str:
    return str(settings.postgres).split("/")[3].split("?")[0]


def test_a_sound_database_has_nothing_to_do(settings: Settings) -> None:
    checks = found(settings)
    assert [check.name for check in checks.values() if check.status != "ok"] == []
    assert {"role", "row security", "migrations", "indexes", "dead rows", "replication", "connections"} <= set(checks)


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        ("ALTER TABLE reverie.entry NO FORCE ROW LEVEL SECURITY", "row security"),
        ("ALTER TABLE reverie.event DISABLE ROW LEVEL SECURITY", "row security"),
        ("DROP INDEX reverie.entry_live", "indexes"),
        ("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'reverie.entry_gone'::regclass", "indexes"),
        ("DELETE FROM reverie.setting WHERE name LIKE 'migration/%'", "migrations"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    server: PostgresServer, settings: Settings, damage: str, check: str
) -> None:
    server.execute(damage, database=database(settings))
    said = found(settings)[check]
    assert said.status != "ok"
    assert said.next_step


def test_a_role_that_row_security_does_not_bind_is_a_failure(server: PostgresServer, settings: Settings) -> None:
    above = replace(settings, database_url=server.url(database(settings), "postgres"))
    assert found(above)["role"].status == "fail"


def test_a_pool_too_large_for_the_server_is_said(settings: Settings) -> None:
    assert found(replace(settings, database_pool=390))["connections"].status == "warn"


def test_a_server_without_the_setting_reserved_connections_is_examined(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL 15 does not have it."""
    query = postgres.QUERIES["connections"].replace("'reserved_connections'", "'reverie.no_such_setting'")
    monkeypatch.setitem(postgres.QUERIES, "connections", query)  # type: ignore[arg-type]
    assert found(settings)["connections"].status == "ok"


def test_a_server_that_cannot_be_reached_is_a_failed_check_of_the_doctor(settings: Settings) -> None:
    host = build_host(settings)
    try:
        away = replace(settings, database_url="postgresql://reverie@localhost:1/reverie")
        checks = {check.name: check for check in examine(host, away, quick=True)}
    finally:
        host.close()
    assert checks["postgres"].status == "fail"


def test_pool_and_queue_are_in_the_metrics_and_slow_statements_in_the_log(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "SLOW_SECONDS", 0.0)
    host = build_host(settings)
    try:
        with (
            caplog.at_level(logging.WARNING, "reverie.store"),
            TestClient(build_app(settings, host), base_url="http://localhost") as client,
        ):
            host.entries.put(Actor(tenant="acme", id="ada"), "notes", [Draft(content="Zanzibar in the morning.")])
            host.jobs.add(Actor(tenant="acme", id="ada"), "scan", {})
            page = client.get("/metrics").text
        assert 'reverie_pool{state="open"}' in page
        assert 'reverie_queue{status="waiting"} 1.0' in page
        fields = [record.__dict__["fields"] for record in caplog.records if record.getMessage() == "store.slow"]
        assert {"head", "lock_head"} & {field["statement"] for field in fields}
        assert "Zanzibar" not in caplog.text + str(fields)
    finally:
        host.close()
