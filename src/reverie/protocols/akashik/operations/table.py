"""The table of operations, each with the level that has it."""

from __future__ import annotations

from collections.abc import Mapping

from reverie.protocols.akashik.call import Operation
from reverie.protocols.akashik.operations import (
    agents,
    attune,
    compact,
    detect,
    handoff,
    merge,
    record,
    replay,
    sessions,
    subscriptions,
    tasks,
)

TABLE: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        agents.REGISTER,
        agents.DEREGISTER,
        record.RECORD,
        attune.ATTUNE,
        detect.DETECT,
        merge.MERGE,
        subscriptions.SUBSCRIBE,
        replay.REPLAY,
        compact.COMPACT,
        tasks.COORDINATE,
        handoff.HANDOFF,
        sessions.SESSION,
    )
}
STRATEGIES: Mapping[str, int] = merge.STRATEGIES
"""Strategies of MERGE, each with the level that has it."""
