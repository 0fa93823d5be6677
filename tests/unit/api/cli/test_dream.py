"""dream, why, derived, consolidate, schedules; forgetting through a dream; restore after a forget."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

FATES = ("kept", "shortened", "merged", "rolled", "outdated", "chatter", "retired")

Cli = Any

DAY_MS = 86_400_000


@pytest.fixture
def team(cli: Cli) -> Cli:
    """A memory of forty notes, some of them said twice."""
    start = int(time.time() * 1000) - 30 * DAY_MS
    lines = []
    for number in range(40):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((start + number * 3_600_000) / 1000))
        text = (
            f"We decided to move service {number} to port {7000 + number}. The weather was fine and lunch was late again."
            if number % 2
            else "Thanks everyone, that was a good and long day at the office with many pleasant words."
        )
        about = {"subject": "customer-7"} if number == 7 else {}
        lines.append(json.dumps({"content": text, "created_at": at, **about}))
    assert cli("put", "--many", stdin="\n".join(lines)).code == 0
    return cli


def test_plan_says_what_would_happen_and_touches_nothing(team: Cli) -> None:
    before = team("audit", "export").out
    plan = team("dream", "plan", "--budget", "8000", "--json").json
    assert plan["sources"] == 40
    assert plan["collapsed"] >= 15
    assert plan["feasible"]
    shown = team("dream", "plan", "--budget", "8000").out
    assert f"at least {plan['minimum_required']} are needed" in shown
    leaving = shown.partition("would leave hot memory")[2].splitlines()[1:]
    assert len(leaving) == len(set(leaving)), "a text that occurs often is listed once, with its number"
    assert "reverie dream run" in shown
    assert team("audit", "export").out == before


def test_run_shows_a_report_and_the_way_back(team: Cli) -> None:
    before = team("list", "--all", "--json").json["items"]
    shown = team("dream", "run", "--budget", "8000")
    assert shown.code == 0, shown
    for word in ("took", "made", "must keep", "gates", "passed", "sha256", "reverie dream undo", "40 entries"):
        assert word in shown.out, shown.out
    (report,) = team("dream", "list", "--json").json["items"]
    assert report["tokens_used"] == report["input_tokens"] + report["output_tokens"] <= report["budget"]
    assert team("dream", "show", report["id"], "--json").json == report
    assert "port 7001" in team("dream", "show", report["id"]).out
    assert [item["id"] for item in team("list", "--all", "--json").json["items"]] == [report["output_id"]]
    assert "undone: 40 entries" in team("dream", "undo", report["id"]).out
    after = team("list", "--all", "--json").json["items"]
    assert [(item["id"], item["content"], item["tags"], item["state"]) for item in after] == [
        (item["id"], item["content"], item["tags"], item["state"]) for item in before
    ]
    team("dream", "undo", report["id"]).failed("undone already", "not_undoable")


def test_a_budget_that_is_too_small_names_the_one_that_is_enough(team: Cli) -> None:
    least = team("dream", "plan", "--json").json["minimum_required"]
    team("dream", "run", "--budget", "100").failed("token_budget_exceeded", f"at least {least}")
    team("dream", "run", "--budget", str(least - 1)).failed(str(least))
    assert "--fit" in team("dream", "plan", "--budget", "100").out
    assert team("list", "--all", "--json").json["items"].__len__() == 40
    assert team("dream", "run", "--budget", str(least)).code == 0


def test_fit_begins_with_the_oldest_part(team: Cli) -> None:
    first = team("dream", "run", "--fit", "--budget", "500", "--json").json
    assert first["tokens_used"] <= 500
    assert first["left_for_later"] > 0
    left = len(team("list", "--all", "--json").json["items"])
    assert left == 41 - len(first["sources"])


def test_what_is_selected(team: Cli) -> None:
    team("put", "A very young remark about ports.")
    assert team("dream", "plan", "--older-than", "1d", "--json").json["left_out"]["recent"] == 1
    assert team("dream", "plan", "--kind", "decision", "--json").json["sources"] == 0
    assert "Nothing to do: fewer than two" in team("dream", "run", "--tag", "nowhere").out
    assert team("dream", "run", "--session", "nowhere", "--json").json["reason"] == "too_few"
    team("dream", "run", "--after", "elsewhere").failed("cold, archive, purge")
    team("dream", "run", "--older-than", "soon").failed("--older-than", "3d")
    team("dream", "run", "--distiller", "oracle").failed("extractive")
    team("dream", "run", "--budget", "0").failed("at least 1")


def test_without_a_distiller_sources_are_archived(team: Cli) -> None:
    team("dream", "run", "--distiller", "none").failed("archived or purged")
    report = team("dream", "run", "--distiller", "none", "--after", "archive", "--json").json
    assert len(report["sources"]) == 40
    assert report["output_id"] is None
    assert team("list", "--json").json["items"] == []
    assert "archived" in team("dream", "show", report["id"]).out


def test_a_dream_is_traced_diffed_and_verified(team: Cli) -> None:
    report = team("dream", "run", "--budget", "8000", "--json").json
    source = report["sources"][1]["id"]
    tree = team("why", report["output_id"], "--json").json
    assert len(tree["sources"]) == 40
    shown = team("why", report["output_id"])
    assert "and 20 more" in shown.out
    assert "service 1 to port 7001" in team("why", report["output_id"], "--all").out
    assert "original words" in team("why", source).err
    assert team("derived", source).out == report["output_id"] + "\n"
    assert team("derived", report["output_id"], "--json").json == {"items": []}
    team("why", "nothing").failed("not_found")
    team("derived", "nothing").failed("not_found")
    diff = team("dream", "diff", report["id"], "--json").json
    fates = [entry for fate in FATES for entry in diff[fate]]
    assert sorted(fates) == sorted(item["id"] for item in report["sources"])
    assert "word for word" in team("dream", "diff", report["id"]).err
    verdict = team("dream", "verify", report["id"], "--json").json
    assert verdict["ok"]
    assert verdict["recomputed"] == report["checksum"]
    assert "ok: dreamt again" in team("dream", "verify", report["id"]).out


def test_an_archive_is_what_its_name_says(team: Cli) -> None:
    report = team("dream", "run", "--budget", "8000", "--json").json
    archive = team("dream", "archive", report["checksum"]).raw
    assert hashlib.sha256(archive).hexdigest() == report["checksum"]
    assert json.loads(archive)["schema"] == "reverie.archive/1"
    (indexed,) = team("dream", "index", "--json").json["archives"]
    assert indexed["archiveChecksum"] == report["checksum"]
    assert report["checksum"][:12] in team("dream", "index").out
    assert team("dream", "index", "--ref", "other", "--json").json["archives"] == []
    team("dream", "archive", "0" * 64).failed("not_found")
    team("dream", "show", "nothing").failed("no dream with that id")


def test_consolidate_twice_is_consolidate_once(team: Cli) -> None:
    first = team("consolidate", "--json").json
    assert first["duplicates"] >= 15
    assert first["output_count"] < first["input_count"]
    again = team("consolidate", "--json").json
    assert again["seq"] is None
    assert again["input_count"] == again["output_count"] == first["output_count"]
    assert "0 duplicates" in team("consolidate").out


def test_forget_reaches_the_dream(team: Cli, data: Path) -> None:
    report = team("dream", "run", "--budget", "8000", "--json").json
    assert "port 7007" in team("list", "--json").out
    preview = team("forget", "customer-7", "--preview", "--json").json
    assert (preview["forgotten"], preview["derived"], preview["redone"]) == (1, 1, 1)
    assert "1 dream made from them" in team("forget", "customer-7", "--preview").out
    done = team("forget", "customer-7", "--yes")
    assert "made again without them" in done.out
    assert "port 7007" not in team("list", "--json").out
    assert "port 7009" in team("list", "--json").out
    team("dream", "archive", report["checksum"]).failed("not_found")
    assert team("audit", "verify").code == 0
    assert b"port 7007" not in b"".join(path.read_bytes() for path in data.iterdir())


def test_a_restore_forgets_again(team: Cli, tmp_path: Path, data: Path) -> None:
    backup = tmp_path / "before.db"
    assert team("backup", "create", str(backup)).code == 0
    team("forget", "customer-7", "--yes")
    restored = tmp_path / "restored"
    shown = team("restore", str(backup), "--into", str(restored))
    assert "Repeated the forgets made after the backup: 1 subject." in shown.err
    assert "port 7007" not in team("list", "--all", "--json", "--data", str(restored)).out
    assert "port 7009" in team("list", "--all", "--json", "--data", str(restored)).out
    assert b"port 7007" not in b"".join(path.read_bytes() for path in restored.iterdir())
    assert team("audit", "verify", "--data", str(restored)).code == 0
    # elsewhere, with the ledger by hand, and without it
    ledger = tmp_path / "kept.jsonl"
    ledger.write_bytes((data / "forgotten.jsonl").read_bytes())
    (data / "forgotten.jsonl").unlink()
    by_hand = team("restore", str(backup), "--into", str(tmp_path / "two"), "--ledger", str(ledger), "--json").json
    assert by_hand["forgotten_again"] == 1
    bare = team("restore", str(backup), "--into", str(tmp_path / "three"))
    assert "no forget ledger" in bare.err
    team("restore", str(backup), "--into", str(tmp_path / "four"), "--ledger", "/nowhere").failed("no forget ledger")
    assert not (tmp_path / "four").exists()


def test_schedules_from_the_first_to_the_last_word(team: Cli) -> None:
    added = team("schedules", "add", "0 3 * * *", "--ref", "default", "--zone", "Europe/Berlin", "--json").json
    assert added["next_at"] > added["created_at"]
    assert added["why_not"] == "not due yet"
    assert "0 3 * * *" in team("schedules", "list").out
    assert "not due while paused" in team("schedules", "pause", added["id"]).out
    assert team("schedules", "list", "--json").json["items"][0]["why_not"] == "paused"
    assert "next due" in team("schedules", "resume", added["id"]).out
    ran = team("schedules", "run", added["id"], "--json").json
    assert ran["status"] == "done"
    assert team("dream", "show", ran["dreams"][0]).code == 0
    assert "nothing" in team("schedules", "run", added["id"]).out
    (listed,) = team("schedules", "list", "--json").json["items"]
    assert listed["last"]["status"] == "nothing"
    assert listed["why_not"]
    assert "removed" in team("schedules", "remove", added["id"]).out
    assert team("schedules", "list", "--json").json == {"items": []}
    team("schedules", "remove", added["id"]).failed("not_found")
    team("schedules", "run", added["id"]).failed("not_found")
    team("schedules", "pause", "nothing").failed("not_found")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["often"], "five fields"),
        (["0 3 * * *", "--zone", "Mars/Olympus"], "time zone"),
        (["0 3 * * *", "--kind", "sleep"], "dream, consolidate"),
        (["0 3 * * *", "--missed", "twice"], "once, skip"),
        (["0 3 * * *", "--older-than", "soon"], "90d"),
        (["0 3 * * *", "--budget", "0"], "at least 1"),
    ],
)
def test_a_schedule_that_cannot_be(cli: Cli, arguments: list[str], words: str) -> None:
    cli("schedules", "add", *arguments).failed(words)
