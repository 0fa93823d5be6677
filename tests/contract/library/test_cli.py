"""The command line on a running host: `--url`, or REVERIE_URL with REVERIE_KEY."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.api.cli.main import run

Said = Callable[..., Any]


@pytest.fixture
def said(running: Any, tenant: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Said:
    """Runs a command on the host and gives what it says in JSON."""
    monkeypatch.setenv("REVERIE_KEY", running.key(tenant))
    monkeypatch.setenv("REVERIE_URL", running.url)

    def say(*arguments: str, code: int = 0, plain: bool = False) -> Any:
        capfdbinary.readouterr()
        ended = run([*arguments, *([] if plain else ["--json"])])
        out, err = capfdbinary.readouterr()
        assert ended == code, err.decode()
        return err.decode() if code else out.decode() if plain else json.loads(out or b"null")

    return say


def test_a_day_on_a_host(said: Said) -> None:
    first = said("put", "Ana prefers e-mail to phone calls.", "--ref", "bot", "--tag", "preference", "--subject", "ana")
    for number in range(10):
        said("put", f"The club with number {number} pays {number + 3} euros for pier {number}.", "--ref", "bot")
    assert len(said("list", "--ref", "bot", "--all")["items"]) == 11
    assert said("get", first["id"], "--ref", "bot")["content"] == "Ana prefers e-mail to phone calls."
    assert said("search", "how to reach Ana", "--ref", "bot")["hits"][0]["entry"]["id"] == first["id"]
    assert "e-mail" in said("context", "reach Ana", "--ref", "bot", "--budget", "200")["text"]
    assert said("entry", "pin", first["id"], "--ref", "bot")["pinned"]
    assert said("refs")["items"] == [{"ref": "bot", "entries": 11}]
    assert said("stats")["entries"] == 11
    assert said("dream", "plan", "--ref", "bot", "--budget", "4000")["sources"] == 10
    made = said("dream", "run", "--ref", "bot", "--budget", "4000")
    assert said("dream", "show", made["id"])["checksum"] == made["checksum"]
    assert said("dream", "list")["items"][0]["id"] == made["id"]
    assert said("dream", "diff", made["id"])["dream"] == made["id"]
    assert said("dream", "verify", made["id"])["ok"]
    assert made["output_id"] in json.dumps(said("dream", "index"))
    assert said("why", made["output_id"], "--ref", "bot")["sources"]
    assert said("dream", "undo", made["id"])["state"] == "undone"
    assert said("consolidate", "--ref", "bot")["input_count"] == 10
    assert said("forget", "ana", "--yes")["forgotten"] == 1
    assert said("audit", "verify")["ok"]
    lines = said("audit", "export", plain=True).splitlines()
    assert json.loads(lines[0])["seq"] == 1
    assert said("sweep")["swept"] == 0
    assert said("scan", "--dry-run")["affected"] == 0


def test_schedules_and_policy_on_a_host(said: Said) -> None:
    added = said("schedules", "add", "0 3 * * *", "--ref", "bot", "--older-than", "7d")
    assert added["next_at"]
    assert said("schedules", "pause", added["id"])["paused"]
    assert [item["id"] for item in said("schedules", "list")["items"]] == [added["id"]]
    said("schedules", "remove", added["id"])
    assert said("policy", "set", "dream_budget=900")["dream_budget"] == 900
    assert said("policy", "show")["dream_budget"] == 900


def test_a_command_that_needs_the_data_says_so(said: Said, tmp_path: Path) -> None:
    for command in (["jobs", "list"], ["doctor"], ["keys", "list"], ["backup", "create", str(tmp_path / "b")]):
        assert "works on a data folder or a database only" in said(*command, code=1), command


def test_the_data_that_is_named_wins_over_the_environment(said: Said, tmp_path: Path) -> None:
    said("put", "Local.", "--data", str(tmp_path))
    assert [item["content"] for item in said("list", "--data", str(tmp_path))["items"]] == ["Local."]
    assert said("list")["items"] == []
    assert "not both" in said("list", "--url", "http://127.0.0.1:1", "--data", str(tmp_path), code=1)


def test_a_tenant_that_is_not_the_keys_is_refused(said: Said, tenant: str) -> None:
    assert said("stats", "--tenant", tenant)["entries"] == 0
    assert "belongs to the tenant" in said("stats", "--tenant", "other", code=1)


def test_a_wrong_address_is_explained(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reverie.client.host.RETRY_SECONDS", 0.1)
    assert "The address of a host is" in said("list", "--url", "ftp://x", code=1)
