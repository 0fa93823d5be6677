"""Every command that a page shows exists, with the options it shows, whether in a block or in a line of text."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.api.cli.catalog import COMMANDS
from reverie.api.cli.command import Command, UsageError
from reverie.api.cli.main import command_of, find

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_ENDS = re.compile(r"\s(?:\||>|<|&|;|#|2>)")
_TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def shown(text: str) -> Iterator[tuple[str, bool]]:
    """Command lines of a page, and whether a reader pastes them whole."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield line.removeprefix("$ ").strip(), True
    for span in _INLINE.findall(_FENCE.sub("", text)):
        yield span.strip(), False


def words_of(line: str, name: str) -> list[str] | None:
    """The words after `name` at the beginning of a line, up to a pipe or comment; None when it begins otherwise."""
    line = re.sub(r"^(?:[A-Z_]+=\S* )+", "", re.sub(r"\$\([^)]*\)", "X", line.replace("\\|", "|")))
    if not line.startswith(name + " "):
        return None
    try:
        return shlex.split(_ENDS.split(line)[0])[len(name.split()) :]
    except ValueError:  # a quote that another command closes
        return None


def check(words: list[str], *, whole: bool) -> str | None:
    """What is wrong with the words of a `reverie` command; None: nothing."""
    if words[0] in ("--help", "--version", "COMMAND"):
        return None
    if words[0] not in COMMANDS:
        return f"there is no command {words[0]}"
    found = find(words[0])
    rest = words[1:]
    if not isinstance(found, Command):
        if not rest:
            return None
        if rest[0] not in found.functions:
            return None if rest[0] in ("...", "--help") else f"there is no command {words[0]} {rest[0]}"
        found = command_of(f"reverie {words[0]} {rest[0]}", found.functions[rest[0]])
        rest = rest[1:]
    try:
        found.parse([word for word in rest if word != "..."])
    except UsageError as fault:
        value = "is missing" in fault.message or "whole number" in fault.message or " is one of " in fault.message
        return None if value and not whole else fault.message
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    wrong = []
    for line, whole in shown(page.read_text(encoding="utf-8")):
        if (words := words_of(line, "reverie")) and (fault := check(words, whole=whole)):
            wrong.append(f"{line}: {fault}")
        if (words := words_of(line, "make")) and words[0].islower() and words[0] not in _TARGETS:
            wrong.append(f"{line}: there is no such target")
        if words := words_of(line, "python -m"):
            module = f"bench.{words[1]}" if words[0] == "bench" and len(words) > 1 and words[1].isalpha() else words[0]
            if module not in ("bench.all", "venv") and importlib.util.find_spec(module) is None:
                wrong.append(f"{line}: there is no module {module}")
    assert not wrong


def test_a_wrong_command_is_seen() -> None:
    lines = "```sh\nreverie put x --tagg y\nX=1 reverie recall x | head\n```\nSee `reverie dream plan --fitt` and `reverie nope`."
    found = [check(words, whole=whole) for line, whole in shown(lines) if (words := words_of(line, "reverie"))]
    assert len(found) == 4
    assert all(found)
