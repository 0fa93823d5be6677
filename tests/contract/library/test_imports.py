"""Importing, embedded and on a running host: look first, store once, replace, undo, come back; and export."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.importers import sources

import reverie
from reverie import Filter
from reverie.api.cli.main import run
from reverie.core.errors import Invalid
from reverie.importers import FORMATS
from reverie.importers.run import Importer, undo


def importer(memory: reverie.Memory, path: Path, name: str, ref: str | None = None) -> Importer:
    return Importer(memory.host, memory.actor, path, format=name, ref=ref)


def texts(memory: reverie.Memory, ref: str = "default") -> list[str]:
    return sorted(entry.content for entry in memory.ref(ref).entries())


def test_looking_stores_nothing(memory: reverie.Memory, tmp_path: Path) -> None:
    secret = "ghp_" + hashlib.sha256(b"made up").hexdigest()[:36]
    rows = [{"text": "One."}, {"text": "One."}, {"text": f"The token is {secret}"}, ""]
    path = sources.write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    look = importer(memory, path, "jsonl", "notes").look()
    assert (look.entries, look.duplicates, look.refs) == (2, 1, {"notes": 2})
    assert sum(look.findings.values()) == 1
    assert look.skipped == {"a line without text": 1}
    assert look.places == [("a.jsonl, line 4", "a line without text")]
    assert memory.snapshot() == 0


def test_importing_twice_stores_once(memory: reverie.Memory, tmp_path: Path) -> None:
    path = sources.mcp_memory(tmp_path)
    first = importer(memory, path, "mcp-memory").store()
    assert (first.entries, first.duplicates, first.links) == (4, 0, 2)
    again = importer(memory, path, "mcp-memory")
    assert (again.look().entries, again.look().duplicates) == (0, 4)
    second = again.store()
    assert (second.entries, second.duplicates, second.links) == (0, 4, 0)
    entry = next(iter(memory.ref("default").entries(Filter(kinds=("relation",)))))
    assert {link.note for link in memory.ref("default").links(entry.id)} == {"works_at"}
    assert entry.attributes["import"] == {"format": "mcp-memory", "place": "memory.json, line 3"}
    assert memory.forget("Acme").forgotten == 1
    assert importer(memory, path, "mcp-memory").store().entries == 0, "what was forgotten came back"
    assert memory.verify().ok


def test_a_record_that_changed_replaces_its_earlier_version(memory: reverie.Memory, tmp_path: Path) -> None:
    importer(memory, sources.mem0(tmp_path), "mem0").store()
    assert texts(memory) == ["Lives in Lyon", "Prefers oat milk"]
    path = sources.write(tmp_path / "new.json", [{"id": "0b1c7a7e-0002", "memory": "Lives in Nantes"}])
    importer(memory, path, "mem0").store()
    assert texts(memory) == ["Lives in Nantes", "Prefers oat milk"]
    again = importer(memory, sources.mem0(tmp_path), "mem0").store()
    assert (again.entries, texts(memory)) == (0, ["Lives in Nantes", "Prefers oat milk"])


def test_an_import_is_taken_back_and_brought_back(memory: reverie.Memory, tmp_path: Path) -> None:
    memory.ref("default").put("Mine.")
    path = sources.chatgpt(tmp_path)
    done = importer(memory, path, "chatgpt").store()
    assert done.entries == 3
    taken = undo(memory.host, memory.actor, done.id)
    assert (taken.entries, list(taken.refs)) == (3, ["default"])
    assert texts(memory) == ["Mine."]
    with pytest.raises(reverie.NotFound):
        undo(memory.host, memory.actor, done.id)
    back = importer(memory, path, "chatgpt")
    assert back.look().restored == 3
    assert back.store().restored == 3
    assert len(texts(memory)) == 4


def test_an_undo_brings_back_the_versions_that_the_import_replaced(memory: reverie.Memory, tmp_path: Path) -> None:
    """A file that changed: its new words replace the earlier ones, which an undo gives back."""
    path = sources.write(tmp_path / "notes.txt", "Alpha.")
    first = importer(memory, path, "text").store()
    sources.write(path, "Beta.")
    second = importer(memory, path, "text").store()
    assert (first.replaced, second.replaced, texts(memory)) == (0, 1, ["Beta."])
    assert undo(memory.host, memory.actor, second.id).restored == 1
    assert texts(memory) == ["Alpha."]
    back = importer(memory, path, "text").store()
    assert (back.restored, back.replaced, texts(memory)) == (1, 1, ["Beta."])
    assert undo(memory.host, memory.actor, second.id).restored == 1
    assert (texts(memory), memory.verify().ok) == (["Alpha."], True)


FILES = {
    "markdown": ("notes.md", "# Tea\n\n{} drinks tea.\n\n# Club\n\n{} rows."),
    "text": ("notes.txt", "{} drinks tea."),
    "csv": ("rows.csv", "id,text\n1,{} drinks tea.\n2,{} rows.\n"),
    "jsonl": ("rows.jsonl", '{{"id": 1, "text": "{} drinks tea."}}\n'),
    "claude-code": ("memory.md", "---\ndescription: tea\n---\n{} drinks tea."),
    "basic-memory": ("home.md", "{} drinks tea."),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_one_name_in_two_folders_are_two(memory: reverie.Memory, tmp_path: Path, name: str) -> None:
    file, words = FILES[name]
    paths = {}
    for who in ("Ana", "Ben"):
        (tmp_path / who).mkdir()
        paths[who] = sources.write(tmp_path / who / file, words.format(who, who))
        done = importer(memory, paths[who], name).store()
        assert (done.entries, done.duplicates, done.replaced) == (words.count("{} "), 0, 0)
    both = texts(memory)
    assert len(both) == 2 * words.count("{} ")
    for path in paths.values():
        assert importer(memory, path, name).store().entries == 0
    sources.write(paths["Ana"], words.format("Cleo", "Ana"))
    changed = importer(memory, paths["Ana"], name).store()
    assert (changed.entries, changed.replaced) == (1, 1)
    assert "Ana drinks tea" not in str(texts(memory))
    assert "Cleo drinks tea" in str(texts(memory))
    assert "Ben drinks tea" in str(texts(memory))
    assert undo(memory.host, memory.actor, changed.id).restored == 1
    assert texts(memory) == both


def test_a_file_is_the_same_in_an_import_of_any_folder_above_it(memory: reverie.Memory, tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    path = sources.write(tmp_path / "team" / "notes.md", "# Tea\n\nAna drinks tea.")
    for folder in (tmp_path, tmp_path / "team", path):
        importer(memory, folder, "markdown").store()
    assert texts(memory) == ["Tea\nAna drinks tea."]


def test_a_long_id_names_a_row_in_any_file(memory: reverie.Memory, tmp_path: Path) -> None:
    row = {"id": "0191d4b2-7a30-7c11-9f3e-2b6d5e8a1c04", "text": "Ana drinks tea."}
    importer(memory, sources.write(tmp_path / "monday.jsonl", json.dumps(row)), "jsonl").store()
    changed = sources.write(tmp_path / "tuesday.jsonl", json.dumps(row | {"text": "Ana drinks coffee."}))
    assert importer(memory, changed, "jsonl").store().replaced == 1
    assert texts(memory) == ["Ana drinks coffee."]


def test_what_was_imported_under_the_name_of_a_file_alone_is_still_known(
    memory: reverie.Memory, tmp_path: Path
) -> None:
    """Earlier releases knew a record by its file's name below the imported folder, as what comes through a pipe is."""
    old = tmp_path / "old"
    old.mkdir()
    for number in range(3):
        sources.write(old / f"{number}.md", f"Note {number}.")
    done = Importer(memory.host, memory.actor, old, format="markdown", piped=True).store()
    again = importer(memory, old, "markdown")
    assert (again.look().duplicates, again.store().entries) == (3, 0)

    other = tmp_path / "other"
    other.mkdir()
    sources.write(other / "1.md", "Another note.")
    stranger = importer(memory, other, "markdown")
    assert (stranger.look().entries, stranger.store().replaced) == (1, 0)

    for words in ("Changed.", "Changed again."):
        sources.write(old / "1.md", words)
        again = importer(memory, old, "markdown")
        assert again.look().entries == 1
        changed = again.store()
        assert (changed.entries, changed.replaced) == (1, 1)
        assert texts(memory) == ["Another note.", words, "Note 0.", "Note 2."]
    assert undo(memory.host, memory.actor, changed.id).restored == 1
    assert undo(memory.host, memory.actor, done.id).entries == 2
    assert texts(memory) == ["Another note.", "Changed."]


def test_an_undo_brings_back_no_version_of_the_same_import(memory: reverie.Memory, tmp_path: Path) -> None:
    change = {"event": "UPDATE", "old_memory": "Lives in Rome", "new_memory": "Lives in Lyon"}
    path = sources.write(tmp_path / "m.json", [{"id": "a", "memory": "Lives in Lyon", "history": [change]}])
    done = importer(memory, path, "mem0").store()
    assert (done.entries, done.replaced, texts(memory)) == (2, 0, ["Lives in Lyon"])
    assert undo(memory.host, memory.actor, done.id).restored == 0
    assert importer(memory, path, "mem0").store().restored == 1
    assert texts(memory) == ["Lives in Lyon"]


def test_one_that_was_stopped_half_way_goes_on_or_is_taken_back(
    memory: reverie.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"text": f"Line {number}."}) for number in range(250)]
    path = sources.write(tmp_path / "a.jsonl", "\n".join(lines))
    stopped = importer(memory, path, "jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(stopped, "_link", lambda *_: pytest.fail("not reached"))
        put = stopped._put

        def once(ref: str, drafts: Any) -> Any:
            patch.setattr(stopped, "_put", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            return put(ref, drafts)

        patch.setattr(stopped, "_put", once)
        with pytest.raises(KeyboardInterrupt):
            stopped.store()
    assert len(texts(memory)) == 200
    assert undo(memory.host, memory.actor, stopped.id).entries == 200
    again = importer(memory, path, "jsonl").store()
    assert (again.entries, again.restored) == (50, 200)
    assert len(texts(memory)) == 250


def test_requests_do_not_grow_with_the_records(
    running: Any, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 records to a request: 450 records are 3 questions and the policy, 3 puts and a look at what they replaced; an
    undo and an import after it likewise."""
    lines = [json.dumps({"text": f"Line {number}."}) for number in range(450)]
    path = sources.write(tmp_path / "a.jsonl", "\n".join(lines))
    with reverie.open(running.url, key=running.key(tenant)) as memory:
        connection, asked = memory.host.connection, list[str]()
        raw = connection.raw

        def counted(verb: str, place: str, **more: Any) -> bytes:
            asked.append(place)
            return raw(verb, place, **more)

        monkeypatch.setattr(connection, "raw", counted)

        def requests() -> int:
            count = len(asked)
            asked.clear()
            return count

        first = importer(memory, path, "jsonl", "notes")
        assert first.look().entries == 450
        assert requests() == 3 + 1
        assert first.store().entries == 450
        assert requests() == 3 + 1
        assert undo(memory.host, memory.actor, first.id).entries == 450
        assert requests() == 1 + 4 + 3 + 3, "the memories, pages with the empty last one, what they replaced, changes"
        again = importer(memory, path, "jsonl", "notes").store()
        assert (again.entries, again.restored) == (0, 450)
        assert requests() == 3 + 3 + 3


def test_a_damaged_file_stores_nothing(memory: reverie.Memory, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"Line {number}."}) for number in range(500)] + ["{broken"]
    path = sources.write(tmp_path / "a.jsonl", "\n".join(lines))
    with pytest.raises(reverie.Invalid, match="line 501"):
        importer(memory, path, "jsonl").look()
    assert memory.snapshot() == 0


def test_more_than_a_batch_and_hostile_text(memory: reverie.Memory, tmp_path: Path) -> None:
    rows: list[Any] = [{"text": f"Line {number}.", "created_at": "2026-01-05"} for number in range(450)]
    rows += [{"text": "x" * 70_000}, {"text": "zero \0 byte", "tags": ["a\0b"], "deep": {"n": 2**60}}]
    path = sources.write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    done = importer(memory, path, "jsonl", "notes").store()
    assert done.entries == 454
    assert "zero   byte" in texts(memory, "notes")
    assert memory.verify().ok


def test_langgraph_items_get_a_memory_of_their_own(memory: reverie.Memory, tmp_path: Path) -> None:
    importer(memory, sources.langgraph(tmp_path), "langgraph").store()
    (entry,) = memory.ref("langgraph/users/ann").entries()
    assert entry.pinned
    assert entry.attributes["langgraph"]["key"] == "likes"

    from reverie.integrations.langgraph import ReverieStore

    item = ReverieStore(memory).get(("users", "ann"), "likes")
    assert item is not None
    assert item.value == {"text": "Ann likes tea"}


@pytest.mark.parametrize("to", ["markdown", "jsonl", "bundle"])
def test_importing_an_export_gives_the_same_entries(
    to: str, memory: reverie.Memory, tmp_path: Path, running: Any, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = memory.ref("team/notes")
    notes.put("Plain.")
    notes.put("\n  Two\r\nlines: --- \n---\nand more \u2028 \n", tags=["a b", "~m"], subject="ana: x", pinned=True)
    notes.put("With data.", attributes={"n": [1, {"x": None}], "t": "é"}, source={"actor": "desk", "session": "s"})
    memory.ref("other").put("Elsewhere.", id="an/odd id?", kind="fact")

    def shape(opened: reverie.Memory) -> list[tuple[Any, ...]]:
        return sorted(
            (e.ref, e.id, e.kind, e.content, e.tags, e.subject, dict(e.attributes), e.created_at, e.pinned, e.source.session)
            for ref, _ in opened.refs()
            for e in opened.ref(ref).entries()
        )  # fmt: skip

    if "127.0.0.1" in repr(memory):
        monkeypatch.setenv("REVERIE_URL", running.url)
        monkeypatch.setenv("REVERIE_KEY", running.key(tenant))
        place = ["--tenant", tenant]
    else:
        place = ["--data", str(tmp_path), "--tenant", tenant]
    target = tmp_path / "export.jsonl" if to != "markdown" else tmp_path / "export"
    assert run(["export", "--to", to, "-o", str(target), *place, "--json"]) == 0
    assert run(["export", "--to", to, "-o", str(target), *place]) == 1, "an export overwrote"
    with reverie.open(tmp_path / "copy", tenant="copy") as copy:
        assert run(["import", str(target), "--data", str(tmp_path / "copy"), "--tenant", "copy", "--json"]) == 0
        assert shape(copy) == shape(memory)
        assert len(shape(copy)) == 4


def test_a_path_that_cannot_be_read_is_named(memory: reverie.Memory, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in FORMATS:
        for path in (tmp_path / "missing.json", folder):
            with pytest.raises(Invalid, match=path.name):
                importer(memory, path, name).look()
    assert memory.refs() == []
