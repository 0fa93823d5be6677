# ruff: noqa: ARG001
"""DETECT and MERGE: units that contradict each other."""

from __future__ import annotations

from typing import Any

from reverie.core.actor import Right
from reverie.core.entry import Entry
from reverie.host.field.call import Call, Operation
from reverie.host.field.visibility import CredentialView, View
from reverie.store.contract import ReadTx

STRATEGIES = {
    "last_write_wins": 2,
    "confidence_weighted": 2,
    "human_escalation": 2,
    "evidence_count": 3,
    "authority": 3,
    "synthesis": 3,
    "vote": 3,
}
"""Each way to resolve a conflict, with the level that has it."""


def contradict(call: Call, entry: Entry, target: Entry) -> str:
    """RECORD with a `contradicts` relation opens a Conflict (or finds the open one of the pair): its id."""
    return ""


def detect(call: Call, entry: Entry) -> list[str]:
    """Automatic detection for a unit just recorded (Level 2): the ids of conflicts it opened."""
    return []


def unresolved(call: Call) -> list[dict[str, Any]]:
    """The unresolved conflicts touching the caller's session, as ATTUNE and HANDOFF show them."""
    return []


def unresolved_for(
    tx: ReadTx, view: View | CredentialView, *, agent_id: str | None, session_id: str | None
) -> list[dict[str, Any]]:
    """`GET /v1/conflicts`: unresolved conflicts of which `view` reaches both sides, by author and session."""
    return []


def open_count(tx: ReadTx) -> int:
    """How many conflicts are not resolved."""
    return 0


def _detect(call: Call) -> dict[str, Any]:
    raise call.error("UNSUPPORTED_OPERATION", "Not yet.")


def _merge(call: Call) -> dict[str, Any]:
    raise call.error("UNSUPPORTED_OPERATION", "Not yet.")


DETECT = Operation("DETECT", level=1, execute=_detect, right=Right.READ)
MERGE = Operation("MERGE", level=2, execute=_merge)
