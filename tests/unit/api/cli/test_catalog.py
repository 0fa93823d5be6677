"""The table of commands says what the commands say, and help shows all of it."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.api.cli.catalog import CATALOG
from reverie.api.cli.command import Command, first_sentence
from reverie.api.cli.main import find, root_page

Cli = Any


def test_every_summary_is_the_first_sentence_of_its_command() -> None:
    for commands in CATALOG.values():
        for name, (_, summary) in commands.items():
            found = find(name)
            said = found.summary if isinstance(found, Command) else first_sentence(found.help)
            assert said == summary, name


@pytest.mark.parametrize("width", [40, 80, 100])
def test_help_cuts_no_summary_and_fits(width: int) -> None:
    page = root_page(width)
    words = " ".join(page.split())
    for purpose, commands in CATALOG.items():
        assert f"\n{purpose}:\n" in page
        for name, (_, summary) in commands.items():
            assert f"{name} {summary}" in words
    assert max(map(len, page.splitlines())) <= width


def test_a_wrong_word_names_the_near_ones(cli: Cli) -> None:
    cli("serach", "x").failed("Did you mean search?", "reverie --help", code=2)
    cli("dream", "udno", "x").failed("Did you mean undo?", "reverie dream --help", code=2)
    cli("list", "--tags", "x").failed("--tag", "reverie list --help", code=2)
    cli("list", "one", "two").failed("too many", code=2)
    cli("put", "x", "--ref").failed("--ref needs a value", code=2)
    assert cli().code == 2
    assert cli("--help").code == cli("dream", "-h").code == cli("put", "--help").code == 0


def test_options_in_every_spelling(cli: Cli) -> None:
    for at, words in enumerate((["-t", "a"], ["-ta"], ["--tag", "a"], ["--tag=a"])):
        assert cli("put", f"text {at}", *words, "--json").code == 0
    assert cli("put", "--tag", "a", "--", "--not an option").code == 0
    assert len(cli("list", "-n", "50", "--tag", "a", "--json").json["items"]) == 5
    cli("list", "--json=yes").failed("takes no value", code=2)


def test_errors_are_json_on_stderr_under_json(cli: Cli) -> None:
    import json

    cli("put", "something")
    answer = cli("get", "nothing-of-that-id", "--json")
    assert (answer.code, answer.out) == (1, "")
    assert json.loads(answer.err)["error"] == "not_found"
    usage = cli("list", "--limit", "many", "--json")
    assert usage.code == 2
    assert json.loads(usage.err)["error"] == "usage_error"
    assert json.loads(cli("put", "x", "--ref", "../x", "--json").err)["details"]["pointer"] == "/ref"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(cli: Cli, shell: str) -> None:
    script = cli("completion", shell).out
    for word in ("put", "migrate-store", "undo", "idempotency-key"):
        assert word in script
    cli("completion", "tcsh").failed("bash, zsh, fish", code=2)


def test_the_bash_script_completes(cli: Cli, tmp_path: Any) -> None:
    import subprocess

    (tmp_path / "script").write_text(cli("completion", "bash").out)
    for words, wanted in (
        ("reverie sear", "search"),
        ("reverie dream un", "undo"),
        ("reverie put --idem", "--idempotency-key"),
    ):
        parts = words.split()
        ask = f"COMP_WORDS=({words}); COMP_CWORD={len(parts) - 1}; _reverie; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", f". {tmp_path}/script; {ask}"], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == wanted
