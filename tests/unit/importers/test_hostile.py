"""Files made to harm: each is refused with its name and what was expected, or read; nothing of a refused one is stored."""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.importers import sources

from reverie.api.cli.main import run
from reverie.core.actor import Actor
from reverie.core.errors import Invalid
from reverie.host import Host
from reverie.importers import conversations, load
from reverie.importers.record import Record, loads
from reverie.importers.run import Importer

ME = Actor(tenant="default", id="local:library", door="library")


def texts(name: str, path: Path) -> list[str]:
    return [item.content for item in load(name).read(path) if isinstance(item, Record)]


def archive(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name, data in files.items():
            made.writestr(f"{name}.json", data)
    return path


def test_an_archive_that_unpacks_to_far_more_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "bomb.zip", conversations=b"[" + b" " * (17 * 2**20) + b"]")
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(
        Invalid, match=r"bomb.zip: expected conversations, found 17 MB packed into .* Nothing was stored"
    ):
        texts("chatgpt", path)


def test_many_parts_of_an_archive_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MAX_FILE", 2 * 2**20)
    parts = {f"conversations-{number}": os.urandom(2**19).hex().encode() for number in range(3)}
    with pytest.raises(Invalid, match="at most 2 MB of conversations were expected, found 3 MB"):
        texts("claude", archive(tmp_path / "parts.zip", **parts))


def test_links_lead_nowhere(tmp_path: Path) -> None:
    outside = sources.write(tmp_path / "outside" / "private.md", "- The private note.")
    secret = sources.chatgpt(tmp_path / "outside")
    folder = tmp_path / "folder"
    sources.write(folder / "CLAUDE.md", "- Mine.\n\nSee @linked.md and @deep/private.md\n")
    (folder / "linked.md").symlink_to(outside)
    (folder / "deep").symlink_to(outside.parent)
    (folder / "round").symlink_to(folder)
    (folder / "conversations.json").symlink_to(secret)
    for name in ("claude-code", "markdown", "basic-memory"):
        assert all("private note" not in text for text in texts(name, folder)), name
    with pytest.raises(Invalid, match=r"expected conversations.json in it"):
        texts("chatgpt", folder)


@pytest.mark.parametrize("current", ["a", "b", None])
def test_a_conversation_in_a_circle(tmp_path: Path, current: str | None) -> None:
    def node(parent: str) -> dict[str, Any]:
        message = {"author": {"role": "user"}, "content": {"parts": ["x"]}}
        return {"parent": parent, "children": [] if current is None else [parent], "message": message}

    row = {"mapping": {"a": node("b"), "b": node("a")}, "current_node": current}
    path = sources.write(tmp_path / "conversations.json", [row])
    with pytest.raises(Invalid, match=r"conversation 1: expected a tree of nodes. Nothing was stored"):
        texts("chatgpt", path)


DATABASES = {
    "another program's": "CREATE TABLE notes (id, text); INSERT INTO notes VALUES (1, 'x')",
    "other columns": "CREATE TABLE store (id, data)",
    "rows without an end": "CREATE VIEW store AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
    " SELECT 'a' AS prefix, 'k' || n AS key, '{}' AS value FROM r",
    "values that are computed": "CREATE TABLE store (prefix, key, value AS (hex(zeroblob(500000000))))",
    "values that are no JSON": "CREATE TABLE store (prefix, key, value); INSERT INTO store VALUES ('a', 'b', 'oops')",
    "bytes for a name": "CREATE TABLE store (prefix, key, value); INSERT INTO store VALUES (x'ff', 'b', '{}')",
    "text that is none": "CREATE TABLE store (prefix, key, value); "
    "INSERT INTO store VALUES (CAST(x'ff' AS TEXT), 'b', '{}')",
}


@pytest.mark.parametrize("what", DATABASES)
def test_a_database_that_is_not_langgraphs(tmp_path: Path, what: str) -> None:
    path = tmp_path / "store.db"
    database = sqlite3.connect(path)
    database.executescript(DATABASES[what])
    database.close()
    with pytest.raises(Invalid, match=r"^store.db: .*expected .* Nothing was stored.$"):
        texts("langgraph", path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be"])
@pytest.mark.parametrize("name", ["jsonl", "mem0", "text", "csv", "markdown", "claude"])
def test_another_encoding_is_named(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / "file.txt"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + '[{"id": "a", "memory": "x"}]').encode(encoding))
    with pytest.raises(Invalid, match=r"file.txt, line 1: expected UTF-8, found UTF-16 or UTF-32. Save it"):
        texts(name, path)


def test_half_an_emoji_is_no_damage() -> None:
    cut, whole = rb'["a \ud83d b", "\ude00", "\ud83d\ude00", "\\ud83d", "\\\ud83d"]', "\U0001f600"
    assert loads(cut) == ["a \ufffd b", "\ufffd", whole, "\\ud83d", "\\\ufffd"]


def test_names_that_are_no_text(make_host: Callable[..., Host], tmp_path: Path) -> None:
    """A file system may hold names in any encoding, and with line breaks."""
    folder = tmp_path / "vault"
    folder.mkdir()
    for name in (b"caf\xe9.md", b"two\nlines.md"):
        Path(os.fsdecode(bytes(folder) + b"/" + name)).write_text("# Coffee\n\nBrew at 94 degrees.\n")
    host = make_host()
    importer = Importer(host, ME, folder, format="markdown", ref="notes")
    assert importer.look().entries == 2
    assert importer.store().entries == 2
    host.audit.verify(ME)


OURS = {"ref": "notes", "id": "one", "kind": "note", "content": "One.", "version": 1, "seq": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"subject": 5}, {"source": {"role": 5}}, {"source": {"session": []}}, {"ref": "../notes"}, {"id": "a\0b"}),
        *({"id": "x" * 2000}, {"kind": "k" * 70}, {"tags": ["t" * 300]}, {"tags": [f"t{n}" for n in range(100)]}),
        *({"content": "x" * 70_000}, {"created_at": "2999-01-01T00:00:00Z"}),
    ],
    ids=str,
)
def test_an_entry_that_cannot_be_stored_is_found_before_anything_is(
    make_host: Callable[..., Host], tmp_path: Path, wrong: dict[str, Any]
) -> None:
    lines = [json.dumps({**OURS, "id": f"n{number}"}) for number in range(250)]
    path = sources.write(tmp_path / "a.jsonl", "\n".join([*lines, json.dumps({**OURS, **wrong})]))
    with pytest.raises(Invalid, match=r"line 251: .* Nothing was stored"):
        Importer(make_host(), ME, path, format="jsonl").look()


def test_an_exported_entry_that_has_expired_since_is_left_out(make_host: Callable[..., Host], tmp_path: Path) -> None:
    rows = [OURS, {**OURS, "id": "two", "expires_at": "2020-01-01T00:00:00Z"}]
    path = sources.write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    importer = Importer(make_host(), ME, path, format="jsonl")
    assert importer.look().skipped == {"an expired entry": 1}
    assert importer.store().entries == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mem0", json.dumps([{"id": "a", "memory": "word " * 20_000}])),
        (
            "mcp-memory",
            json.dumps({"type": "entity", "name": "Ana", "entityType": "p", "observations": ["word " * 20_000]}),
        ),
    ],
    ids=["mem0", "mcp-memory"],
)
def test_a_text_longer_than_an_entry_comes_in_pieces(
    make_host: Callable[..., Host], tmp_path: Path, name: str, text: str
) -> None:
    importer = Importer(make_host(), ME, sources.write(tmp_path / "a.json", text), format=name, ref="notes")
    assert importer.look().entries == importer.store().entries > 1


def test_a_file_that_changes_between_look_and_store_says_what_was_stored(
    make_host: Callable[..., Host], tmp_path: Path
) -> None:
    lines = [json.dumps({"text": f"Line {number}."}) for number in range(300)]
    path = sources.write(tmp_path / "a.jsonl", "\n".join(lines))
    importer = Importer(make_host(), ME, path, format="jsonl", ref="notes")
    importer.look()
    path.write_text("\n".join([*lines, "{cut"]))
    with pytest.raises(Invalid) as raised:
        importer.store()
    assert "line 301" in raised.value.message
    assert "Nothing was stored" not in raised.value.message
    assert f"200 entries had been stored. Take them back: reverie import undo {importer.id}" in raised.value.message


def test_the_command_says_what_was_expected_and_makes_no_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(json.dumps({"text": "Fine."}).encode() * 1 + b"\n" + b'{"text": "\xff\xfe"}\n')
    data = tmp_path / "data"
    assert run(["import", "jsonl", str(path), "--data", str(data), "--dry-run"]) == 1
    said = capsys.readouterr()
    assert "export.jsonl, line 2: expected" in said.err
    assert "Traceback" not in said.err
    assert not data.exists()
