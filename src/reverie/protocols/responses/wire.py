"""Between the engine's steps and the SDK: building requests, reading answers and exceptions.

Everything works on raw JSON. The SDK's typed objects are only what the caller gets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reverie.window import calls
from reverie.window.calls import RAW, SdkCall
from reverie.window.items import compact
from reverie.window.policy import Base
from reverie.window.steps import RequestOutcome, Send


def base_of(client: Any, kind: Any = None) -> Base:
    """The base a client talks to, normalised."""
    return Base.of(str(client.base_url), kind)


def bound(client: Any, base: Base) -> Any:
    """The client, talking to the normalised base."""
    same = str(client.base_url).rstrip("/") == base.url
    return client if same else client.with_options(base_url=base.url)


def account_of(client: Any) -> str:
    """Return the credential that identifies an account; it is hashed under the tenant's key before any further use."""
    headers = {key.lower(): value for key, value in dict(getattr(client, "_custom_headers", None) or {}).items()}
    stable = headers.get("chatgpt-account-id") or getattr(client, "organization", None)
    return str(stable or getattr(client, "api_key", "") or "")


def call_of(client: Any, step: Send, headers: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The raw method of the SDK for a step that no caller asked for, and its arguments."""
    raw = client.with_options(max_retries=0).responses.with_raw_response
    sent = {name: value for name, value in headers.items() if name != RAW}
    if step.method == "GET":
        return raw.retrieve, {"response_id": step.path.rpartition("/")[2], "extra_headers": sent}
    arguments: dict[str, Any] = {**step.body, "timeout": step.timeout, "extra_headers": sent}
    if step.collect:
        arguments["stream"] = True
    # As extra body the items go over the wire as they are: the SDK would walk through every one of them to rename
    # fields, which costs more than everything else in a turn and is what the raw JSON is kept from.
    arguments["extra_body"] = {"input": arguments.pop("input")}
    if step.path.endswith("/input_tokens"):
        return raw.input_tokens.count, arguments
    return raw.compact if step.path.endswith("/compact") else raw.create, arguments


def request_of(step: Send, call: SdkCall) -> dict[str, Any]:
    """Return the arguments of the client's own request method for a step that the caller asked for."""
    headers = {**(call.options.get("headers") or {}), RAW: call.raw or "true"}
    return calls.request_of(step, call, path=step.path, headers=headers)


def refused(fault: BaseException) -> RequestOutcome | None:
    """An exception of the SDK as an answer; None when it is no answer."""
    import openai

    if isinstance(fault, openai.APIStatusError):
        return RequestOutcome(fault.status_code, _text(fault), error=fault)
    if isinstance(fault, openai.APITimeoutError):
        return RequestOutcome(None, error=fault, stalled=True)
    if isinstance(fault, openai.APIError):
        body = fault.body if isinstance(fault.body, dict) else {}
        return RequestOutcome(None, compact({"error": body}), error=fault)
    if isinstance(fault, openai.OpenAIError | json.JSONDecodeError):
        return RequestOutcome(None, error=fault)
    return None


def _text(fault: Any) -> str:
    try:
        return str(fault.response.text)
    except Exception:
        return compact(fault.body) if fault.body is not None else ""
