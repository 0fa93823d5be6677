"""Between the engine's steps and the SDK: what a request is made of, and what an answer or an exception says.

Everything works on raw JSON. The SDK's typed objects are only what the caller gets.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from reverie.window.items import compact, plain
from reverie.window.policy import Base
from reverie.window.steps import Answer, Send
from reverie.window.streaming import Streaming

OPTIONS = ("extra_headers", "extra_query", "extra_body", "timeout")
"""Arguments of the SDK's methods that are no part of the body."""


def split(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(body, options) of a call; arguments that were left out by the SDK's own markers are left out."""
    given = {key: value for key, value in arguments.items() if type(value).__name__ not in ("Omit", "NotGiven")}
    options = {key: given.pop(key) for key in OPTIONS if key in given}
    given.pop("input", None)
    return {key: plain(value) for key, value in given.items()}, options


def base_of(client: Any, kind: Any = None) -> Base:
    """The base a client talks to, normalised."""
    return Base.of(str(client.base_url), kind)


def bound(client: Any, base: Base) -> Any:
    """The client, talking to the normalised base."""
    same = str(client.base_url).rstrip("/") == base.url
    return client if same else client.with_options(base_url=base.url)


def account_of(client: Any) -> str:
    """What tells accounts apart; it is hashed under the tenant's key before it goes anywhere."""
    headers = {key.lower(): value for key, value in dict(getattr(client, "_custom_headers", None) or {}).items()}
    stable = headers.get("chatgpt-account-id") or getattr(client, "organization", None)
    return str(stable or getattr(client, "api_key", "") or "")


def call_of(client: Any, step: Send, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The raw method of the SDK for a step, and its arguments."""
    arguments: dict[str, Any] = dict(step.body)
    if step.is_pass:
        client = client.with_options(max_retries=0)
        arguments["timeout"] = step.timeout
        if "extra_headers" in options:
            arguments["extra_headers"] = options["extra_headers"]
        if step.collect:
            arguments["stream"] = True
    else:
        arguments |= options
        if step.stream:
            arguments["stream"] = True
            if step.silence is not None and "timeout" not in options:
                import httpx2

                arguments["timeout"] = httpx2.Timeout(600.0, read=step.silence)
    # As extra body the items go over the wire as they are: the SDK would walk through every one of them to rename
    # fields, which costs more than everything else in a turn and is what the raw JSON is kept from.
    arguments["extra_body"] = {**(arguments.get("extra_body") or {}), "input": arguments.pop("input")}
    raw = client.responses.with_raw_response
    return raw.compact if step.path.endswith("/compact") else raw.create, arguments


def refused(fault: BaseException) -> Answer | None:
    """An exception of the SDK as an answer; None when it is nobody's answer."""
    import openai

    if isinstance(fault, openai.APIStatusError):
        return Answer(fault.status_code, _text(fault), error=fault)
    if isinstance(fault, openai.APITimeoutError):
        return Answer(None, error=fault, stalled=True)
    if isinstance(fault, openai.APIError):
        body = fault.body if isinstance(fault.body, dict) else {}
        return Answer(None, compact({"error": body}), error=fault)
    if isinstance(fault, openai.OpenAIError | json.JSONDecodeError):
        return Answer(None, error=fault)
    return None


def _text(fault: Any) -> str:
    try:
        return str(fault.response.text)
    except Exception:
        return compact(fault.body) if fault.body is not None else ""


def collected(told: Streaming) -> Answer:
    """A stream that was read to its end, as one answer."""
    if told.failure is not None:
        return Answer(400, compact({"error": {"code": told.failure.code, "message": ""}}))
    return Answer(200, told.body()) if told.response is not None else Answer(None)


class Tee:
    """Notes the JSON text of each event of an SDK stream as it passes."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.data: str | None = None
        source = getattr(stream, "_iter_events", None)
        if source is not None:
            asynchronous = hasattr(stream, "__aiter__")
            stream._iter_events = self._async(source) if asynchronous else self._sync(source)

    def _sync(self, source: Any) -> Any:
        def events() -> Iterator[Any]:
            for sse in source():
                self.data = sse.data
                yield sse

        return events

    def _async(self, source: Any) -> Any:
        async def events() -> AsyncIterator[Any]:
            async for sse in source():
                self.data = sse.data
                yield sse

        return events

    def text(self, event: Any) -> str:
        """The JSON text of the event just passed."""
        data, self.data = self.data, None
        return data if data is not None else compact(plain(event))
