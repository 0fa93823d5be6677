"""A response that comes as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reverie.window.errors import WindowRefusal, classify_error
from reverie.window.items import Item, compact, event_item, json_object

_OPENING = frozenset({"response.created", "response.in_progress", "response.queued"})
_CLOSING = frozenset({"response.completed", "response.incomplete"})
_HELD = _OPENING | {"message_start", "ping"}


class Reading(Protocol):
    """A stream that is being read, of either API."""

    items: dict[int, Item]
    response: str | None
    """The answer as JSON text, once it is complete."""
    failure: WindowRefusal | None
    opening: str | None
    paused: bool

    def feed(self, data: str) -> str:
        """Take one event as JSON text; returns its type."""

    @property
    def output(self) -> Sequence[Item]:
        """The finished items, when they came one by one."""

    def body(self) -> str:
        """The answer as one JSON text."""


@dataclass(slots=True)
class Streaming:
    """A stream being read, and its events so far."""

    items: dict[int, Item] = field(default_factory=dict)
    response: str | None = None
    failure: WindowRefusal | None = None
    opening: str | None = None
    """The response as described by the first event."""
    paused: bool = False

    def feed(self, data: str) -> str:
        """Take one event as JSON text; returns its type."""
        event = json_object(data)
        kind = str(event.get("type", ""))
        if kind == "response.output_item.done":
            item = event_item(data)
            index = event.get("output_index")
            if item is not None:
                self.items[index if isinstance(index, int) else len(self.items)] = item
        elif kind in _OPENING:
            given = event.get("response")
            self.opening = compact(given) if isinstance(given, dict) else None
        elif kind in _CLOSING:
            given = event.get("response")
            self.response = compact(given) if isinstance(given, dict) else None
        elif kind in ("response.failed", "error"):
            body = event if kind == "response.failed" else {"error": event}
            self.failure = classify_error(200, body)
        return kind

    @property
    def output(self) -> list[Item]:
        """The finished items, in their order."""
        return [item for _, item in sorted(self.items.items())]

    def body(self) -> str:
        """The response as one JSON text, with the items as received."""
        given = json.loads(self.response or "{}")
        given.pop("output", None)
        head = compact(given)[:-1]
        items = ",".join(item.text for item in self.output)
        return f'{head}{"," if len(head) > 1 else ""}"output":[{items}]}}'


def holds_back(kind: str) -> bool:
    """Whether an event has no content yet: until one has, a refused request can be repeated unseen."""
    return kind in _HELD


def is_closing(kind: str) -> bool:
    """Whether an event ends a response that is kept."""
    return kind in _CLOSING or kind == "message_stop"
