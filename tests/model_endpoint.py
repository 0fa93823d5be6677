"""A strict endpoint on a real socket that speaks OpenAI's chat completions and Anthropic's messages.

It refuses what the real ones refuse, in their own words: unknown fields, wrong keys, missing fields, input beyond the
context. Answers come from a script, one step per request, then from `default`.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reverie.providers.tokenizer import TokenCounter

KEY = "sk-proj-Zq81vNc4mW0tYh77PlkD2sRbXe93"
MODEL = "small-1"
_count = TokenCounter().count

_OPENAI_FIELDS = {
    "model",
    "messages",
    "temperature",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
}
_ANTHROPIC_FIELDS = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "output_config",
    "thinking",
}


@dataclass
class Asked:
    """One request as understood: the lines of memory, the words allowed, and the raw body."""

    lines: list[dict[str, Any]]
    words: int
    refused: bool
    body: dict[str, Any]
    path: str


@dataclass
class Fail:
    """An error answer."""

    status: int
    body: dict[str, Any] | str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Slow:
    """Nothing for a while, then `then`."""

    seconds: float
    then: Any = None


class Cut:
    """Half an answer, then the connection is gone."""


class Drip:
    """A byte now and then, for ever."""


class Raw(str):
    """An HTTP 200 whose body is just this text."""


Step = Callable[[Asked], Any] | Fail | Slow | Cut | Drip | Raw


def statements(*items: tuple[str, list[Any]], date: str = "") -> str:
    """An answer with these statements."""
    return json.dumps({"statements": [{"text": text, "sources": ids, "date": date} for text, ids in items]})


def quoting(answer: Any, lines: Sequence[str]) -> Any:
    """An answer whose `sources` become quotes: of every line named, all of its words."""
    fenced = isinstance(answer, str) and answer.startswith("```json\n") and answer.endswith("\n```")
    try:
        document = json.loads(answer[8:-4] if fenced else answer)
    except (TypeError, ValueError, RecursionError):
        return answer
    if not isinstance(document, dict) or not isinstance(document.get("statements"), list):
        return answer
    for item in document["statements"]:
        if isinstance(item, dict) and isinstance(item.get("sources"), list):
            known = dict(enumerate(lines, start=1))
            quotes = [
                {"id": one, "quote": known.get(one, "") if isinstance(one, int) else ""} for one in item.pop("sources")
            ]
            item["quotes"] = quotes
    return f"```json\n{json.dumps(document)}\n```" if fenced else json.dumps(document)


def good(asked: Asked) -> str:
    """A dutiful model: first sentences, oldest first, as many as the words allow, and all that must be kept."""
    chosen: list[dict[str, Any]] = []
    left = asked.words
    for line in asked.lines:
        for sentence in line.get("keep", ()):
            chosen.append({"text": sentence, "sources": [line["id"]], "date": line["date"]})
            left -= len(sentence.split())
    for line in asked.lines:
        said = re.split(r"(?<=[.!?]) ", line["text"])[0]
        left -= len(said.split()) + 3
        if left < 0 and chosen:
            break
        who = f"{line['who']}: " if "who" in line else ""
        chosen.append({"text": who + said, "sources": [line["id"]], "date": line["date"]})
    return json.dumps({"statements": chosen})


class Endpoint:
    """`with Endpoint() as endpoint:` serves at `endpoint.url`; `endpoint.asked` holds every request that was read."""

    def __init__(self, *, context: int = 32_000, refuses: Iterable[str] = ()) -> None:
        self.context = context
        self.refuses = set(refuses)
        self.script: list[Step] = []
        self.default: Step = good
        self.asked: list[Asked] = []
        self.calls = 0
        self._lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                endpoint.serve(self)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.root = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.root}/v1"

    def __enter__(self) -> Endpoint:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        with self._lock:
            self.calls += 1
        openai = handler.path == "/v1/chat/completions"
        try:
            body = json.loads(raw)
            if openai:
                problem = self._check_openai(handler, body)
            elif handler.path == "/v1/messages":
                problem = self._check_anthropic(handler, body)
            else:
                problem = Fail(404, {"error": {"message": "Invalid URL", "type": "invalid_request_error"}})
        except (ValueError, KeyError, TypeError) as fault:
            problem = Fail(400, {"error": {"message": f"We could not parse the body: {type(fault).__name__}"}})
        if problem:
            return self._send(handler, problem.status, problem.body, problem.headers)
        asked = _understand(body, handler.path)
        with self._lock:
            self.asked.append(asked)
            step = self.script.pop(0) if self.script else self.default
        return self._perform(handler, step, asked, openai)

    def _perform(self, handler: BaseHTTPRequestHandler, step: Step, asked: Asked, openai: bool) -> None:
        if isinstance(step, Slow):
            time.sleep(step.seconds)
            step = step.then or self.default
        if isinstance(step, Fail):
            return self._send(handler, step.status, step.body, step.headers)
        if isinstance(step, Raw):
            return self._send(handler, 200, str(step), {})
        if isinstance(step, Cut | Drip):
            handler.send_response(200)
            handler.send_header("content-type", "application/json")
            handler.send_header("content-length", "4000")
            handler.end_headers()
            try:
                for _ in range(1 if isinstance(step, Cut) else 400):
                    handler.wfile.write(b'{"id": "x", "choices": [' if isinstance(step, Cut) else b" ")
                    handler.wfile.flush()
                    time.sleep(0 if isinstance(step, Cut) else 0.05)
            except OSError:
                pass
            handler.close_connection = True
            return None
        text = quoting(step(asked), [line["text"] for line in asked.lines])
        answer = _openai_answer(asked, text) if openai else _anthropic_answer(asked, text)
        return self._send(handler, 200, answer, {})

    def _send(self, handler: BaseHTTPRequestHandler, status: int, body: Any, headers: dict[str, str]) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def _check_openai(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> Fail | None:
        def refuse(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Fail:
            error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
            return Fail(status, {"error": error})

        if handler.headers.get("authorization") != f"Bearer {KEY}":
            given = str(handler.headers.get("authorization", ""))[-40:]
            return refuse(f"Incorrect API key provided: {given}.", None, "invalid_api_key", 401)
        unknown = set(body) - _OPENAI_FIELDS
        if unknown:
            return refuse(f"Unrecognized request argument supplied: {sorted(unknown)[0]}")
        if body["model"] != MODEL:
            return refuse(f"The model `{body['model']}` does not exist", None, "model_not_found", 404)
        form = body.get("response_format", {}).get("type", "text")
        for name in sorted(self.refuses):
            if name in body:
                return refuse(f"Unsupported parameter: '{name}' is not supported.", name, "unsupported_parameter")
            if name == form:
                return refuse(f"Invalid parameter: 'response_format' of type '{form}'", "response_format")
        if "max_tokens" in body and "max_completion_tokens" in body:
            return refuse("Setting both max_tokens and max_completion_tokens is not supported.")
        for message in body["messages"]:
            if set(message) != {"role", "content"} or message["role"] not in ("system", "user"):
                return refuse("Invalid value for 'messages'.", "messages", "invalid_value")
            if not isinstance(message["content"], str):
                return refuse("Invalid type for 'messages[0].content'.", "messages", "invalid_type")
        if form == "json_schema":
            wrapped = body["response_format"]["json_schema"]
            if set(wrapped) != {"name", "strict", "schema"} or not _strict(wrapped["schema"]):
                return refuse("Invalid schema for response_format.", "response_format", "invalid_json_schema")
        size = sum(_count(message["content"]) + 4 for message in body["messages"])
        asked = size + int(body.get("max_tokens", body.get("max_completion_tokens", 0)))
        if asked > self.context:
            return refuse(
                f"This model's maximum context length is {self.context} tokens. However, you requested {asked}.",
                "messages",
                "context_length_exceeded",
            )
        return None

    def _check_anthropic(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> Fail | None:
        def refuse(message: str, kind: str = "invalid_request_error", status: int = 400) -> Fail:
            error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
            return Fail(status, error)

        if KEY not in (handler.headers.get("x-api-key"), handler.headers.get("authorization", "")[len("Bearer ") :]):
            return refuse("invalid x-api-key", "authentication_error", 401)
        if not handler.headers.get("anthropic-version"):
            return refuse("anthropic-version: header is required")
        for name in sorted(set(body) - _ANTHROPIC_FIELDS):
            return refuse(f"{name}: Extra inputs are not permitted")
        for name in ("model", "messages", "max_tokens"):
            if name not in body:
                return refuse(f"{name}: Field required")
        for name in sorted(self.refuses & set(body)):
            return refuse(f"{name}: this model does not support it")
        if body["model"] != MODEL:
            return refuse(f"model: {body['model']}", "not_found_error", 404)
        if "output_config" in body and not _strict(body["output_config"]["format"]["schema"]):
            return refuse("output_config.format.schema: additionalProperties must be false")
        if "tool_choice" in body and body["tool_choice"]["name"] not in [tool["name"] for tool in body["tools"]]:
            return refuse("tool_choice: tool not found")
        size = _count(body.get("system", "")) + sum(_count(m["content"]) for m in body["messages"])
        if size + body["max_tokens"] > self.context:
            return refuse(f"prompt is too long: {size} tokens > {self.context} maximum")
        return None


def _strict(schema: dict[str, Any]) -> bool:
    """As strict mode wants it: every object closed, every property required."""
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        whole = sorted(schema.get("required", ())) == sorted(schema["properties"])
        return closed and whole and all(_strict(part) for part in schema["properties"].values())
    return _strict(schema["items"]) if schema.get("type") == "array" else isinstance(schema.get("type"), str)


def _understand(body: dict[str, Any], path: str) -> Asked:
    user = body["messages"][-1]["content"]
    system = body["messages"][0]["content"] if path.endswith("completions") else body["system"]
    inside = user.split("<memory>\n", 1)[1].split("\n</memory>", 1)[0]
    words = int(re.search(r"about (\d+) words", system)[1])  # type: ignore[index]
    lines = [json.loads(line) for line in inside.split("\n") if line]
    return Asked(lines, words, "was refused" in user, body, path)


def _openai_answer(asked: Asked, text: str) -> dict[str, Any]:
    read = sum(_count(message["content"]) + 4 for message in asked.body["messages"])
    limit = asked.body.get("max_tokens", asked.body.get("max_completion_tokens"))
    written = _count(text)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": asked.body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop" if written <= limit else "length",
            }
        ],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def _anthropic_answer(asked: Asked, text: str) -> dict[str, Any]:
    read = _count(asked.body["system"]) + sum(_count(m["content"]) for m in asked.body["messages"])
    if "tools" in asked.body:
        name = asked.body["tool_choice"]["name"]
        content = [{"type": "tool_use", "id": "toolu_1", "name": name, "input": json.loads(text)}]
    else:
        content = [{"type": "text", "text": text}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": content,
        "stop_reason": "tool_use" if "tools" in asked.body else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": _count(text)},
    }
