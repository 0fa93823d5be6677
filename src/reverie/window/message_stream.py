"""A message that comes as a stream of events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from reverie.window.errors import WindowRefusal
from reverie.window.items import Item, Json, compact, json_object

_HELD = "message_start"


@dataclass(slots=True)
class MessageStream:
    """A stream being read: the message so far.

    Events of a compaction block read as opening ones: until the model speaks, a request can be repeated unseen.
    """

    items: dict[int, Item] = field(default_factory=dict)
    response: str | None = None
    failure: WindowRefusal | None = None
    opening: str | None = None
    paused: bool = False
    """Whether the provider compacted and waits to be asked to go on."""
    _message: Json = field(default_factory=dict)
    _blocks: dict[int, Json] = field(default_factory=dict)
    _inputs: dict[int, str] = field(default_factory=dict)

    def feed(self, data: str) -> str:
        """Take one event as JSON text; returns its type."""
        event = json_object(data)
        kind = str(event.get("type", ""))
        index = event.get("index")
        at: int = index if isinstance(index, int) else -1
        if kind == "message_start" and isinstance(event.get("message"), dict):
            self._message = dict(event["message"])
            self.opening = compact(self._message)
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            self._blocks[at] = dict(event["content_block"])
        elif kind == "content_block_delta" and at in self._blocks and isinstance(event.get("delta"), dict):
            self._grow(at, event["delta"])
        elif kind == "message_delta":
            return self._end_message(event)
        elif kind == "message_stop":
            self._finish()
        elif kind == "error":
            from reverie.window.messages import Messages

            self.failure = Messages().refusal(_STATUS.get(str((event.get("error") or {}).get("type")), 500), event)
        silent = kind.startswith("content_block_") and self._blocks.get(at, {}).get("type") == "compaction"
        return _HELD if silent else kind

    def _grow(self, at: int, delta: Json) -> None:
        block, kind = self._blocks[at], delta.get("type")
        if kind == "text_delta":
            block["text"] = str(block.get("text", "")) + str(delta.get("text", ""))
        elif kind == "input_json_delta":
            self._inputs[at] = self._inputs.get(at, "") + str(delta.get("partial_json", ""))
        elif kind == "thinking_delta":
            block["thinking"] = str(block.get("thinking", "")) + str(delta.get("thinking", ""))
        elif kind == "signature_delta":
            block["signature"] = delta.get("signature")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        elif kind == "compaction_delta":
            block |= {name: value for name, value in delta.items() if name != "type"}

    def _end_message(self, event: Json) -> str:
        delta = event.get("delta") if isinstance(event.get("delta"), dict) else {}
        self._message |= delta or {}
        usage = event.get("usage")
        if isinstance(usage, dict):
            known = {name: value for name, value in usage.items() if value is not None}
            self._message["usage"] = {**(self._message.get("usage") or {}), **known}
        self.paused = self._message.get("stop_reason") == "compaction"
        return _HELD if self.paused else "message_delta"

    def _finish(self) -> None:
        for at, text in self._inputs.items():
            try:
                self._blocks[at]["input"] = json.loads(text) if text.strip() else self._blocks[at].get("input", {})
            except (ValueError, RecursionError):  # cut short: the caller has the same beginning
                self._blocks[at]["input"] = {}
        self._message["content"] = [block for _, block in sorted(self._blocks.items())]
        self.response = compact(self._message)

    @property
    def output(self) -> list[Any]:
        """Nothing comes apart from the response: a message is one item."""
        return []

    def body(self) -> str:
        """The message as one JSON text."""
        return self.response or "{}"


_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
