"""Memories from elsewhere: one module for each format, one way into the store.

A format reads a file or a folder as records (`record.py`); `run.py` looks at all of them first and then stores them
through the ordinary write path.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol

from reverie.core.errors import Invalid
from reverie.importers.entry_file import exported_as
from reverie.importers.record import Item

FORMATS = {
    "mcp-memory": "mcp_memory",
    "claude-code": "claude_files",
    "mem0": "mem0",
    "chatgpt": "chatgpt",
    "claude": "claude",
    "letta": "letta",
    "langgraph": "langgraph",
    "basic-memory": "basic_memory",
    "markdown": "markdown",
    "jsonl": "jsonl",
    "csv": "csv_rows",
    "text": "plain",
}
"""Names on the command line and their modules, in the order in which a file is tried against them."""

ALIASES = {"obsidian": "basic-memory", "md": "markdown", "txt": "text", "claude-md": "claude-code"}


class Format(Protocol):
    """A module that reads one format."""

    def fits(self, path: Path, head: bytes) -> bool:
        """Whether a file (or a folder, then `head` is empty) looks like this format."""

    def read(self, path: Path) -> Iterator[Item]:
        """The records of a file or folder. Raises Invalid, with the line and what was expected, when it is damaged or
        foreign.
        """


def load(name: str) -> Format:
    """The format of that name. Raises Invalid, with the known names."""
    module = FORMATS.get(ALIASES.get(name, name))
    if module is None:
        raise Invalid(
            f"There is no format '{name[:32]}'. There are: bundle, {', '.join(FORMATS)}. Leave it out, and it is "
            "recognised."
        )
    found: Format = import_module(f"reverie.importers.{module}")
    return found


def detect(path: Path) -> str:
    """The name of the format that a file or folder looks like. Raises Invalid."""
    if not path.exists():
        raise Invalid(f"There is no file or folder {path}.")
    head = b""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(65_536)
    if (own := exported_as(path, head)) is not None:  # its texts and attributes may look like a foreign format
        return own
    for name in FORMATS:
        if load(name).fits(path, head):
            return name
    raise Invalid(
        f"{path.name} looks like none of the formats. Name one: reverie import FORMAT {path.name}. "
        f"There are: bundle, {', '.join(FORMATS)}.",
        pointer="/path",
    )
