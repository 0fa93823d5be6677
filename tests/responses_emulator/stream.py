"""A response as the events a stream is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def events(response: dict[str, Any], *, compacting: bool = False, bare: bool = False) -> Iterator[dict[str, Any]]:
    """The events of a response. `bare` leaves the output out of the last one, as one base does."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    made: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(response["output"]):
        made += _item(index, item, compacting=compacting)
    last = "response.completed" if response["status"] == "completed" else "response.incomplete"
    made.append({"type": last, "response": {**response, "output": [] if bare else response["output"]}})
    for number, event in enumerate(made):
        yield {**event, "sequence_number": number}


def failed(response: dict[str, Any], code: str, message: str) -> Iterator[dict[str, Any]]:
    """A stream that fails after it began."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun, "sequence_number": 0}
    ended = {**begun, "status": "failed", "error": {"code": code, "message": message}}
    yield {"type": "response.failed", "response": ended, "sequence_number": 1}


def _item(index: int, item: dict[str, Any], *, compacting: bool) -> Iterator[dict[str, Any]]:
    kind, place = item["type"], {"item_id": item.get("id"), "output_index": index}
    begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
    if isinstance(item.get("encrypted_content"), str):
        begun["encrypted_content"] = item["encrypted_content"][:40]  # only the done event has all of it
    if kind == "message":
        begun["content"] = []
    if kind == "function_call":
        begun["arguments"] = ""
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    if kind == "compaction" and compacting:
        yield {"type": "response.compaction.compacting", **place}
    if kind == "message":
        for number, part in enumerate(item["content"]):
            at = {**place, "content_index": number}
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            text = part["text"]
            for start in range(0, len(text), 40):
                delta = text[start : start + 40]
                yield {"type": "response.output_text.delta", **at, "delta": delta, "logprobs": []}
            yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
            yield {"type": "response.content_part.done", **at, "part": part}
    if kind == "function_call":
        yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
        done = {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
        yield {**done, "name": item["name"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}
