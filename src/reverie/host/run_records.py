"""Run records, inside a transaction: load, save, and the mark that every event of a run carries."""

from __future__ import annotations

from typing import Any

import msgspec

from reverie.core.actor import Actor
from reverie.core.errors import NotFound
from reverie.core.run import Run, RunOver
from reverie.store.contract import ReadTx, WriteTx

RUN_SPACE = "run"
OPEN_SPACE = "run-open"
"""A document for each run that has not ended: what a recovery looks through."""


def load_run(tx: ReadTx, run_id: str) -> Run:
    """The run. Raises NotFound."""
    document = tx.load(RUN_SPACE, run_id) if run_id else None
    if document is None or document.body is None:
        raise NotFound("There is no run of that id.")
    return msgspec.json.decode(document.body, type=Run)


def save_run(tx: WriteTx, run: Run, *, seq: int, new: bool = False) -> None:
    """Store a run; `new` refuses an id that is taken."""
    tx.save(RUN_SPACE, run.id, msgspec.json.encode(run), seq=seq, expected=0 if new else None)


def mark(tx: ReadTx, actor: Actor) -> dict[str, Any]:
    """What the data of an event carries when a run acts.

    Raises RunOver when the run has ended meanwhile: an executor that was thought dead cannot write after the last
    event of its run.
    """
    if actor.run is None:
        return {}
    document = tx.load(RUN_SPACE, actor.run)
    if document is not None and document.body is not None and msgspec.json.decode(document.body, type=Run).ended:
        raise RunOver()
    return {"run": actor.run}
