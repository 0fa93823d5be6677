"""Meaning of a refused request. Three kinds of 404 say nothing about the endpoint, so their bodies are read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LIMIT = re.compile(r"(?:maximum|context length|context window)\D{0,60}?(\d{1,3}(?:,\d{3})+|\d{4,9})\s+tokens", re.I)
_MALFORMED = frozenset(
    {
        "unknown_parameter",
        "invalid_value",
        "missing_required_parameter",
        "integer_below_min_value",
        "string_above_max_length",
        "invalid_type",
        "unsupported_parameter",
    }
)
_MISSING_STATUS = frozenset({405, 410, 501})
_TRANSIENT_STATUS = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class WindowRefusal:
    """The meaning of an error answer for the window."""

    kind: str
    """`endpoint_missing`, `item_not_persisted`, `invalid_model`, `chain_lost`, `context_window`, `encrypted_content`,
    `unpaired_call`, `incomplete_turn`, `malformed`, `credentials`, `quota`, `transient` or `other`."""
    status: int | None
    code: str | None
    """The provider's code when it is a plain word; never any of its text."""
    param: str | None = None
    field: str | None = None
    """The field that a refusal names, without its place: `id` of `input[3].id`."""
    limit: int | None = None
    """The most tokens that the provider takes, where a refusal for length names them."""

    @property
    def negative_cache(self) -> bool:
        """Whether the endpoint is missing, so that asking again is useless."""
        return self.kind == "endpoint_missing"

    @property
    def transient(self) -> bool:
        """Whether trying again later may help."""
        return self.kind in ("transient", "quota")

    @property
    def pass_status(self) -> str:
        """The status of a compaction pass that met this."""
        return _PASS_STATUS.get(self.kind, "failed")

    def __str__(self) -> str:
        return " ".join(str(part) for part in (self.status, self.code) if part is not None) or "no answer"


_PASS_STATUS = {
    "endpoint_missing": "unsupported_endpoint",
    "item_not_persisted": "invalid_non_persisted_item_id",
    "invalid_model": "invalid_model",
    "encrypted_content": "invalid_encrypted_content",
    "unpaired_call": "invalid_input",
    "malformed": "invalid_input",
    "context_window": "failed_context_window",
    "incomplete_turn": "skipped_unpaired_tool_call",
}


def classify_error(status: int | None, body: Any) -> WindowRefusal:
    """Read an error answer: its HTTP status (None: no answer came) and its body as text, bytes or parsed JSON.

    A `response.failed` event, or the response in it, is read the same way.
    """
    parsed, is_json = parse_error(body)
    error = error_of(parsed)
    code = word_of(error.get("code"))
    param = error.get("param") if isinstance(error.get("param"), str) else None
    message = error.get("message") if isinstance(error.get("message"), str) else ""
    kind = _kind(status, code, param, str(message), parsed, is_json)
    named = word_of(param) if param else None
    return WindowRefusal(
        kind, status, code, named, word_of((param or "").rpartition(".")[2]), _limit(kind, str(message))
    )


def _limit(kind: str, message: str) -> int | None:
    found = _LIMIT.search(message) if kind == "context_window" else None
    return int(found[1].replace(",", "")) if found else None


def _kind(status: int | None, code: str | None, param: str | None, message: str, parsed: Any, is_json: bool) -> str:
    if code == "context_length_exceeded":
        return "context_window"
    if status is None:
        return "transient"
    if status in _MISSING_STATUS:
        return "endpoint_missing"
    if code == "previous_response_not_found" and 400 <= status < 500:
        return "chain_lost"
    if status == 404:
        return _not_found(code, param, message, parsed, is_json)
    if status in (401, 403):
        return "credentials"
    if status == 429 and code == "insufficient_quota":
        return "quota"
    if status in _TRANSIENT_STATUS or status >= 500 or status < 300:
        return "transient"
    if code == "invalid_encrypted_content":
        return "encrypted_content"
    if code == "model_not_found":
        return "invalid_model"
    if message.startswith(("No tool output found", "No tool call found")):
        return "unpaired_call"
    if code in _MALFORMED or param or message.startswith(("Duplicate item found", "Item '")):
        return "malformed"
    return "malformed" if status == 400 else "other"


def _not_found(code: str | None, param: str | None, message: str, parsed: Any, is_json: bool) -> str:
    if code == "model_not_found":
        return "invalid_model"
    if message.startswith("Item with id") or (code is None and param == "input"):
        return "item_not_persisted"
    if message.startswith("Invalid URL") or not is_json:
        return "endpoint_missing"
    if isinstance(parsed, Mapping) and parsed.get("detail") == "Not Found":
        return "endpoint_missing"
    return "other"


def refuses_trigger(refusal: WindowRefusal, body: Any) -> bool:
    """Whether a 400 says that the server does not know the trigger item."""
    if refusal.status != 400 or refusal.kind != "malformed":
        return False
    parsed, _ = parse_error(body)
    message = str(error_of(parsed).get("message") or "")
    if "must be the final input item" in message:
        return False
    return "compaction_trigger" in message or (
        refusal.code == "invalid_value" and (refusal.param or "input") == "input"
    )


def parse_error(body: Any) -> tuple[Any, bool]:
    """(an error body parsed, whether it is JSON)."""
    if isinstance(body, bytes | str):
        try:
            return json.loads(body), True
        except (ValueError, RecursionError):
            return None, False
    return body, body is not None


def error_of(parsed: Any) -> Mapping[str, Any]:
    """The error in a body, a response or an event."""
    if not isinstance(parsed, Mapping):
        return {}
    if isinstance(parsed.get("response"), Mapping):
        parsed = parsed["response"]
    error = parsed.get("error")
    if isinstance(error, Mapping):
        return error
    return parsed if "message" in parsed or "code" in parsed else {}


def word_of(value: Any) -> str | None:
    """A code of the provider, when it is a plain word."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else None
