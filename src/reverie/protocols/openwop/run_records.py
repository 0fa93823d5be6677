"""Run records, inside a transaction: load and save."""

from __future__ import annotations

import msgspec

from reverie.core.errors import NotFound
from reverie.core.run import RUN_SPACE, Run
from reverie.store.contract import ReadTx, WriteTx

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
