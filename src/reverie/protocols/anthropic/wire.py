"""Between the steps of a window and the `anthropic` package: building requests, reading exceptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic

from reverie.window import calls
from reverie.window.calls import RAW, SdkCall
from reverie.window.items import compact
from reverie.window.policy import Base
from reverie.window.steps import RequestOutcome, Send

BETA = "anthropic-beta"
_OWN = frozenset({"x-stainless-helper-method", "x-stainless-stream-helper"})
"""Marks of the SDK's own helpers; a step that no caller asked for has none."""


def base_of(client: Any, kind: Any = None) -> Base:
    """The base a client talks to, normalised."""
    return Base.of(str(client.base_url), kind or "messages")


def bound(client: Any, base: Base) -> Any:
    """The client: its address has no version, and it adds that itself."""
    del base
    return client


def account_of(client: Any) -> str:
    """Return the credential that identifies an account; it is hashed under the tenant's key before any further use."""
    return str(getattr(client, "api_key", None) or getattr(client, "auth_token", None) or "")


def call_of(client: Any, step: Send, headers: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The method of the client for a step that no caller asked for, and its arguments."""
    rest = {name: value for name, value in headers.items() if name != RAW and name.lower() not in _OWN}
    options = {"headers": {**with_betas(rest, step), RAW: "raw"}, "timeout": step.timeout}
    sent = client.with_options(max_retries=0)
    return sent.post, {"path": f"/v1{step.path}", "cast_to": object, "body": dict(step.body), "options": options}


def request_of(step: Send, call: SdkCall) -> dict[str, Any]:
    """Return the arguments of the client's own request method for a step that the caller asked for."""
    headers = {**with_betas(call.options.get("headers") or {}, step), RAW: call.raw or "raw"}
    return calls.request_of(step, call, path=f"/v1{step.path}", headers=headers)


def with_betas(headers: Mapping[str, Any], step: Send) -> dict[str, Any]:
    """The caller's headers, with the betas that a step needs added to those it names."""
    given = next((str(value) for name, value in headers.items() if name.lower() == BETA), "")
    named = [part.strip() for part in given.split(",") if part.strip()]
    wanted = [*named, *(name for name in step.betas if name not in named)]
    rest = {name: value for name, value in headers.items() if name.lower() != BETA}
    return {**rest, BETA: ",".join(wanted)} if wanted else rest


def refused(fault: BaseException) -> RequestOutcome | None:
    """An exception of the SDK as an answer; None when it is no answer."""
    if isinstance(fault, anthropic.APIStatusError):
        return RequestOutcome(fault.status_code, _text(fault), error=fault)
    if isinstance(fault, anthropic.APITimeoutError):
        return RequestOutcome(None, error=fault, stalled=True)
    if isinstance(fault, anthropic.APIError | json.JSONDecodeError):
        return RequestOutcome(None, error=fault)
    return None


def _text(fault: anthropic.APIStatusError) -> str:
    if isinstance(fault.body, Mapping):
        return compact(dict(fault.body))
    try:
        return str(fault.response.text)
    except Exception:
        return ""
