"""Every format: what it finds, what it leaves out and why, and what a damaged file gets."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.importers import sources

from reverie.core.clock import from_iso
from reverie.core.errors import Invalid
from reverie.importers import FORMATS, detect, load, record
from reverie.importers.record import Record, Skipped, moment, pieces


def found(name: str, path: Path) -> tuple[list[Record], list[Skipped]]:
    items = list(load(name).read(path))
    return [item for item in items if isinstance(item, Record)], [item for item in items if isinstance(item, Skipped)]


def test_mcp_memory(tmp_path: Path) -> None:
    records, skipped = found("mcp-memory", sources.mcp_memory(tmp_path))
    assert [record.content for record in records] == [
        "Ana Ruiz: Prefers e-mail",
        "Ana Ruiz: Works from Lyon",
        "Acme (company)",
        "Ana Ruiz works at Acme",
    ]
    assert [record.subject for record in records] == ["Ana Ruiz", "Ana Ruiz", "Acme", "Ana Ruiz"]
    assert records[3].links == ((records[0].key, "works_at"), (records[2].key, "works_at"))
    assert records[1].place == "memory.json, line 1"
    assert skipped == []


def test_mem0_with_its_history(tmp_path: Path) -> None:
    records, skipped = found("mem0", sources.mem0(tmp_path))
    assert [(record.key[-1], record.content) for record in records] == [
        ("1", "Likes milk"),
        ("1", "Prefers oat milk"),
        ("2", "Lives in Lyon"),
    ]
    newest = records[1]
    assert (newest.subject, newest.actor, newest.session, newest.tags) == ("ana", "barista", "r-1", ("food",))
    assert newest.created_at == moment("2026-02-05T10:00:00Z")
    assert [one.reason for one in skipped] == ["a memory without text"]


def test_mem0_rows_of_history_after_the_memories(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "memory": "Now."},
        {"memory_id": "a", "event": "UPDATE", "old_memory": "Then.", "new_memory": "Now."},
        {"memory_id": "gone", "event": "DELETE", "old_memory": "Gone.", "new_memory": None},
    ]
    path = sources.write(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))
    records, skipped = found("mem0", path)
    assert [record.content for record in records] == ["Then.", "Now."]
    assert len(skipped) == 1


def test_mem0_that_expires(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "memory": "Parks at gate 4.", "expiration_date": "2126-01-31", "app_id": "fleet"},
        {"id": "b", "memory": "Parked at gate 2.", "expiration_date": "2025-01-31"},
    ]
    records, skipped = found("mem0", sources.write(tmp_path / "m.json", {"results": rows}))
    assert [(one.content, one.expires_at) for one in records] == [
        ("Parks at gate 4.", from_iso("2126-01-31T23:59:59Z"))
    ]
    assert records[0].attributes["mem0"] == {"app_id": "fleet"}
    assert [one.reason for one in skipped] == ["an expired memory"]


def test_what_chatgpt_saved_as_memories(tmp_path: Path) -> None:
    """Its tool `bio` is called with a memory; the list of all of them stands in conversations, the newest counts."""

    def node(name: str, parent: str | None, role: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
        message = {"id": f"m-{name}", "author": {"role": role}, "content": content, "create_time": 1767600000, **more}
        return {"id": name, "parent": parent, "children": [], "message": message}

    def listed(text: str) -> dict[str, Any]:
        return {"content_type": "model_editable_context", "model_set_context": text, "repository": None}

    def conversation(name: str, updated: int, memories: str) -> dict[str, Any]:
        mapping = {
            "l": node("l", None, "assistant", listed(memories), weight=0),
            "u": node("u", "l", "user", {"content_type": "text", "parts": ["I keep bees."]}),
            "b": node("b", "u", "assistant", {"content_type": "text", "parts": ["Keeps bees."]}, recipient="bio"),
            "t": node("t", "b", "tool", {"content_type": "text", "parts": ["Model set context updated."]}),
            "w": node("w", "t", "assistant", {"content_type": "code", "text": "search()"}, recipient="web"),
        }
        return {"id": name, "update_time": updated, "mapping": mapping, "current_node": "w"}

    old = conversation("old", 1767600000, "1. [2025-11-02]. Lives in Lyon.")
    new = conversation("new", 1767700000, "1. [2026-01-04]. Lives in Kiel.\n\n2. Likes rye bread.\n3. Keeps bees.")
    records, skipped = found("chatgpt", sources.write(tmp_path / "conversations.json", [new, old]))
    saved = [one for one in records if one.tags == ("memory",)]
    assert [one.content for one in saved] == [
        "Keeps bees.",
        "Keeps bees.",
        "Lives in Kiel.",
        "Likes rye bread.",
        "Keeps bees.",
    ]
    assert len({one.key for one in saved}) == 3
    assert {one.kind for one in saved} == {"note"}
    assert saved[2].created_at == moment("2026-01-04")
    assert [one.content for one in records if one.kind == "message"] == ["I keep bees.", "I keep bees."]
    assert sorted({one.reason for one in skipped}) == ["a call of a tool", "a message of a tool"]


def test_chatgpt_follows_the_branch_in_use(tmp_path: Path) -> None:
    records, skipped = found("chatgpt", sources.chatgpt(tmp_path))
    assert [(record.role, record.content) for record in records] == [
        ("user", "Where do we moor the boat?"),
        ("assistant", "At pier 4."),
        ("user", "Thanks, pier 4 it is."),
    ]
    assert {record.session for record in records} == {"c-1"}
    assert records[0].created_at == 1767600000250
    assert sorted(one.reason for one in skipped) == ["a hidden message", "a message of a tool"]


def test_chatgpt_with_a_cycle_is_damaged(tmp_path: Path) -> None:
    mapping = {"a": {"parent": "b", "children": []}, "b": {"parent": "a", "children": []}}
    path = sources.write(tmp_path / "conversations.json", [{"mapping": mapping, "current_node": "a"}])
    with pytest.raises(Invalid, match="expected a tree"):
        found("chatgpt", path)


def test_an_export_in_an_archive(tmp_path: Path) -> None:
    import zipfile

    plain = sources.chatgpt(tmp_path)
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(plain, "conversations.json")
    assert detect(tmp_path / "export.zip") == "chatgpt"
    assert len(found("chatgpt", tmp_path / "export.zip")[0]) == 3


def test_claude_with_an_attachment(tmp_path: Path) -> None:
    records, _ = found("claude", sources.claude(tmp_path))
    assert [(record.kind, record.content) for record in records] == [
        ("message", "What is in the plan?"),
        ("file", "Step one. Step two."),
        ("message", "Two steps."),
    ]
    assert records[1].attributes["file"] == "plan.txt"


def test_letta_without_its_secrets(tmp_path: Path) -> None:
    secret = hashlib.sha256(b"made up").hexdigest()[:20]
    records, skipped = found("letta", sources.letta(tmp_path, secret))
    assert [record.content for record in records] == ["The human is Ana, a sailor.", "My pass is [REDACTED:WEATHER]"]
    assert not any(secret in repr(item) for item in (*records, *skipped))
    assert "a secret of the agent file (REGION)" in [one.reason for one in skipped]


def test_langgraph(tmp_path: Path) -> None:
    records, skipped = found("langgraph", sources.langgraph(tmp_path))
    (item,) = records
    assert (item.ref, item.content, item.kind) == ("langgraph/users/ann", "Ann likes tea", "item")
    assert item.attributes["langgraph"]["value"] == {"text": "Ann likes tea"}
    assert [one.reason for one in skipped] == ["an expired item"]


def test_claude_code_folder(tmp_path: Path) -> None:
    records, skipped = found("claude-code", sources.claude_folder(tmp_path))
    assert [record.content for record in records] == [
        "Run `make test` before a commit",
        "Deploy on Thursdays\n  only before noon",
        "Names are nouns",
        "The API listens on port 8600.",
        "Please fix the pier.",
        "Fixed.",
    ]
    assert records[0].place == "CLAUDE.md, line 3"
    assert records[0].tags == ("commands",)
    assert records[3].attributes == {"file": "CLAUDE.md", "line": 11, "section": "Commands / Notes"}
    assert "an import from outside the folder" in [one.reason for one in skipped]


def test_a_vault(tmp_path: Path) -> None:
    records, _ = found("basic-memory", sources.vault(tmp_path))
    assert [(record.kind, record.content) for record in records] == [
        ("note", "Coffee: Brew at 94 degrees"),
        ("relation", "Coffee pairs with Chocolate"),
        ("note", "Some text about it.\n\n- [ ] buy beans"),
    ]
    assert records[0].tags == ("method", "brewing", "drink")
    assert records[0].attributes["context"] == "from the manual"
    assert records[0].created_at == moment("2026-01-05")


def test_markdown_by_section(tmp_path: Path) -> None:
    path = sources.write(
        tmp_path / "a.md", "Intro.\n\n# One\n\nText of one.\n\n- a\n- b\n\n# Two\n\n" + "Long words. " * 400
    )
    records, _ = found("markdown", path)
    assert records[0].content == "Intro."
    assert records[1].content == "One\nText of one.\n- a\n- b"
    assert len(records) > 4
    assert all(len(record.content) <= 1600 for record in records)
    assert records[2].attributes["piece"] == 1


@pytest.mark.parametrize(("name", "own"), [("markdown", "a.md"), ("text", "a.txt"), ("basic-memory", "a.md")])
def test_files_of_other_formats_in_a_folder_are_named(tmp_path: Path, name: str, own: str) -> None:
    for one in ("a.md", "a.txt", "sub/table.csv", ".hidden", ".git/config"):
        (tmp_path / one).parent.mkdir(exist_ok=True)
        sources.write(tmp_path / one, "Words.")
    records, skipped = found(name, tmp_path)
    assert [record.content for record in records] == ["Words."]
    assert {one.place for one in skipped} == {"a.md", "a.txt", "sub/table.csv"} - {own}
    assert {one.reason for one in skipped} == {"a file of another format"}


def test_rows_of_a_table(tmp_path: Path) -> None:
    path = sources.write(tmp_path / "a.csv", 'text,tags,user id,size\n"Tea, not coffee","a, b",ana,4\n,,,\nMilk,,,\n')
    records, _ = found("csv", path)
    assert [(record.content, record.tags) for record in records] == [
        ("Tea, not coffee (size: 4)", ("a", "b")),
        ("Milk", ()),
    ]
    assert records[0].subject == "ana"
    assert records[0].attributes == {"order": 1, "fields": {"size": "4"}}
    long = sources.write(tmp_path / "c.csv", 'text,tags\n"' + "word " * 40_000 + '",a\n')
    assert sum(len(record.content.split()) for record in found("csv", long)[0]) == 40_000
    dated = sources.write(tmp_path / "d.csv", "text,created_at\nTea,1767605400\nMilk,05/01/2026\n")
    tea, milk = found("csv", dated)[0]
    assert (tea.created_at, tea.attributes) == (1767605400000, {"order": 1})
    assert (milk.created_at, milk.attributes["fields"]) == (None, {"created_at": "05/01/2026"})
    other = sources.write(tmp_path / "b.csv", "Name;City\nAna;Lyon\n")
    assert [record.content for record in found("csv", other)[0]] == ["Name: Ana; City: Lyon"]


def test_json_lines(tmp_path: Path) -> None:
    path = sources.write(tmp_path / "a.jsonl", '"Just text"\n{"fact": "A fact", "id": 7, "tags": ["x"]}\n""\n')
    records, skipped = found("jsonl", path)
    assert [(record.content, record.tags) for record in records] == [("Just text", ()), ("A fact", ("x",))]
    assert records[1].key == "7"
    assert len(skipped) == 1


def test_a_json_list_of_texts_is_read_like_json_lines(tmp_path: Path) -> None:
    path = sources.write(tmp_path / "notes.json", '\ufeff[\n {"text": "One.", "tags": ["x"]},\n "Two."\n]\n')
    assert detect(path) == "jsonl"
    records, _ = found("jsonl", path)
    assert [(one.content, one.place) for one in records] == [("One.", "notes.json, 1"), ("Two.", "notes.json, 2")]
    for text in ('[{"text": "One."}, 5]', '[{"text": "One."},'):
        with pytest.raises(Invalid, match="Nothing was stored"):
            found("jsonl", sources.write(tmp_path / "notes.json", text))


def test_a_text_in_pieces_that_overlap(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} says that pier {number} is open. " * 4 for number in range(40))
    records, _ = found("text", sources.write(tmp_path / "a.txt", text))
    assert [record.attributes["piece"] for record in records] == list(range(1, len(records) + 1))
    assert all(record.attributes["of"] == len(records) for record in records)
    for number in range(40):
        assert any(f"Paragraph {number} says" in record.content for record in records)


@pytest.mark.parametrize("size", [1, 10, 1599, 1600, 1601, 5000])
def test_pieces_lose_nothing(size: int) -> None:
    words = [f"w{number}" for number in range(size)]
    text = " ".join(words)
    parts = pieces(text)
    assert all(0 < len(part) <= 1600 for part in parts)
    assert {word for part in parts for word in part.split()} >= set(words)
    assert pieces("x" * 4000) == ["x" * 1600, "x" * 1600, "x" * 800]


MADE: dict[str, Callable[[Path], Path]] = {
    "mcp-memory": sources.mcp_memory,
    "mem0": sources.mem0,
    "chatgpt": sources.chatgpt,
    "claude": sources.claude,
    "letta": lambda folder: sources.letta(folder, "x" * 8),
    "langgraph": sources.langgraph,
    "claude-code": sources.claude_folder,
    "basic-memory": sources.vault,
    "markdown": lambda folder: sources.write(folder / "a.md", "text"),
    "jsonl": lambda folder: sources.write(folder / "a.jsonl", '{"text": "x"}\n'),
    "csv": lambda folder: sources.write(folder / "a.csv", "text\nx\n"),
    "text": lambda folder: sources.write(folder / "a.txt", "text"),
}


def test_a_format_is_recognised(tmp_path: Path) -> None:
    assert set(MADE) == set(FORMATS)
    for name, make in MADE.items():
        folder = tmp_path / name
        folder.mkdir()
        assert detect(make(folder)) == name


DAMAGED: list[tuple[str, str, Any, str]] = [
    (
        "mcp-memory",
        "m.json",
        '{"type":"entity","name":"A","entityType":"x","observations":[]}\n{"type":"cat"}',
        "line 2",
    ),
    ("mcp-memory", "m.json", '{"type":"entity","name":"A"}', "line 1: expected"),
    ("mcp-memory", "m.json", "not json", "line 1"),
    ("mem0", "m.json", {"results": [{"id": "a", "memory": "x"}, {"id": "b"}]}, "record 2: expected records"),
    ("mem0", "m.jsonl", '{"id": "a", "memory": "x"}\n{"id": 1, "memory": "x"}\n', "line 2: expected records"),
    ("mem0", "m.json", "[1]", "expected records"),
    ("mem0", "m.json", '{"results": 3}', "expected records"),
    ("chatgpt", "c.json", [{"title": "x"}], "conversation 1: expected"),
    ("chatgpt", "c.json", {"a": 1}, "expected a list of conversations"),
    ("claude", "c.json", [{"chat_messages": [{"sender": "dog"}]}], "message 1: expected"),
    ("claude", "c.json", [{"chat_messages": [{"sender": ["human"]}]}], "message 1: expected"),
    ("letta", "a.af", {"agents": [3]}, "expected an agent file"),
    ("letta", "a.af", {"agents": [], "blocks": [{"label": 3}]}, "block 1: expected"),
    ("langgraph", "s.db", "not a database", "expected an SQLite file"),
    ("csv", "a.csv", "a,b\n1,2,3\n", "line 2: expected 2 values"),
    ("csv", "a.csv", "a,a\n1,2\n", "line 1: expected a header line"),
    ("jsonl", "a.jsonl", '{"text": "x"}\n{"other": 1}\n', "line 2: expected"),
    ("jsonl", "a.jsonl", '{"text": "x"\n', "line 1: expected"),
    ("claude-code", "t.jsonl", '{"no": "type"}', "line 1: expected"),
]


@pytest.mark.parametrize(("name", "file", "document", "message"), DAMAGED)
def test_a_damaged_file_is_named_with_the_line(
    tmp_path: Path, name: str, file: str, document: Any, message: str
) -> None:
    path = sources.write(tmp_path / file, document)
    with pytest.raises(Invalid) as raised:
        found(name, path)
    assert message in raised.value.message
    assert raised.value.message.endswith("Nothing was stored.")
    assert raised.value.message.count(file) == 1


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\nnot \xff\xfe fine\n")
    with pytest.raises(Invalid, match="line 2: expected UTF-8"):
        found("text", tmp_path / "a.txt")


def test_an_unknown_format_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="mcp-memory"):
        load("word")
    (tmp_path / "a.bin").write_bytes(b"\0\1\2")
    with pytest.raises(Invalid, match="looks like none of the formats"):
        detect(tmp_path / "a.bin")
    with pytest.raises(Invalid, match="There is no file"):
        detect(tmp_path / "missing")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-05T10:00:00Z", 1767607200000),
        ("2026-01-05 10:00:00", 1767607200000),
        ("2026-01-05", 1767571200000),
        (1767607200, 1767607200000),
        (1767607200.5, 1767607200500),
        (1767607200000, 1767607200000),
        ("1767607200", 1767607200000),
        (" 1767607200.5", 1767607200500),
        ("1767607200000", 1767607200000),
        ("2026-01-05 10:00:00 UTC", 1767607200000),
        ("2026-01-05 10:00:00.25+00", 1767607200250),
        ("2026-01-05 12:00+02", 1767607200000),
        ("20260105", None),
        ("9" * 400, None),
        ("soon", None),
        (None, None),
        (True, None),
        ("2999-01-01T00:00:00Z", None),
    ],
)
def test_times_of_other_programs(value: Any, expected: int | None) -> None:
    assert moment(value) == expected


def test_front_matter_that_needs_yaml(tmp_path: Path) -> None:
    path = sources.write(tmp_path / "a.md", "---\ntitle: X\ndeep:\n  inner: 1\n---\nText.\n")
    records, _ = found("markdown", path)
    assert records[0].attributes["title"] == "X"
    broken = sources.write(tmp_path / "b.md", "---\n{a: [\n---\nText.\n")
    with pytest.raises(Invalid, match="expected YAML"):
        found("markdown", broken)


HOSTILE = {
    "nothing": b"",
    "zeros": b"\0" * 400,
    "bytes": bytes(range(256)) * 8,
    "a line that breaks off": b'{"type":"entity","name":"A","entityType":"x","observations":["a"]}\n{"type":"ent',
    "another program's page": b"<html><body>Not found</body></html>",
    "deep": b"[" * 100_000,
    "numbers": b"[1,2,3]",
    "an object": b'{"a":1}',
    "nulls": b'{"conversations":null,"agents":null,"results":null}',
    "a broken database": b"SQLite format 3\0" + b"x" * 2000,
    "a time that is none": b'[{"id":"a","memory":"x","created_at":1e400}]',
}
PROSE = {"claude-code", "basic-memory", "markdown", "text"}
"""Formats for which every text is sound."""


@pytest.mark.parametrize("name", FORMATS)
def test_whatever_a_file_holds_it_is_read_or_refused(name: str, tmp_path: Path) -> None:
    endings = {"csv": "csv", "markdown": "md", "text": "txt", "jsonl": "jsonl", "mcp-memory": "jsonl"}
    for what, data in HOSTILE.items():
        path = tmp_path / f"file.{endings.get(name, 'json')}"
        path.write_bytes(data)
        records, refusal = refused(name, path)
        if refusal is None:
            assert not records or name in PROSE | {"csv"}, what
        else:
            assert refusal.startswith("file."), what
            assert refusal.endswith("Nothing was stored."), what


def refused(name: str, path: Path) -> tuple[list[Record], str | None]:
    """What a file holds, or the words with which it is refused."""
    try:
        return found(name, path)[0], None
    except Invalid as refusal:
        return [], refusal.message


JUNK: tuple[Any, ...] = (None, True, 7, 1.5, "", "x\0y", [], {}, [None], {"a": [1]}, "9" * 400)


@pytest.mark.parametrize("name", ["chatgpt", "claude", "mem0", "letta", "mcp-memory"])
def test_a_value_of_another_type_is_read_or_refused(name: str, tmp_path: Path) -> None:
    """Every value of a sound file in turn becomes something else: never a traceback."""
    path = MADE[name](tmp_path)
    text = path.read_text()
    lines = name == "mcp-memory"
    document = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    for place in list(places(document)):
        holder = document
        for key in place[:-1]:
            holder = holder[key]
        sound = holder[place[-1]]
        for junk in JUNK:
            holder[place[-1]] = junk
            path.write_text("\n".join(map(json.dumps, document)) if lines else json.dumps(document))
            _, refusal = refused(name, path)
            assert refusal is None or refusal.endswith("Nothing was stored."), (place, junk)
        holder[place[-1]] = sound


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value below a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        yield (*above, key)
        yield from places(one, (*above, key))


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", sources.chatgpt(tmp_path).read_text())
    sound = path.read_bytes()
    for at in range(len(sound)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :])
        _, refusal = refused("chatgpt", path)
        assert refusal is None or refusal.endswith("Nothing was stored."), at


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MAX_LINE", 1000)
    path = sources.write(tmp_path / "a.jsonl", '"fine"\n"' + "x" * 2000)
    with pytest.raises(Invalid, match="line 2: a line of at most"):
        found("jsonl", path)
