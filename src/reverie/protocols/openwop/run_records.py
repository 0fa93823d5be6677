"""Run records, inside a transaction: load and save."""

from __future__ import annotations

from typing import Any

import msgspec

from reverie.core.errors import Conflict, NotFound
from reverie.core.run import ENGINE_VERSION, RUN_SPACE, Run
from reverie.store.contract import ReadTx, WriteTx

ENTRY = "$entry"
"""Marker of a variable that is an entry, stored by id. Its text is looked up when the run is shown."""
OPEN_SPACE = "run-open"
"""Space with a document for each run that has not ended; read by recovery."""


def lease_of(run_id: str) -> str:
    """The lease of the process that works on a run."""
    return f"run/{run_id}"


def names_entry(value: Any) -> bool:
    """Whether a stored variable is an entry."""
    return isinstance(value, dict) and value.keys() == {ENTRY}


def by_name(value: Any) -> bool:
    """Whether a stored variable is an entry, or a list that contains one."""
    return names_entry(value) or (isinstance(value, list) and any(map(names_entry, value)))


class _Stamp(msgspec.Struct):
    engine: int = ENGINE_VERSION


def load_run(tx: ReadTx, run_id: str) -> Run:
    """Load a run. Raises NotFound, or Conflict (`engine_version_mismatch`) when a newer engine wrote it."""
    document = tx.load(RUN_SPACE, run_id) if run_id else None
    if document is None or document.body is None:
        raise NotFound("There is no run with that id.")
    engine = msgspec.json.decode(document.body, type=_Stamp).engine
    if engine > ENGINE_VERSION:
        raise Conflict(
            "A newer version of this host wrote this run. Read it there.",
            code="engine_version_mismatch",
            details={"runId": run_id, "persistedVersion": engine, "currentVersion": ENGINE_VERSION},
        )
    return msgspec.json.decode(document.body, type=Run)


def save_run(tx: WriteTx, run: Run, *, seq: int, new: bool = False) -> None:
    """Store a run; `new` refuses an id that is taken."""
    tx.save(RUN_SPACE, run.id, msgspec.json.encode(run), seq=seq, expected=0 if new else None)
