"""keys, policy, backup, restore, doctor, sweep, settings, version."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.core.clock import SystemClock
from reverie.jobs.queue import DocumentQueue
from reverie.settings import Settings

Cli = Any


def test_a_key_is_not_kept_valid_beyond_the_last_year(cli: Cli) -> None:
    made = cli("keys", "create", "--json").json
    cli("keys", "rotate", made["id"], "--overlap", "9999999d").failed("--overlap")
    assert made["id"] in cli("keys", "list").out


def test_keys(cli: Cli) -> None:
    made = cli("keys", "create", "--tenant", "acme", "--json").json
    assert set(made) >= {"id", "tenant", "key"}
    assert (made["tenant"], made["authority"], made["rights"]) == ("acme", 10, ["admin", "dream", "read", "write"])
    reader = cli("keys", "create", "--rights", "read, write", "--expires", "90d", "--scopes", "a,b", "--json").json
    assert (reader["authority"], reader["scopes"], reader["rights"]) == (4, ["a", "b"], ["read", "write"])
    listed = cli("keys", "list", "--json").json["items"]
    assert [key["id"] for key in listed] == [made["id"], reader["id"]]
    assert all("digest" not in key and "key" not in key for key in listed)
    new = cli("keys", "rotate", reader["id"], "--overlap", "1h", "--json").json
    assert (new["rights"], new["expires_at"]) == (reader["rights"], reader["expires_at"])
    assert cli("keys", "revoke", made["id"]).out == f"revoked {made['id']}\n"
    states = {key["id"]: key["state"] for key in cli("keys", "list", "--json").json["items"]}
    assert states == {made["id"]: "revoked", reader["id"]: "usable", new["id"]: "usable"}
    cli("keys", "rotate", made["id"]).failed("not_found")
    cli("keys", "revoke", "nothing").failed("not_found")
    shown = cli("keys", "create", "--name", "for people")
    assert shown.out.startswith("rvk_")
    assert shown.out.count("\n") == 1


def test_keys_refuse_nonsense(cli: Cli) -> None:
    cli("keys", "create", "--tenant", "No Such Shape").failed("tenant")
    cli("keys", "create", "--rights", "read,fly").failed("Rights are")
    cli("keys", "create", "--rights", "").failed("at least one right")
    cli("keys", "create", "--authority", "11").failed("0 to 10")
    cli("keys", "create", "--expires", "soon").failed("--expires")
    cli("keys", "create", "--authority", "many").failed("--authority", code=2)


def test_policy(cli: Cli) -> None:
    changed = cli("policy", "set", "max_tags=3", "undo_window_ms=14d", "default_ttl_ms=90d", "--json").json
    assert (changed["max_tags"], changed["undo_window_ms"]) == (3, 14 * 86_400_000)
    assert cli("policy", "show", "--json").json == changed
    assert cli("policy", "set", "default_ttl_ms=none", "--json").json["default_ttl_ms"] is None
    cli("policy", "set", "max_tags=lots").failed("max_tags")
    cli("policy", "set", "max_tags=-1").failed("max_tags")
    cli("policy", "set", "redaction=off").failed("There is no policy")
    cli("policy", "set", "max_tags").failed("NAME=VALUE")
    cli("put", "x", "-t", "1", "-t", "2", "-t", "3", "-t", "4").failed("At most 3 tags")


def test_backup_verify_restore(cli: Cli, tmp_path: Any, data: Any) -> None:
    cli("put", "worth keeping")
    cli("secrets", "add", "s1", stdin="a-known-value-1")
    file = tmp_path / "copies" / "monday.db"
    cli("backup", "create", str(file)).failed("There is no folder")
    file.parent.mkdir()
    made = cli("backup", "create", str(file))
    assert "verified" in made.out
    assert "is not inside" in made.err
    cli("backup", "create", str(file)).failed("exists already")
    assert cli("backup", "verify", str(file), "--json").json["tenants"][0]["entries"] == 1
    cli("restore", str(file), "--into", str(data)).failed("not an empty folder")
    target = tmp_path / "restored"
    assert cli("restore", str(file), "--into", str(target)).code == 0
    assert cli("list", "--data", str(target), "--json").json["items"][0]["content"] == "worth keeping"
    cli("put", "no key here", "--data", str(target)).failed("wrong_key_file")
    with_key = tmp_path / "tuesday.db"
    cli("backup", "create", str(with_key), "--with-key")
    other = tmp_path / "again"
    assert cli("restore", str(with_key), "--into", str(other), "--json").json["key_file"] == "reverie.key"
    assert cli("put", "a-known-value-1 is hidden", "--data", str(other)).code == 0


def test_doctor(cli: Cli, data: Any) -> None:
    cli("put", "ours", "--tenant", "acme")
    cli("put", "theirs", "--tenant", "globex")
    found = cli("doctor", "--json")
    assert found.code == 0, found
    assert found.json["ok"] is True
    assert {check["name"] for check in found.json["checks"]} >= {
        "integrity",
        "log",
        "isolation",
        "disk",
        "clock",
        "vectors",
    }
    assert "isolation" in cli("doctor").out
    import apsw

    db = apsw.Connection(str(data / "reverie.db"))
    db.execute("UPDATE entry SET content = 'other' WHERE tenant = (SELECT max(tenant) FROM entry)")
    db.close()
    broken = cli("doctor")
    assert broken.code == 1
    assert "fail" in broken.out
    assert "restore the newest backup" in broken.err


def test_sweep(cli: Cli, monkeypatch: Any) -> None:
    cli("put", "soon gone", "--expires", "1h")
    monkeypatch.setattr(SystemClock, "now", lambda _self: time.time_ns() // 1_000_000 + 2 * 3_600_000)
    assert cli("sweep", "--all-tenants", "--json").json == {"swept": 1, "tenants": {"default": 1}}


def test_settings_name_their_source(cli: Cli, monkeypatch: Any, data: Any) -> None:
    monkeypatch.setenv("REVERIE_PORT", "9000")
    rows = {row["name"]: row for row in cli("settings", "--json").json["items"]}
    assert (rows["port"]["value"], rows["port"]["source"]) == (9000, "environment")
    assert (rows["data"]["value"], rows["data"]["source"]) == (str(data), "environment")
    assert rows["host"]["source"] == "default"
    assert cli("settings", "--data", "elsewhere", "--json").json["items"][0]["source"] == "option"
    assert "REVERIE_PORT" in cli("settings").out
    monkeypatch.setenv("REVERIE_PORT", "many")
    cli("settings").failed("REVERIE_PORT")


def test_a_data_folder_that_is_named_wins_over_a_url_that_is_not(tmp_path: Path) -> None:
    there = {"REVERIE_DATABASE_URL": "sqlite:////elsewhere/other.db"}
    assert Settings.load(there).database == "/elsewhere/other.db"
    assert Settings.load(there, data=str(tmp_path)).database == str(tmp_path / "reverie.db")
    assert Settings.load(there, data=str(tmp_path), database_url="sqlite:////both.db").database == "/both.db"
    assert Settings.load({**there, "REVERIE_DATA": str(tmp_path)}).database == "/elsewhere/other.db"


def test_version(cli: Cli) -> None:
    assert cli("version").out.startswith("reverie 0.")
    assert set(cli("version", "--json").json) >= {"reverie", "python", "sqlite"}


def test_upgrade_says_which_schema_there_is_and_what_waits(cli: Cli) -> None:
    cli("put", "a first memory")
    found = cli("upgrade", "--json").json
    assert found["schema"] >= 2
    assert found["waiting"] == []
    assert cli("upgrade", "--finish", "--json").json == found
    assert cli("upgrade").out == f"the database has schema {found['schema']}\n"


def test_jobs_show_attempts_last_error_and_the_dead(cli: Cli, data: Any) -> None:
    cli("put", "a first memory")
    made = cli("jobs", "add", "dream", "--ref", "notes", "--json").json
    assert made["added"] is True
    assert cli("jobs", "add", "dream", "--ref", "notes", "--json").json == {"added": False, "job": None}
    (waiting,) = cli("jobs", "list", "--json").json["items"]
    assert (waiting["name"], waiting["status"], waiting["attempts"], waiting["error"]) == ("dream", "waiting", 0, None)
    for code, after in (("store_busy", "waiting"), ("token_budget_exceeded", "dead")):
        with reverie.open(data) as memory:
            queue = DocumentQueue(memory.host.parts)
            queue.retry("default", waiting["id"])
            taken = queue.take("default", "w")
            assert taken is not None
            queue.failed(taken, "w", code)
        shown = cli("jobs", "show", waiting["id"], "--json").json
        assert (shown["status"], shown["attempts"], shown["error"]) == (after, 1, code)
        assert shown["arguments"] == {"ref": "notes"}
    assert [job["id"] for job in cli("jobs", "list", "--status", "dead", "--json").json["items"]] == [waiting["id"]]
    assert "token_budget_exceeded" in cli("jobs", "list").out
    cli("jobs", "discard", waiting["id"])
    assert cli("jobs", "list", "--json").json == {"items": []}


def test_a_file_that_is_no_backup_is_not_called_damaged(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert "is not a backup" in cli("backup", "verify", str(tmp_path / "notes.txt")).failed("validation_error").err
    assert "is not a backup" in cli("restore", str(tmp_path / "notes.txt"), "--into", str(tmp_path / "new")).err


def test_an_unknown_policy_names_those_like_it(cli: Cli) -> None:
    assert "Did you mean hot_target?" in cli("policy", "set", "hot_targt=3").failed("validation_error").err
    assert "`none` is without end" in cli("policy", "set", "cold_retention_ms=banana").failed("validation_error").err


def test_policy_takes_what_it_shows(cli: Cli) -> None:
    """Every value that `policy show` prints, with its unit, can be given to `policy set`."""
    cli("put", "The first note.")
    shown = dict(
        line.split(None, 1) for line in cli("policy", "show").out.splitlines() if len(line.split(None, 1)) == 2
    )
    before = cli("policy", "show", "--json").json
    for name, value in shown.items():
        assert cli("policy", "set", f"{name}={value}", "--json").json == before, name
    assert cli("policy", "set", "max_entry_bytes=2MB", "--json").json["max_entry_bytes"] == 2_000_000
    assert cli("policy", "set", "cold_retention_ms=36 hours", "--json").json["cold_retention_ms"] == 129_600_000


def test_a_policy_with_a_wrong_unit_says_which_one_it_takes(cli: Cli) -> None:
    cli("policy", "set", "dream_budget=30d").failed("dream_budget is a whole number of tokens, such as 8000.")
    cli("policy", "set", "max_entry_bytes=3 parsecs").failed("a size such as 64KiB")
    cli("policy", "set", "dream_trust=lots").failed("dream_trust is a whole number, such as 0.")
    cli("policy", "set", "dream_budget", "12000").failed("dream_budget=VALUE")


def test_a_policy_names_a_zone_that_exists(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("put", "x " * 5000)
    with monkeypatch.context() as older:  # a release that stored any name
        older.setattr("reverie.memory.policy.is_zone", lambda name: True)
        cli("policy", "set", "zone=Mars/Olympus")
    assert cli("schedules", "list", "--json").json["items"][0]["zone"] == "UTC"
    cli("policy", "set", "zone=Mars/Phobos").failed("zone is an IANA time zone such as Europe/Berlin")
    assert cli("policy", "set", "zone=Europe/Berlin", "--json").json["zone"] == "Europe/Berlin"
    assert "nightly" in cli("schedules", "list").out
