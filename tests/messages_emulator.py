"""A strict Messages API on a real socket, with an answer of your making: it refuses what the real one refuses.

Tokens are a quarter of the bytes of a request. A compaction block is signed over its content; one
that comes back changed, misplaced or without its beta is refused.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ON_DEMAND, THRESHOLD, EDITING = "compact-2026-09-04", "compact-2026-01-12", "context-management-2025-06-27"
FIELDS = frozenset(
    {
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "thinking",
        "metadata",
        "stop_sequences",
        "temperature",
        "compaction",
        "context_management",
        "thread",
        "mcp_servers",
        "service_tier",
        "output_config",
    }
)
CONFLICTS = ("context_management", "stop_sequences")
Blocks = list[dict[str, Any]]
Model = Callable[["Asked"], Blocks]


@dataclass
class Asked:
    """One accepted request."""

    body: dict[str, Any]
    betas: list[str]
    key: str
    tokens: int
    path: str

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def text(self) -> str:
        """Everything that the model reads of the conversation."""
        return json.dumps(self.body["messages"], ensure_ascii=False)

    @property
    def last(self) -> dict[str, Any]:
        return self.messages[-1]

    @property
    def blocks(self) -> Blocks:
        return [part for message in self.messages for part in blocks_of(message)]


class Refused(Exception):
    def __init__(self, status: int, message: str, code: str | None = None, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        details = {"details": {"error_code": code}} if code else {}
        self.status = status
        self.body = {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": "req_1"}


@dataclass
class Fail:
    """An error answer in the place of a right one."""

    status: int
    message: str = "Overloaded"
    code: str | None = None
    kind: str = "overloaded_error"


@dataclass
class Empty:
    """A pass that makes no summary: 200, nothing in it."""

    stop_reason: str = "max_tokens"


@dataclass
class Pause:
    """Server-side: compact, then wait."""


def talker(asked: Asked) -> Blocks:
    """Says how many different facts it can still see."""
    seen = sorted(
        {word for word in asked.text.replace('"', " ").replace("\\n", " ").split() if word.startswith("fact:")}
    )
    return [{"type": "text", "text": f"I see {len(seen)}: {' '.join(seen)}"}]


def blocks_of(message: dict[str, Any]) -> Blocks:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


@dataclass
class Emulator:
    """Use it as a context manager; `url` is what goes into `base_url`."""

    context: int = 4000
    model: Model = talker
    compaction: bool = True
    """Whether it knows compaction on demand."""
    counts: bool = True
    summary: Callable[[Asked], str] = field(default=lambda asked: f"Summary of {len(asked.messages)} messages.")
    faults: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """By kind of request (`create`, `compact`, `count`): what the next ones meet."""
    seen: list[tuple[str, Asked]] = field(default_factory=list)
    key: str = field(default_factory=lambda: "key-" + secrets.token_hex(8))
    url: str = ""

    def __enter__(self) -> Emulator:
        emulator = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                emulator.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._secret = secrets.token_bytes(16)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def requests(self, kind: str) -> list[Asked]:
        return [asked for seen, asked in self.seen if seen == kind]

    # one request

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        try:
            status, answer, streams = self._answer(handler, raw)
        except Refused as refused:
            status, answer, streams = refused.status, refused.body, False
        if streams:
            handler.send_response(200)
            handler.send_header("content-type", "text/event-stream")
            handler.send_header("connection", "close")
            handler.end_headers()
            for event in events(answer):
                data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                handler.wfile.write(data.encode())
            handler.close_connection = True
            return
        whole = json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(whole)))
        handler.end_headers()
        handler.wfile.write(whole)

    def _answer(self, handler: BaseHTTPRequestHandler, raw: bytes) -> tuple[int, dict[str, Any], bool]:
        key = handler.headers.get("x-api-key") or (handler.headers.get("authorization") or "").removeprefix("Bearer ")
        if key != self.key:
            raise Refused(401, "invalid x-api-key", kind="authentication_error")
        path = handler.path.partition("?")[0]
        if path not in ("/v1/messages", "/v1/messages/count_tokens"):
            raise Refused(404, "Not found", kind="not_found_error")
        body = json.loads(raw)
        betas = [part.strip() for value in handler.headers.get_all("anthropic-beta") or [] for part in value.split(",")]
        kind = "count" if path.endswith("count_tokens") else "compact" if "compaction" in body else "create"
        fault = self.faults[kind].pop(0) if self.faults[kind] else None
        if isinstance(fault, Fail):
            self.seen.append((f"failed_{kind}", Asked(body, betas, key, 0, path)))
            raise Refused(fault.status, fault.message, fault.code, fault.kind)
        if kind == "count" and not self.counts:
            raise Refused(404, "Not found", kind="not_found_error")
        self._check(body, betas, counted=kind == "count")
        shown = body["messages"][_first(body["messages"]) :]
        tokens = _tokens({**body, "messages": shown})
        asked = Asked(body, betas, key, tokens, path)
        self.seen.append((kind, asked))
        if kind == "count":
            return 200, {"input_tokens": tokens}, False
        if tokens > self.context:
            self.seen[-1] = ("too_long", asked)
            raise Refused(400, f"prompt is too long: {tokens} tokens > {self.context} maximum")
        if kind == "compact":
            return 200, self._compacted(asked, fault), False
        return 200, self._created(asked, fault), body.get("stream") is True

    def _compacted(self, asked: Asked, fault: Any) -> dict[str, Any]:
        if isinstance(fault, Empty):
            return _message(asked, [], fault.stop_reason, zero=True)
        text = self.summary(asked)
        block = {"type": "compaction", "content": text, "signature": self._sign(text)}
        return _message(asked, [block], "compaction", zero=True)

    def _created(self, asked: Asked, fault: Any) -> dict[str, Any]:
        made: Blocks = []
        for edit in (asked.body.get("context_management") or {}).get("edits", ()):
            if edit["type"] == "compact_20260112" and asked.tokens >= edit["trigger"]["value"]:
                made.append({"type": "compaction", "content": self.summary(asked)})
                if isinstance(fault, Pause):
                    return _message(asked, made, "compaction")
        said = self.model(asked)
        stopped = "tool_use" if any(part["type"] == "tool_use" for part in said) else "end_turn"
        return _message(asked, [*made, *said], stopped)

    def _sign(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._secret, digest_size=16).hexdigest()

    # rules

    def _check(self, body: dict[str, Any], betas: list[str], *, counted: bool) -> None:
        known = FIELDS if self.compaction else FIELDS - {"compaction"}
        for name in body.keys() - known:
            raise Refused(400, f"{name}: Extra inputs are not permitted")
        if not isinstance(body.get("model"), str) or (not counted and not isinstance(body.get("max_tokens"), int)):
            raise Refused(400, "model and max_tokens are required")
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise Refused(400, "messages: at least one message is required")
        for at, message in enumerate(messages):
            if set(message) - {"role", "content"}:
                raise Refused(400, f"messages.{at}: Extra inputs are not permitted")
            if message["role"] not in ("user", "assistant") or not blocks_of(message):
                raise Refused(400, f"messages.{at}: not a message")
            for part in blocks_of(message):
                if any(value is None for name, value in part.items() if part["type"] != "compaction"):
                    raise Refused(400, f"messages.{at}: a null that was not sent to you")
                if part["type"] == "text" and not part["text"]:
                    raise Refused(400, f"messages.{at}: text content blocks must be non-empty")
        self._check_compaction(body, messages, betas)
        _check_tools(messages)
        edits = (body.get("context_management") or {}).get("edits", [])
        for edit in edits:
            if edit["type"].startswith("compact_"):
                if THRESHOLD not in betas:
                    raise Refused(400, "context_management: missing beta header")
                if edit["trigger"]["value"] < 50_000 and not getattr(self, "low", False):
                    raise Refused(400, "context_management.edits.0.trigger.value: at least 50000")
            elif EDITING not in betas:
                raise Refused(400, "context_management: missing beta header")

    def _check_compaction(self, body: dict[str, Any], messages: list[Any], betas: list[str]) -> None:
        signed = [
            (at, place, part)
            for at, message in enumerate(messages)
            for place, part in enumerate(blocks_of(message))
            if part["type"] == "compaction" and part.get("signature")
        ]
        if (signed or "compaction" in body) and ON_DEMAND not in betas:
            raise Refused(400, "anthropic-beta: a header is missing")
        if len(signed) > 1:
            raise Refused(400, "two blocks", "compaction_block_ambiguous")
        for at, place, part in signed:
            if at or place:
                raise Refused(400, "the block is not first", "compaction_block_misplaced")
            if set(part) - {"cache_control"} != {"type", "content", "signature"}:
                raise Refused(400, "fields were added", "compaction_content_mismatch")
            if part["signature"] != self._sign(part["content"]):
                raise Refused(400, "not ours", "compaction_signature_invalid")
            if any(
                edit["type"].startswith("compact_") for edit in (body.get("context_management") or {}).get("edits", [])
            ):
                raise Refused(400, "a signed block and a threshold", "compaction_block_ambiguous")
            if len(messages) > 1 and messages[1]["role"] != "user":
                raise Refused(400, "what follows does not continue", "compaction_block_misplaced")
        if "compaction" not in body:
            return
        if set(body["compaction"]) - {"type", "instructions"} or body["compaction"]["type"] != "summarize":
            raise Refused(400, "compaction: not understood")
        for name in CONFLICTS:
            if name in body:
                raise Refused(400, f"{name} cannot be combined with compaction")
        used = [part["id"] for part in blocks_of(messages[-1]) if part["type"] == "tool_use"]
        if used or messages[-1]["role"] != "assistant":
            raise Refused(400, "the turn is not finished", "compaction_incomplete_turn")
        if len(messages) == 1 and signed:
            raise Refused(400, "nothing", "compaction_nothing_to_summarize")


def _first(messages: list[Any]) -> int:
    """Where the conversation begins for the model: at the last compaction."""
    at = [
        index
        for index, message in enumerate(messages)
        if any(part["type"] == "compaction" and part.get("content") for part in blocks_of(message))
    ]
    return at[-1] if at else 0


def _check_tools(messages: list[Any]) -> None:
    """Every use is answered in the very next message, and every result has its use there."""
    waiting: set[str] = set()
    merged: list[tuple[str, Blocks]] = []
    for message in messages:
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks_of(message))
        else:
            merged.append((message["role"], blocks_of(message)))
    for role, parts in merged:
        results = {part["tool_use_id"] for part in parts if part["type"] == "tool_result"}
        if waiting - results:
            raise Refused(400, "tool_use ids were found without tool_result blocks immediately after")
        if results - waiting:
            raise Refused(400, "unexpected tool_use_id found in tool_result blocks")
        waiting = {part["id"] for part in parts if part["type"] == "tool_use"} if role == "assistant" else set()
    if waiting:
        raise Refused(400, "tool_use ids were found without tool_result blocks immediately after")


def _tokens(body: dict[str, Any]) -> int:
    kept = {name: body[name] for name in ("messages", "system", "tools") if name in body}
    return len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()) // 4


def _message(asked: Asked, content: Blocks, stopped: str, *, zero: bool = False) -> dict[str, Any]:
    spoken = len(json.dumps(content)) // 4
    usage: dict[str, Any] = {
        "input_tokens": asked.tokens,
        "output_tokens": spoken,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    if any(part["type"] == "compaction" for part in content):
        passed = {"type": "compaction", **usage}
        after = {**usage, "input_tokens": len(json.dumps(content[:1])) // 4}
        if zero:
            usage = dict.fromkeys(usage, 0) | {"iterations": [passed]}
        else:
            usage = {**after, "iterations": [passed, {"type": "message", **after}]}
    return {
        "id": f"msg_{secrets.token_hex(6)}",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": content,
        "stop_reason": stopped,
        "stop_sequence": None,
        "usage": usage,
    }


def events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A message as the events of a stream."""
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    start["usage"].pop("iterations", None)
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, part in enumerate(message["content"]):
        about = {"index": index}
        if part["type"] == "text":
            yield {"type": "content_block_start", **about, "content_block": {"type": "text", "text": ""}}
            half = len(part["text"]) // 2
            for text in (part["text"][:half], part["text"][half:]):
                yield {"type": "content_block_delta", **about, "delta": {"type": "text_delta", "text": text}}
        elif part["type"] == "tool_use":
            yield {"type": "content_block_start", **about, "content_block": {**part, "input": {}}}
            written = json.dumps(part["input"])
            for text in (written[:3], written[3:]):
                yield {
                    "type": "content_block_delta",
                    **about,
                    "delta": {"type": "input_json_delta", "partial_json": text},
                }
        elif part["type"] == "thinking":
            yield {
                "type": "content_block_start",
                **about,
                "content_block": {"type": "thinking", "thinking": "", "signature": ""},
            }
            thought = {"type": "thinking_delta", "thinking": part["thinking"]}
            yield {"type": "content_block_delta", **about, "delta": thought}
            signed = {"type": "signature_delta", "signature": part["signature"]}
            yield {"type": "content_block_delta", **about, "delta": signed}
        else:
            yield {"type": "content_block_start", **about, "content_block": {"type": "compaction", "content": None}}
            delta = {"type": "compaction_delta", "content": part["content"]}
            yield {"type": "content_block_delta", **about, "delta": delta}
        yield {"type": "content_block_stop", **about}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}
