"""Errors of the protocol: status, type, and whether a client should try again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.core.errors import ReverieError
from reverie.http.problems import status_in

STATUS = {
    "validation_error": 400,
    "unsupported_media_type": 400,
    "unprocessable": 400,
    "quota_exceeded": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "read_only": 403,
    "not_found": 404,
    "version_conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
    "internal_error": 500,
    "store_corrupt": 500,
    "storage_full": 500,
    "store_error": 503,
    "store_unavailable": 503,
    "store_busy": 529,
}
"""By code, or by the code of a class above."""

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
OWN_TYPES = {
    "memory_precondition_failed": "memory_precondition_failed_error",
    "memory_path_conflict": "memory_path_conflict_error",
}
OWN_CODES = {"quota_exceeded": "storage_quota_exceeded"}
_OF_ERROR = ("conflicting_memory_id", "conflicting_path")
_FINAL = frozenset({"storage_full", "store_corrupt"})


def status_of(error: ReverieError) -> int:
    """The status of an error, by its code."""
    return status_in(STATUS, error)


def error_type(status: int, code: str) -> str:
    """The protocol's type of an error."""
    return OWN_TYPES.get(code) or TYPES.get(status) or ("invalid_request_error" if status < 500 else "api_error")


def error_shape(status: int, problem: Mapping[str, Any], request_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The host's error body as the protocol's, and headers that belong to it."""
    code = str(problem.get("error", "internal_error"))
    details = dict(problem.get("details") or {})
    error: dict[str, Any] = {"type": error_type(status, code), "message": str(problem.get("message", ""))}
    error |= {name: details.pop(name) for name in _OF_ERROR if name in details}
    error["details"] = {"error_code": OWN_CODES.get(code, code), **details}
    headers: dict[str, str] = {}
    if (status == 409 and code != "busy") or code in _FINAL:
        headers["x-should-retry"] = "false"
    if status == 529:
        headers["retry-after"] = "1"
    return {"type": "error", "error": error, "request_id": request_id}, headers
