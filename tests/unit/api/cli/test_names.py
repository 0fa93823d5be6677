"""Ids by their beginning, names that do not exist, texts from files and editors, and what a policy's change says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reverie.api.cli import terminal

Cli = Any


def put(cli: Cli, text: str, *more: str) -> str:
    made: str = cli("put", text, "--json", *more).json["id"]
    return made


def test_a_unique_beginning_is_an_id_everywhere(cli: Cli) -> None:
    one = put(cli, "to be found")
    for words in (["get"], ["entry", "pin"], ["entry", "links"], ["why"], ["derived"]):
        assert cli(*words, one[:22]).code == 0, words
    assert cli("get", one[:22], "--json").json["id"] == one
    assert cli("entry", "erase", one[:22], "--yes", "--json").json["id"] == one
    cli("get", one[:22]).failed("not_found")


def test_a_beginning_of_several_ids_is_refused_with_them(cli: Cli) -> None:
    for name in ("alpha", "alpha-1", "alpha-2"):
        put(cli, name, "--id", name)
    assert cli("get", "alpha", "--json").json["id"] == "alpha"
    cli("get", "alph").failed("alpha-1", "alpha-2", "ambiguous_id")
    cli("get", "alpha-3").failed("not_found")
    cli("get", "al").failed("not_found")


def test_dreams_agree_on_their_arguments(cli: Cli) -> None:
    lines = "\n".join(
        json.dumps(f"On day {n} the ferry left at {n + 5} o'clock, and it rained.") for n in [*range(10)] * 2
    )
    cli("put", "--many", "--ref", "notes", stdin=lines)
    plan = cli("dream", "plan", "--ref", "notes", "--budget", "5000", "--older-than", "2000-01-01")
    assert "Nothing to do: fewer than two entries" in plan.out
    plan = cli("dream", "plan", "--ref", "notes", "--budget", "5000", "--fit")
    assert plan.out.splitlines()[-1] == "Ready. Run: reverie dream run --ref notes --budget 5000 --fit"
    dream = cli("dream", "run", "--ref", "notes", "--json").json["id"]
    for verb in ("show", "diff", "why", "verify"):
        for name in (dream, dream[:20], "last"):
            assert cli("dream", verb, name, "--ref", "notes").code == 0, (verb, name)
        cli("dream", verb, dream, "--ref", "other").failed("not_found")
    assert cli("dream", "undo", "last", "--ref", "notes").code == 0
    cli("dream", "show", "last", "--ref", "other").failed("There are no dreams yet")


def test_a_wrong_memory_or_tenant_names_the_near_ones(cli: Cli) -> None:
    put(cli, "here", "--ref", "support-bot", "--tenant", "acme")
    for words in (["list"], ["search", "here"], ["context", "here"], ["dream", "plan"], ["get", "x"], ["consolidate"]):
        cli(*words, "--ref", "suport-bot", "--tenant", "acme").failed(
            "no memory named suport-bot", "Did you mean support-bot?", "reverie refs"
        )
        cli(*words, "--tenant", "acne").failed("no tenant named acne", "Did you mean acme?", "reverie tenants")
    assert "acme" in cli("tenants").out
    assert cli("tenants", "--json").json == {"items": [{"tenant": "acme", "refs": 1, "entries": 1}]}


def test_lists_say_what_they_list(cli: Cli) -> None:
    put(cli, "one", "--ref", "notes")
    assert "1 entry of the memory notes, tenant default" in cli("list", "--ref", "notes").err
    assert "1 memory of the tenant default" in cli("refs").err
    assert "1 tenant in " in cli("tenants").err


def test_text_from_a_file_and_from_an_editor(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "minutes.md").write_text("first\nsecond\n")
    made = cli("put", "--file", str(tmp_path / "minutes.md"), "--json").json["id"]
    assert cli("get", made, "--json").json["content"] == "first\nsecond"
    cli("put", "text", "--file", str(tmp_path / "minutes.md")).failed("one of them")
    cli("put", "--file", str(tmp_path / "nowhere")).failed("nowhere")
    editor = tmp_path / "editor.py"
    editor.write_text("import sys, pathlib\npathlib.Path(sys.argv[1]).write_text('written by hand\\n')\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    made = cli("put", "--edit", "--json").json["id"]
    assert cli("get", made, "--json").json["content"] == "written by hand"
    monkeypatch.setenv("VISUAL", "true")
    cli("put", "--edit").failed("nothing was changed")
    monkeypatch.setenv("VISUAL", "false")
    cli("put", "--edit").failed("nothing was stored")


def test_a_tag_is_not_empty(cli: Cli) -> None:
    cli("put", "x", "--tag", "").failed("A tag must not be empty")
    put(cli, "x")
    cli("list", "--tag", " ").failed("--tag is empty")


def test_times_take_dates_and_words(cli: Cli) -> None:
    expires = cli("get", put(cli, "x", "--expires", "2099-01-31"), "--json").json["expires_at"]
    assert expires[:7] in ("2099-01", "2099-02")  # midnight of this machine's zone
    cli("put", "x", "--expires", "yesterday").failed("passed")
    cli("put", "x", "--expires", "soonish").failed("--expires")
    assert cli("list", "--since", "yesterday", "--json").json["items"]
    cli("dream", "plan", "--older-than", "tomorrow").failed("--older-than")


def test_a_policy_says_what_changed_with_units(cli: Cli) -> None:
    changed = cli("policy", "set", "undo_window_ms=14d", "dream_budget=9000").out
    assert changed.split() == [
        "undo_window_ms",
        "7",
        "days",
        "->",
        "14",
        "days",
        "dream_budget",
        "8,000",
        "tokens",
        "->",
        "9,000",
        "tokens",
    ]
    assert "Nothing changed" in cli("policy", "set", "dream_budget=9000").out
    assert "max_bytes" in cli("policy", "show").out
    assert "100 GiB" in cli("policy", "show").out


def test_tables_fit_and_keep_their_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(terminal, "table_width", lambda: 80)
    rows = [("01K9ZJ4V7B3M", "a" * 60, "tag " * 20, "dead"), ("01K9ZJ4V7B3N", "b", "日本語" * 20, "waiting")]
    terminal.print_table(["id", "name", "tags", "status"], rows, stretch="tags", keep=("status",))
    lines = capsys.readouterr().out.splitlines()
    assert all(terminal.display_width(line) <= 80 for line in lines)
    assert [line.split()[-1] for line in lines] == ["status", "dead", "waiting"]
    terminal.print_table(["status", "found"], [("fail", "word " * 40)], stretch="found", lines=None)
    wrapped = capsys.readouterr().out
    assert wrapped.count("word") == 40
    assert all(len(line) <= 80 for line in wrapped.splitlines())


def test_tables_wrap_long_names_and_cut_no_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "table_width", lambda: 80)
    terminal.print_table(["ref", "entries"], [("x" * 100, 12)], stretch="ref", keep=("entries",), lines=None)
    assert capsys.readouterr().out.splitlines()[:2] == ["ref" + " " * 70 + "entries", "x" * 71 + "  " + "     12"]
    columns = ["id", "cron", "ref", "last run", "next run", "status"]
    row = ("01K9ZJ4V7B3M", "0 3 * * *", "harbour-desk", "2026-11-18 19:10 done", "2026-11-19 03:00", "not due yet")
    terminal.print_table(columns, [row], stretch="ref", keep=("cron", "next run", "status"), lines=None)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert not any("…" in line for line in lines)
    assert lines[1].endswith("not due yet")


def test_a_text_is_cut_in_one_pass_over_it() -> None:
    assert terminal.cut("日本語" * 100_000, 8) == "日本語…"
    assert terminal.cut("e\u0301" * 9, 5) == "e\u0301" * 4 + "…"
    assert terminal.cut("日本", 0) == "…"


def test_long_texts_continue_on_the_next_line_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "The harbour office opens at seven and closes at four, on Sundays and holidays it stays closed. " * 4
    rows = [(1, text), (2, "日本語" * 40), (3, "x" * 300)]
    terminal.print_table(["#", "content"], rows, stretch="content", lines=3)
    assert len(capsys.readouterr().out.splitlines()) == 4, "one line each in a pipe"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(terminal, "table_width", lambda: 80)
    terminal.print_table(["#", "content"], rows, stretch="content", lines=3)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 3 * 3
    assert all(terminal.display_width(line) <= 80 for line in lines)
    assert [line[-1] for line in lines[3::3]] == ["…", "…", "…"]
    terminal.print_fields({"stay out": "word " * 30, "ref": "x"})
    first, second, third = capsys.readouterr().out.splitlines()[:3]
    assert first.startswith("stay out  word")
    assert second.startswith("          word")
    assert max(len(first), len(second), len(third)) <= 80


def test_ids_are_short_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ["01M7KT6M7NE7WV3HBY8VY7YVKN", "01M7KT6M7NE7WV3HBY8VY7YVKP", "01M7KW3GB6EVN8E5RPY47F6TTX"]
    assert terminal.shorten_ids(ids) == {one: one for one in ids}
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert terminal.shorten_ids(ids[1:]) == {one: one[:12] for one in ids[1:]}
    assert len(set(terminal.shorten_ids(ids).values())) == 3


def test_the_configuration_file(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "reverie.toml"
    monkeypatch.setenv("REVERIE_CONFIG", str(path))
    cli("settings").failed("cannot be read")
    path.write_text('REVERIE_PORT = 9000\nREVERIE_LOG_FORMAT = "json"\nREVERIE_READ_ONLY = false\n')
    monkeypatch.setenv("REVERIE_LOG_FORMAT", "text")
    found = {item["variable"]: (item["value"], item["source"]) for item in cli("settings", "--json").json["items"]}
    assert found["REVERIE_PORT"] == (9000, str(path))
    assert found["REVERIE_LOG_FORMAT"] == ("text", "environment")
    assert found["REVERIE_HOST"] == ("127.0.0.1", "default")
    assert found["REVERIE_DATA"][1] == "environment"
    for text, words in (
        ("REVERIE_PROT = 1", "no setting REVERIE_PROT"),
        ("port = 1", "Did you mean REVERIE_PORT?"),
        ("REVERIE_PORT = [1]", "REVERIE_PORT is a text"),
        ("REVERIE_PORT = ", "not TOML"),
        ("REVERIE_PORT = 99999", "0 to 65535"),
        ("REVERIE_PORT = true", "REVERIE_PORT is a whole number"),
    ):
        path.write_text(text)
        cli("settings").failed(words)
    path.write_text('REVERIE_KEY = "not-a-real-key"\n')
    path.chmod(0o644)
    cli("settings").failed("chmod 600")
    path.chmod(0o600)
    assert cli("settings").code == 0
    path.write_text('REVERIE_URL = "http://127.0.0.1:9"\n')
    cli("keys", "list").failed("not_remote")
