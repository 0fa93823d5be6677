"""Bad input gets one clear line and an exit code, never a traceback; bad content never reaches the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reverie.api.cli import main
from reverie.api.cli.terminal import json_line, neutral

Cli = Any


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nonsense"], 2),
        (["put", "x", "--nonsense"], 2),
        (["get"], 2),
        (["list", "--limit", "many"], 2),
        (["search", "x", "--mode", "psychic"], 2),
        (["audit", "tail", "-n", "-1"], 2),
        (["list", "--limit", "0"], 1),
        (["put", "x", "--ref", "../../etc/passwd"], 1),
        (["put", "x", "--ref", "a\x00b"], 1),
        (["put", "x", "--ref", "r" * 300], 1),
        (["put", "x", "--tenant", "../other"], 1),
        (["put", ""], 1),
        (["put", "nul \x00 inside"], 1),
        (["put", "lone \udcff surrogate"], 1),
        (["put", "y" * 70_000], 1),
        (["put", "x", "--expires", "2020-01-01T00:00:00Z"], 1),
        (["put", "x", "--expires", "999999999w"], 1),
        (["put", "x", "--attribute", "nothing"], 1),
        (["put", "x", "--attribute", "a:={"], 1),
        (["put", "x", "--database-url", "postgres://localhost/x"], 1),
        (["put", "x", "--data", "/dev/null/below"], 1),
        (["restore", "/nowhere/at/all.db", "--into", "/dev/null"], 1),
        (["backup", "verify", "/nowhere/at/all.db"], 1),
        (["import", "/nowhere/at/all.jsonl"], 1),
    ],
)
def test_bad_arguments(cli: Cli, arguments: list[str], code: int) -> None:
    cli(*arguments).failed(code=code)


def test_reads_with_a_malformed_ref_find_nothing(cli: Cli) -> None:
    cli("put", "something")
    for ref in ("../default", "default/", "", "a\x00", "%2e%2e"):
        cli("list", "--ref", ref, "--json").failed("not_found")
        cli("search", "something", "--ref", ref, "--json").failed("not_found")


def test_a_missing_database_is_not_made_by_reading(cli: Cli, data: Path) -> None:
    for command in (
        ["list"],
        ["search", "x"],
        ["audit", "verify"],
        ["doctor"],
        ["stats"],
        ["export"],
        ["keys", "list"],
    ):
        cli(*command).failed("There is no database", "reverie put")
    assert not data.exists()


def test_a_corrupt_file(cli: Cli, data: Path) -> None:
    data.mkdir()
    (data / "reverie.db").write_bytes(b"this is not a database, however long one looks at it" * 100)
    for command in (["list"], ["put", "x"], ["doctor"], ["keys", "create"]):
        cli(*command).failed("store_corrupt")


def test_a_damaged_page_fails_the_doctor(cli: Cli, data: Path) -> None:
    cli("put", "--many", stdin="\n".join(f'"entry number {n} with some words in it"' for n in range(300)))
    raw = bytearray((data / "reverie.db").read_bytes())
    for at in range(len(raw) // 2, len(raw) // 2 + 20_000):
        raw[at] ^= 0x5A
    (data / "reverie.db").write_bytes(raw)
    done = cli("doctor")
    assert done.code == 1


def test_an_unwritable_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cli("put", "x", "--data", str(tmp_path / "file" / "below")).failed("store_unavailable")


def test_unexpected_faults_show_their_type_and_no_text(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("the text of a memory")

    monkeypatch.setattr("reverie.app.build_host", explode)
    answer = cli("list").failed("RuntimeError", "REVERIE_DEBUG=1")
    assert "the text of a memory" not in answer.err


def test_debug_shows_where(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def explode(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("inside")

    monkeypatch.setattr("reverie.app.build_host", explode)
    monkeypatch.setenv("REVERIE_DEBUG", "1")
    assert main.run(["list"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_content_never_reaches_the_terminal_as_control_characters(cli: Cli) -> None:
    nasty = "\x1b[31mred\x1b[0m \x9b2J \x07 \u202eflip \r over \U000e0041 \u200b end"
    entry_id = cli("put", nasty, "--tag", "\x1b]0;title\x07", "--subject", "\x1b[2J", "--json").json["id"]
    for command in (["list"], ["get", entry_id], ["search", "red"], ["context", "red"], ["search", "red", "--explain"]):
        answer = cli(*command)
        assert answer.code == 0
        assert not set(answer.out) & set("\x1b\x9b\x07\u202e\r\U000e0041\u200b"), command
    assert "\\x1b[31mred" in cli("list").out
    exact = cli("get", entry_id, "--json")
    assert exact.json["content"] == nasty
    assert not set(exact.out) & set("\x1b\x9b\x07\u202e\r\U000e0041\u200b")


def test_markup_is_text(cli: Cli) -> None:
    cli("put", "[bold]not bold[/bold] [link=http://x]y[/link]")
    assert "[bold]not bold[/bold]" in cli("list").out


def test_an_error_never_carries_what_it_was_given_unescaped(cli: Cli) -> None:
    answer = cli("\x1b[31mnonsense").failed(code=2)
    assert "\x1b" not in answer.err


def test_neutral_and_json_agree_on_what_is_dangerous() -> None:
    import json

    for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xFEFF, 0xE0041):
        character = chr(code)
        if character in "\n\t":
            continue
        assert character not in neutral(f"a{character}b")
        line = json_line({"x": character}).decode()
        assert character not in line[:-1]
        assert json.loads(line) == {"x": character}
