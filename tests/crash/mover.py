"""A process that runs `reverie migrate-store` and dies at a line of its code. Run by test_move_kill.py."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from tests.processes import die

from reverie.doors.cli.main import run
from reverie.ops import move
from reverie.settings import Settings
from reverie.store.postgres import transfer as postgres
from reverie.store.sqlite import transfer as sqlite

FILES = {module.__file__ for module in (move, postgres, sqlite)}


def main(source: str, target: str, within: str = "", number: int = 0) -> None:
    """Move, and die at a line."""
    move._BATCH = 20  # more to be torn apart
    arm(within, number)
    sys.exit(run(["migrate-store", source, target, "--json"]))


def carry(source: str, target: str, number: int) -> None:
    """The last step only: the files beside the database."""
    arm("carry_files", number)
    move.carry_files(Settings.load(data=source), Settings.load(data=target))


def arm(within: str, number: int) -> None:
    """Die before the line of this number, counted in the function `within` or, without a name, in all of the move."""
    lines = 0

    def count(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal lines
        if what == "line" and within in ("", frame.f_code.co_name):
            lines += 1
            if lines == number:
                die()
        return count

    sys.settrace(lambda frame, *_: count if frame.f_code.co_filename in FILES else None)
