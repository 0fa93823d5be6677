"""HTTP status per error code, and the protocol's error body for requests refused before they reach the Field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.core.errors import ReverieError
from reverie.protocols.akashik.errors import FieldError, translated
from reverie.protocols.akashik.http.wire import operation_at

STATUS = {
    "MISSING_INTENT": 400,
    "MISSING_CONFIDENCE": 400,
    "INVALID_CONFIDENCE": 400,
    "INVALID_TYPE": 400,
    "INVALID_ENVELOPE": 400,
    "INVALID_REQUEST": 400,
    "INVALID_FILTER": 400,
    "EPOCH_OVERFLOW": 400,
    "UNAUTHENTICATED": 401,
    "AGENT_NOT_REGISTERED": 403,
    "INSUFFICIENT_AUTHORITY": 403,
    "NOT_A_MEMBER": 403,
    "CONFLICT_NOT_FOUND": 404,
    "UNIT_NOT_FOUND": 404,
    "NOT_FOUND": 404,
    "AGENT_ID_TAKEN": 409,
    "INVALID_TRANSITION": 409,
    "DUPLICATE_MESSAGE": 409,
    "MERGE_FAILED": 409,
    "REPLAY_TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
    "UNSUPPORTED_OPERATION": 501,
    "UNAVAILABLE": 503,
    "STORAGE_FULL": 507,
}
"""The protocol names no statuses; these are ours."""

GONE = 410
"""A unit that was purged: UNIT_NOT_FOUND with its tombstone."""

_EDGE = {
    "too_large": "INVALID_REQUEST",
    "validation_error": "INVALID_ENVELOPE",
    "not_found": "NOT_FOUND",
    "method_not_allowed": "INVALID_REQUEST",
}
"""Error codes of the host's edge, mapped to the protocol's."""


def code_of(error: ReverieError) -> str:
    """The protocol's code."""
    return translated(error).reason


def status_of(error: ReverieError) -> int:
    """By code; a tombstone is 410."""
    made = translated(error)
    return GONE if "tombstone" in made.extra else STATUS.get(made.reason, 500)


def body_of(path: str, code: str, message: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """The error body of a refusal that the Field did not make."""
    return FieldError(_EDGE.get(code, code), message, operation=operation_at(path)).body()
