"""The examples whose frameworks are in the development environment; `make compat` runs the others."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.test_server import Child

os.environ["MEM0_TELEMETRY"] = "false"
EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> Any:
    spec = util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_langgraph(tmp_path: Path) -> None:
    assert load("langgraph_store").main(str(tmp_path)) == "I drink Darjeeling tea."


def test_pydantic_ai(tmp_path: Path) -> None:
    assert load("pydantic_ai_memory").main(str(tmp_path)) == ("Darjeeling.", 2)


def test_mem0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    child = Child(tmp_path / "data")
    try:
        assert load("mem0_client").main(child.url, child.key) == "My dog is called Bruno."
    finally:
        child.kill()


def test_support_bot(tmp_path: Path) -> None:
    first, second, last = load("support_bot").main(str(tmp_path))
    assert first == "I will find out: My parcel has not arrived yet."
    assert "Ana prefers e-mail to phone calls." in second
    assert last == "forgot 5 memories; the log is sound: True"
    assert not any(b"Ana prefers" in path.read_bytes() for path in tmp_path.iterdir())


def test_coding_agent(tmp_path: Path) -> None:
    known = load("coding_agent").main(str(tmp_path))
    assert known.count("we deploy on Thursdays") == 1
    assert "linter" in known


def test_team_field() -> None:
    assert "Pier 4 is 120 metres long." in load("team_field").main()


def test_nightly_dream(tmp_path: Path) -> None:
    import reverie

    example = load("nightly_dream")
    sent: list[dict[str, Any]] = []
    with reverie.open(tmp_path) as memory:
        notes = memory.ref("support-bot")
        notes.put_many([f"On day {n} the ferry left at {n + 5} o'clock, and it rained." for n in range(20)])
        assert notes.dream() is not None
    assert example.main(str(tmp_path), sent.append) == 1
    assert example.main(str(tmp_path), sent.append) == 0
    assert sent[0]["memory"] == "support-bot"
    assert "20 memories became one" in sent[0]["text"]
    assert "ferry" not in str(sent)

    def refuse(_report: dict[str, Any]) -> None:
        raise OSError("the webhook does not answer")

    with reverie.open(tmp_path) as memory:
        memory.dreams.undo(sent[0]["dream"])
        assert memory.ref("support-bot").dream() is not None
    with pytest.raises(OSError, match="does not answer"):
        example.main(str(tmp_path), refuse)
    assert example.main(str(tmp_path), sent.append) == 1


def test_a_dream_that_was_forgotten_or_undone_is_not_reported(tmp_path: Path) -> None:
    import reverie

    sent: list[dict[str, Any]] = []
    with reverie.open(tmp_path) as memory:
        for subject in ("ann", "bob"):
            notes = memory.ref(subject)
            notes.put_many(
                [
                    {"content": f"On day {n} the ferry left at {n + 5} o'clock, and it rained.", "subject": subject}
                    for n in range(20)
                ]
            )
            dream = notes.dream()
            assert dream is not None
        memory.dreams.undo(dream.id)
        memory.forget("ann")
    assert load("nightly_dream").main(str(tmp_path), sent.append) == 0
    assert sent == []


def test_a_crash_while_the_position_of_reports_is_written_stops_no_later_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reverie

    example = load("nightly_dream")
    sent: list[dict[str, Any]] = []
    with reverie.open(tmp_path) as memory:
        notes = memory.ref("support-bot")
        notes.put_many([f"On day {n} the ferry left at {n + 5} o'clock, and it rained." for n in range(20)])
        assert notes.dream() is not None
    write = Path.write_text
    with monkeypatch.context() as killed:

        def die(path: Path, _text: str) -> None:
            write(path, "")
            raise KeyboardInterrupt

        killed.setattr(Path, "write_text", die)
        with pytest.raises(KeyboardInterrupt):
            example.main(str(tmp_path), sent.append)
    assert example.main(str(tmp_path), sent.append) == 1
    assert sent[0] == sent[1]


def test_notebook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import json

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    scope: dict[str, Any] = {}
    for cell in json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)
    printed = capsys.readouterr().out
    assert "80 bar" in printed
    assert "21 memories are back; the log is sound: True" in printed
