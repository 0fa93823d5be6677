"""A process that runs `reverie migrate-store` and dies at a line of its code. Run by test_move_kill.py."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from tests.processes import die

from reverie.api.cli.main import run
from reverie.ops import move
from reverie.settings import Settings
from reverie.store.postgres import transfer as postgres
from reverie.store.sqlite import transfer as sqlite

FILES = {str(module.__file__) for module in (move, postgres, sqlite)}


def main(source: str, target: str, point: tuple[str, int, int] | None) -> None:
    """Move, and die at a point."""
    move._BATCH = 20  # more to be torn apart
    if point:
        arm(*point)
    sys.exit(run(["migrate-store", source, target, "--json"]))


def carry(source: str, target: str, line: int) -> None:
    """The last step only: the files beside the database."""
    arm("carry_files", 1, line)
    move.carry_files(Settings.load(data=source), Settings.load(data=target))


def arm(within: str, call: int, line: int) -> None:
    """Die before this line of this call of the function `within`; without a name, before this line of all of the move.

    Where a function only passes on to `_within`, that one is meant.
    """
    calls = lines = 0
    texts = {path: Path(path).read_text(encoding="utf-8") for path in FILES}
    inner = {path for path, text in texts.items() if f"def {within}(" in text and f"def _{within}(" in text}

    def count(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal lines
        if what == "line":
            lines += 1
            if lines == line:
                die()
        return count

    def trace(frame: FrameType, *_: Any) -> Any:
        nonlocal calls
        path = frame.f_code.co_filename
        if path not in FILES or (within and frame.f_code.co_name != (f"_{within}" if path in inner else within)):
            return None
        calls += 1
        return count if not within or calls == call else None

    sys.settrace(trace)
