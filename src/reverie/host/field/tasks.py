# ruff: noqa: ARG001
"""COORDINATE."""

from __future__ import annotations

from typing import Any

from reverie.core.actor import Right
from reverie.host.field.call import Call, Operation


def _execute(call: Call) -> dict[str, Any]:
    raise call.error("UNSUPPORTED_OPERATION", "Not yet.")


COORDINATE = Operation("COORDINATE", level=3, execute=_execute, right=Right.WRITE)


def give_back_tasks(call: Call, agent_id: str) -> int:
    """Open tasks of an agent that leaves go back to pending; how many."""
    return 0
