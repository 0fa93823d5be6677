"""Forks of runs: a replay shows the recorded events, a branch runs again."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.entry import Scope
from reverie.core.errors import Busy, Invalid, ReadOnly, Unprocessable
from reverie.core.event import NewEvent
from reverie.core.query import Filter, each
from reverie.core.run import RUN_SPACE, Fork, Run
from reverie.protocols.openwop.run_records import load_run, save_run
from reverie.protocols.openwop.runs import Runs
from reverie.protocols.openwop.workspace import WORKFLOW as WORKSPACE_WORKFLOW
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

MODES = ("replay", "branch")
_OVERLAY = ("inputs", "configurable", "metadata")
_PAGE = 1000
_MOST_EVENTS = 2**53
"""More than any run has, and small enough for a store to compare."""


class Forks:
    """Forks runs that have ended."""

    def __init__(self, parts: Services, runs: Runs) -> None:
        self._parts = parts
        self._runs = runs

    def fork(
        self,
        actor: Actor,
        run_id: str,
        mode: str,
        *,
        from_seq: int | None = None,
        overlay: Mapping[str, Any] | None = None,
        fixtures: bool = False,
        new_id: str | None = None,
    ) -> Run:
        """Fork a run that has ended. `new_id`: the id of the fork; an existing fork with that id is returned as it is.

        A replay shows the recorded events with their recorded ids and repeats no work; it is refused when part of the
        memory that its source saw has been destroyed. A branch is a new run of the same workflow.
        """
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        source = self._runs.get(actor, run_id)
        if mode not in MODES:
            raise Invalid(f"mode is one of {', '.join(MODES)}.", pointer="/mode")
        if from_seq is None and mode == "branch":
            raise Invalid("A branch needs fromSeq, the event it starts from.", pointer="/fromSeq")
        at = min(from_seq or 0, _MOST_EVENTS)
        if at < 0:
            raise Invalid("fromSeq is at least 0.", pointer="/fromSeq")
        if not self._runs.events(actor, source, after=at - 1, limit=1):
            last = self._length(actor, source) - 1
            raise Unprocessable(
                f"The run's last event is {last}.", code="invalid_from_seq", details={"fromSeq": at, "lastSeq": last}
            )
        if mode == "replay" and overlay:
            raise Invalid("A replay changes nothing: leave runOptionsOverlay out.", pointer="/runOptionsOverlay")
        if source.workflow == WORKSPACE_WORKFLOW:
            raise Invalid("This run is the host's own and cannot be forked.", pointer="/runId")
        if not source.ended:
            raise Busy("The run has not ended yet. Fork it afterwards.")
        if mode == "replay":
            return self._replay(actor, source, at, new_id or self._parts.ids.new())
        return self._branch(actor, source, at, overlay, fixtures, new_id)

    def _replay(self, actor: Actor, source: Run, at: int, new_id: str) -> Run:
        if source.ref is not None and not self._parts.store.read(
            Scope(actor.tenant, source.ref), lambda tx: _is_snapshot_complete(tx, source)
        ):
            raise Unprocessable(
                "Some of the memory this run saw has been destroyed. Current memory is no substitute.",
                code="replay_memory_snapshot_unavailable",
                details={"fromSeq": at, "sourceRunId": source.id, "reason": "retention_expired"},
            )
        recorded = source.fork.recorded if source.fork and source.fork.recorded else source.id
        replay = msgspec.structs.replace(
            source,
            id=new_id,
            actor=actor.id,
            rights=tuple(sorted(actor.rights)),
            authority=actor.authority,
            fork=Fork(source.id, at, "replay", recorded),
        )

        def body(tx: WriteTx) -> Run:
            if tx.load(RUN_SPACE, new_id) is not None:
                return load_run(tx, new_id)
            data = {"replay": replay.id, "source": source.id, "from": at}
            seq = tx.append(NewEvent("run.replayed", "RUN", actor.id, data=data))
            made = msgspec.structs.replace(replay, started_at=tx.now, completed_at=tx.now)
            save_run(tx, made, seq=seq, new=True)
            return made

        return self._parts.store.write(Scope(actor.tenant), body)

    def _branch(
        self,
        actor: Actor,
        source: Run,
        at: int,
        overlay: Mapping[str, Any] | None,
        fixtures: bool,
        new_id: str | None,
    ) -> Run:
        changes = dict(overlay or {})
        for name in _OVERLAY:
            if not isinstance(changes.get(name, {}), dict):
                raise Invalid(f"{name} is an object.", pointer=f"/runOptionsOverlay/{name}")
        tags = changes.get("tags", list(source.tags))
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise Invalid("tags is a list of strings.", pointer="/runOptionsOverlay/tags")
        return self._runs.start(
            actor,
            source.workflow,
            inputs={**source.inputs, **changes.get("inputs", {})},
            configurable={**source.configurable, **changes.get("configurable", {})},
            tags=tags,
            metadata={**source.metadata, **changes.get("metadata", {})},
            fixtures=fixtures,
            fork=Fork(source.id, at, "branch"),
            run_id=new_id,
        )

    def _length(self, actor: Actor, run: Run) -> int:
        length = 0
        while page := self._runs.events(actor, run, after=length - 1, limit=_PAGE):
            length = page[-1][0] + 1
        return length


def _is_snapshot_complete(tx: ReadTx, run: Run) -> bool:
    """Whether every entry that the run's memory had at its start can still be read as of then."""
    found = each(lambda cursor: tx.scan(Filter(), limit=_PAGE, cursor=cursor, as_of=run.snapshot))
    return sum(1 for _ in islice(found, run.seen)) >= run.seen
