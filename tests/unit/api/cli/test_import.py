"""`reverie import` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.api.cli.conftest import Cli
from tests.unit.importers import sources


def test_it_says_what_it_found_before_it_stores(cli: Cli, tmp_path: Path) -> None:
    path = str(sources.mem0(tmp_path))
    looked = cli("import", path, "--dry-run")
    assert looked.out == (
        "mem0: 3 entries to store, 0 duplicates\n  into default: 3\n"
        "left out: 1 x a memory without text (first: mem0.json, record 3)\n"
    )
    cli("list").failed("There is no database")
    done = cli("import", "mem0", path, "--ref", "bot")
    assert "stored 3 entries" in done.out
    import_id = done.out.split()[-1]
    assert len(cli("list", "--ref", "bot", "--json").json["items"]) == 2
    assert cli("import", path, "--ref", "bot", "--json").json["stored"]["duplicates"] == 3
    assert "undone: 2 entries of bot" in cli("import", "undo", import_id).out
    cli("import", "undo", import_id).failed("not_found")


def test_from_stdin_with_a_named_format(cli: Cli) -> None:
    assert cli("import", "jsonl", "-", "--json", stdin='"One."\n"Two."\n').json["stored"]["entries"] == 2


def test_mistakes(cli: Cli, tmp_path: Path) -> None:
    cli("import", str(tmp_path / "missing.json")).failed("There is no file")
    cli("import", "word", str(sources.mem0(tmp_path))).failed("There is no format 'word'", "mcp-memory")
    cli("import", "word", "missing.json").failed("There is no format 'word'")
    cli("import", "mem0").failed("mem0 is a format", "reverie import mem0 PATH")
    cli("import", "undo").failed("reverie import undo ID")
    cli("import", "a", "b", "c").failed("reverie import [FORMAT] PATH")
    empty = sources.write(tmp_path / "a.jsonl", "")
    cli("import", "jsonl", str(empty)).failed("has nothing in it")
    damaged = sources.write(tmp_path / "b.jsonl", '"fine"\n{"broken\n')
    cli("import", str(damaged)).failed("line 2", "Nothing was stored")
    assert cli("stats", "--json").json["entries"] == 0


def test_an_export_with_an_attribute_named_memory_is_recognised_as_one(cli: Cli, tmp_path: Path) -> None:
    cli("put", "Tea at four.", "-a", "memory=mem_1")
    assert cli("export", "--to", "jsonl", "-o", str(tmp_path / "entries.jsonl")).code == 0
    done = cli("import", str(tmp_path / "entries.jsonl"), "--dry-run", "--data", str(tmp_path / "other"))
    assert done.code == 0, done.err
    assert "jsonl: 1 entry" in done.out


@pytest.mark.parametrize("text", ["Tea.", "A note\npermalink: note\n- [tech] uses Redis #db"])
@pytest.mark.parametrize("folder", ["notes", "memories"])
def test_an_export_as_markdown_comes_back_whatever_it_is_called_and_says(
    cli: Cli, tmp_path: Path, folder: str, text: str
) -> None:
    cli("put", text, "--ref", "team/kitchen")
    assert cli("export", "--to", "markdown", "-o", str(tmp_path / folder)).code == 0
    other = str(tmp_path / "other")
    assert "markdown: 1 entry" in cli("import", str(tmp_path / folder), "--yes", "--data", other).out
    (entry,) = cli("list", "--ref", "team/kitchen", "--data", other, "--json").json["items"]
    assert entry["content"] == text
