"""Events of a run as the protocol shows them, and the parameters of a request for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request

from reverie.core.clock import to_iso
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.run import END_EVENTS, Fault, Run
from reverie.http.sse import message
from reverie.protocols.openwop.http.payloads import PAYLOADS, payload_of
from reverie.protocols.openwop.run_records import by_name

MODES = ("updates", "values", "messages", "debug")
_WITH_MEMORY = frozenset({"updates", "debug"})
_ALONE = "values"
"""A mode that cannot be combined, and is never batched."""
_LARGEST = 2**53 - 1
_NO_MESSAGE = "The run failed."
_MOST_BUFFER_MS = 5000
_MOST_WAIT_SECONDS = 30


def run_event(run: Run, sequence: int, event: Event) -> dict[str, Any]:
    """A run event document. In a replay, its run is the replay: the rest is what was recorded."""
    document: dict[str, Any] = {
        "eventId": f"{run.id}-{sequence}",
        "runId": run.id,
        "type": event.type,
        "payload": _payload(run, event),
        "timestamp": to_iso(event.at),
        "sequence": sequence,
        "schemaVersion": 1,
        "engineVersion": str(run.engine),
    }
    if event.data.get("node"):
        document["nodeId"] = event.data["node"]
    return document


def sse(document: dict[str, Any]) -> bytes:
    """The same as a server-sent event; its id is the sequence."""
    return message(document["type"], orjson.dumps(document), number=document["sequence"])


def batch(documents: Sequence[dict[str, Any]]) -> bytes:
    """Several as one server-sent event; its id is the highest sequence, after which a client resumes."""
    return message("batch", orjson.dumps(documents), number=documents[-1]["sequence"])


def ends(documents: Iterable[dict[str, Any]]) -> bool:
    """Whether the run's last event is among them."""
    return any(document["type"] in END_EVENTS for document in documents)


@dataclass(frozen=True, slots=True)
class EventsRequest:
    """Request for a run's events. Everything is checked before the form of the answer is chosen."""

    after: int = -1
    modes: frozenset[str] = frozenset({"updates"})
    buffer_seconds: float = 0.0
    wait_seconds: float = 0.0
    types: frozenset[str] | None = None
    node: str | None = None

    def wants(self, document: dict[str, Any]) -> bool:
        """Whether an event matches the request."""
        if self.types is not None and document["type"] not in self.types:
            return False
        if self.node is not None and document.get("nodeId") != self.node:
            return False
        return document["type"] not in PAYLOADS or bool(self.modes & _WITH_MEMORY)


def events_request(request: Request) -> EventsRequest:
    """Parse query and headers. Raises Invalid, `unsupported_stream_mode` for an unknown mode or combination."""
    query = request.query_params
    modes = [mode.strip() for given in query.getlist("streamMode") for mode in given.split(",")] or ["updates"]
    if not set(modes) <= set(MODES) or (_ALONE in modes and set(modes) != {_ALONE}):
        raise Invalid(
            f"streamMode is one of {', '.join(MODES)}, or a list of them; values comes alone.",
            code="unsupported_stream_mode",
            pointer="/streamMode",
            details={"supported": list(MODES)},
        )
    buffer = _number(query.get("bufferMs", "0") or "none", "bufferMs", least=0, most=_MOST_BUFFER_MS, default=0)
    wait = _number(query.get("timeout"), "timeout", least=0, most=_LARGEST, default=0)
    after = -1
    for name in ("lastSequence", "after", "since"):
        after = _number(query.get(name), name, least=-1, most=_LARGEST, default=after)
    resumed = request.headers.get("last-event-id")
    if resumed:
        run, _, sequence = resumed.rpartition("-")
        after = _number(sequence if run else resumed, "Last-Event-ID", least=-1, most=_LARGEST, default=after)
    types = query.getlist("type")
    return EventsRequest(
        after=after,
        modes=frozenset(modes),
        buffer_seconds=0.0 if _ALONE in modes else buffer / 1000,
        wait_seconds=min(wait, _MOST_WAIT_SECONDS),
        types=frozenset(types) if types else None,
        node=query.get("nodeId"),
    )


def _payload(run: Run, event: Event) -> dict[str, Any]:
    payload = payload_of(event)
    if payload is not None:
        return payload
    data = event.data
    if event.type == "run.started":
        fork = data.get("fork")
        named = {"forkedFrom": {"runId": fork["source"], "fromSeq": fork["from"], "mode": fork["mode"]}} if fork else {}
        return {"workflowId": data["workflow"], **named}
    if event.type == "run.paused":
        return {"drainPolicy": data["policy"]}
    if event.type in ("run.failed", "node.failed"):
        return {"error": fault_document(run.fault or Fault(str(data.get("code", "internal_error")), _NO_MESSAGE))}
    if event.type == "run.completed" or data.get("output"):
        plain = {name: value for name, value in run.variables.items() if not by_name(value)}
        return {"outputs": plain} if plain else {}
    return {}


def fault_document(fault: Fault) -> dict[str, Any]:
    """Return the reason a run failed: the same object in its last event and in its snapshot."""
    document: dict[str, Any] = {"code": fault.code, "message": fault.message or _NO_MESSAGE}
    return document | ({"details": fault.details} if fault.details else {})


def _number(text: str | None, name: str, *, least: int, most: int, default: int) -> int:
    if text is None or text == "":
        return default
    if not re.fullmatch(r"-?[0-9]{1,16}", text) or not least <= int(text) <= most:
        raise Invalid(f"{name} is a whole number of {least} to {most}.", pointer=f"/{name}")
    return int(text)
