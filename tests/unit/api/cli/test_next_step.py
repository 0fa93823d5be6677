"""What a mistake gets: one line that names the mistake and the next step. Never a traceback, never silence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.api.cli import put as putting
from reverie.core.errors import HostUnreachable, StoreUnavailable
from reverie.store.sqlite.store import SqliteStore

Cli = Any


def test_a_missing_or_extra_word_shows_the_shape_of_the_command(cli: Cli) -> None:
    cli("restore", "x.db").failed("--into is missing: reverie restore", "--into", code=2)
    cli("restore", "x.db", "there").failed("there is one word too many: reverie restore", code=2)
    cli("get").failed("ID is missing: reverie get [OPTIONS] ID", code=2)


def test_a_missing_or_extra_word_is_explained(cli: Cli) -> None:
    cli("dream", "undo").failed("DREAM is missing", "a unique beginning of it, or `last`", code=2)
    extra = cli("export", "all.jsonl").failed("To write to a file: -o all.jsonl", code=2).err
    assert "Quote" not in extra


def test_a_file_that_cannot_be_read_names_the_next_step(cli: Cli, tmp_path: Path) -> None:
    cli("put", "--file", str(tmp_path / "none.txt")).failed("There is no file or folder", "Check the path")
    cli("put", "--file", str(tmp_path)).failed("is a folder", f"reverie import {tmp_path}")


def test_a_name_is_said_once_and_the_nearest_is_named(cli: Cli) -> None:
    cli("put", "x")
    assert cli("policy", "set", "nightly=maybe").failed("is one of on, off").err.count("nightly") == 1
    cli("connect", "claudecode").failed("There is no agent claudecode. Did you mean claude-code")


def test_a_list_that_goes_on_says_so_at_its_head(cli: Cli) -> None:
    for number in range(3):
        cli("put", f"note {number}")
    assert "the newest 2 entries of the memory default" in cli("list", "-n", "2").err
    assert cli("list").err.startswith("3 entries of the memory default")


def test_events_that_do_not_exist_are_not_silence(cli: Cli) -> None:
    cli("put", "x")
    assert "No events match." in cli("audit", "tail", "--type", "no.such").err


def test_an_option_is_compared_by_its_word_and_comes_after_the_command(cli: Cli) -> None:
    assert "Did you mean" not in cli("search", "x", "--as-of", "monday").failed("no option --as-of", code=2).err
    cli("put", "x", "--tga", "y").failed("Did you mean --tag?", code=2)
    cli("--json", "list").failed("--json comes after a command: reverie COMMAND --json", code=2)
    cli("entry", "--json").failed("--json comes after a command: reverie entry COMMAND --json", code=2)


def test_a_command_looked_for_in_a_group_is_named_where_it_is(cli: Cli) -> None:
    cli("backup", "restore", "x.db").failed("Did you mean reverie restore?", code=2)


def test_an_empty_memory_names_the_list_of_the_others(cli: Cli) -> None:
    cli("put", "The boiler was serviced in May.", "--ref", "house")
    for command in (["list"], ["search", "boiler"]):
        said = cli(*command)
        assert "in the memory default" in said.out + said.err
        assert "reverie refs" in said.out + said.err
    cli("get", "01M7P0ZKPGEG1VBV3VC2AEYVC9", "--ref", "house").failed("reverie list --ref house")


@pytest.mark.parametrize("command", ["keys list", "doctor", "tenants", "backup create x.db", "settings"])
def test_a_command_that_needs_the_data_says_where_it_runs(cli: Cli, command: str) -> None:
    cli(*command.split(), "--url", "http://127.0.0.1:1").failed("run it on the host's machine", code=2)


def test_empty_stdin_says_how_to_give_a_text(cli: Cli) -> None:
    cli("put").failed("stdin was empty", "--file")
    cli("put", stdin=" \n").failed("stdin was empty")


def test_an_interrupted_put_says_what_is_stored(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(putting, "_BATCH", 2)
    lines = "".join(f'"note {number}"\n' for number in range(6))
    real = putting.progress

    def interrupted(title: str) -> Any:
        """A person who presses Ctrl-C while the second batch is written."""
        from reverie.memory.entries import Entries

        write, calls = Entries.put, []

        def put(*args: Any, **options: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return write(*args, **options)

        monkeypatch.setattr(Entries, "put", put)
        return real(title)

    monkeypatch.setattr(putting, "progress", interrupted)
    answer = cli("put", "--many", stdin=lines).failed(
        "Interrupted. Lines 1 to 2 are stored; lines 3 to 4 may be.", code=130
    )
    assert "--idempotency-key" in answer.err


def test_an_empty_context_says_so(cli: Cli) -> None:
    cli("put", "The gate of pier four is green.")
    answer = cli("context", "quantum chromodynamics lecture")
    assert answer.code == 0
    assert answer.out == ""
    assert "Nothing in the memory default answers this well enough" in answer.err


def test_a_dream_over_its_budget_names_the_way_out(cli: Cli) -> None:
    lines = "".join(
        f'"Decision {number}: the crane of pier {number} carries {number * 7} tonnes."\n' for number in range(40)
    )
    cli("put", "--many", "--ref", "pier", stdin=lines)
    cli("dream", "run", "--ref", "pier", "--budget", "50").failed("Raise the budget, or choose fit (--fit")
    shown = cli("dream", "plan", "--ref", "pier", "--budget", "50").out
    assert "reverie dream run --ref pier --budget 50 --fit" in shown


def test_a_database_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "reverie.db").mkdir()
    with pytest.raises(StoreUnavailable, match=str(tmp_path / "reverie.db")):
        SqliteStore(tmp_path / "reverie.db")


def test_a_file_in_place_of_the_folder_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    cli("put", "x", "--data", str(tmp_path / "notes.txt")).failed("notes.txt", "--data")


def test_a_host_that_does_not_answer_is_waited_for_aloud(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_KEY", "rvk_made_up")
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def connect(url: str, *, sleep: Callable[[float], None], **options: Any) -> None:
        for pause in (0.1, 0.5, 0.6, 2.0):
            sleep(pause)
        raise HostUnreachable(f"{url} does not answer.")

    monkeypatch.setattr("reverie.client.connect", connect)
    answer = cli("refs", "--url", "http://127.0.0.1:1")
    assert answer.code == 1
    first, second = answer.err.splitlines()
    assert first == "Waiting for http://127.0.0.1:1 ..."
    assert "does not answer" in second
    assert json.loads(cli("refs", "--url", "http://127.0.0.1:1", "--json").err)["error"] == "host_unreachable"


def test_the_key_of_a_host_is_asked_for_with_the_command_that_makes_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REVERIE_KEY", raising=False)
    cli("refs", "--url", "http://127.0.0.1:1").failed("reverie keys create")


def test_ctrl_c_while_the_program_starts_leaves_no_traceback() -> None:
    code = (
        "import sys; import reverie.__main__ as entry\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'reverie.api.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "entry.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "reverie: Interrupted.\n")


def test_python_runs_the_package() -> None:
    done = subprocess.run([sys.executable, "-m", "reverie", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("reverie ")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_the_latest_events_fit_a_narrow_terminal(cli: Cli, data: Path) -> None:
    cli("put", "x", "--id", "018f6d2c-7c1a-7000-8000-0123456789ab")
    cli("put", "y")
    screen, terminal = os.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "reverie", "audit", "tail"],
            stdout=terminal,
            stderr=subprocess.PIPE,
            env={**os.environ, "COLUMNS": "80", "REVERIE_DATA": str(data)},
            check=True,
        )
        shown = os.read(screen, 10_000).decode().splitlines()
    finally:
        os.close(terminal)
        os.close(screen)
    assert len(shown) == 2
    assert all(len(line) <= 80 for line in shown)
    assert shown[0].endswith("018f6d2c-7c1")


@pytest.mark.parametrize("form", ["bundle", "jsonl", "markdown"])
def test_an_export_of_a_memory_that_does_not_exist_is_refused(cli: Cli, tmp_path: Path, form: str) -> None:
    cli("put", "x", "--ref", "team")
    cli("export", "--ref", "tem", "--to", form, "-o", str(tmp_path / "out")).failed("Did you mean team?")
    assert not (tmp_path / "out").exists()


def test_an_export_into_a_missing_folder_names_the_folder(cli: Cli, tmp_path: Path) -> None:
    cli("put", "x")
    cli("export", "-o", str(tmp_path / "gone" / "x.jsonl")).failed(f"There is no folder {tmp_path / 'gone'}.")


def test_an_unknown_agent_says_where_agents_are_listed(cli: Cli) -> None:
    cli("put", "x")
    cli("agents", "show", "nope").failed("reverie agents list")


def test_an_empty_value_says_what_to_give(cli: Cli) -> None:
    cli("put", " ").failed("the text is empty", "reverie put 'something'")
    cli("put", "x", "--kind", "").failed("--kind is empty", "leave the option out")
    cli("list", "--tag", " ").failed("--tag is empty", "leave the option out")
    cli("secrets", "add", "door").failed("Stdin was empty", "terminal")


@pytest.mark.parametrize("text", ["yesterday", "31-02-2026", "3000000d"])
def test_a_time_to_come_is_explained_by_times_to_come(cli: Cli, text: str) -> None:
    cli("put", "x", "--expires", text).failed("--expires: this ", "next friday")


def test_a_block_without_room_names_the_budget(cli: Cli) -> None:
    cli("put", "Ana prefers oolong tea to coffee in the morning.")
    assert "1 entry would answer, but 18 tokens" in cli("context", "what tea does Ana prefer?", "--budget", "18").err


def test_weak_hits_are_announced(cli: Cli) -> None:
    cli("put", "Ana prefers tea.")
    assert "Nothing in the memory default answers this well" in cli("search", "zebra crossing").err
    assert cli("search", "does Ana prefer tea?").err == ""


def test_a_misspelt_setting_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no such setting" not in cli("settings").err
    monkeypatch.setenv("REVERIE_PROT", "9000")
    assert "REVERIE_PROT is set, but there is no such setting. Did you mean REVERIE_PORT" in cli("settings").err


def test_a_place_that_cannot_be_written_is_named(cli: Cli) -> None:
    cli("put", "x")
    cli("backup", "create", "/proc/x.db").failed("Cannot write to /proc", "another place")
    cli("migrate-store", "x", "sqlite:///y.db").failed("SOURCE is postgresql://")


def test_the_command_shown_after_a_move_opens_the_new_store(cli: Cli, data: Path, tmp_path: Path) -> None:
    cli("put", "x")
    target = f"sqlite:///{tmp_path / 'moved.db'}"
    moved = cli("migrate-store", f"sqlite:///{data / 'reverie.db'}", target)
    assert f"REVERIE_DATABASE_URL={target} reverie serve" in moved.err
