"""The one error body: `{"error": code, "message": text, "details"?: object}`, with no other keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from reverie.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    QuotaExceeded,
    RateLimited,
    ReadOnly,
    ReverieError,
    StoreCorrupt,
    StoreError,
    TooLarge,
    Unauthenticated,
    Unprocessable,
)
from reverie.http.parsing import UnsupportedMedia
from reverie.http.reply import Reply
from reverie.redact import KnownSecrets, Redactor

_LONGEST_MESSAGE = 600
Shape = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]
"""Code, message and details as a protocol's own error body."""

NEXT = {
    "unauthenticated": "Send the header `Authorization: Bearer KEY`. `reverie keys create` makes a key.",
    "key_expired": "Ask for a new key: `reverie keys create`, or `reverie keys rotate` before it expires.",
    "key_revoked": "Ask for a new key: `reverie keys create`.",
    "forbidden": "Use a key that has the right or scope named in details.",
    "forbidden_host": "Use a name that the server answers to, or add this one to REVERIE_ALLOWED_HOSTS.",
    "forbidden_origin": "Call from a program, or add the page's origin to REVERIE_ALLOWED_ORIGINS.",
    "version_conflict": "Read the entry again and repeat the change with its new ETag.",
    "idempotency_key_reused": "Use a new Idempotency-Key for a new request.",
    "rate_limited": "Wait as many seconds as the header Retry-After says.",
    "quota_exceeded": "Forget or dream, or raise max_entries or max_bytes in the policy.",
    "store_busy": "Nothing was stored. Try again.",
    "storage_full": "Nothing was stored. Free some disk space, then try again.",
    "read_only": "Write to the host that takes writes.",
}
"""Next step for the caller, by error code."""


STATUS: Mapping[type[ReverieError], int] = {
    TooLarge: 413,
    UnsupportedMedia: 415,
    Invalid: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Unprocessable: 422,
    RateLimited: 429,
    QuotaExceeded: 429,
    ReadOnly: 503,
    StoreCorrupt: 500,
    StoreError: 503,
    ReverieError: 422,
}
"""The status of a refusal, for pages and for doors without a table of their own, by the first class that fits."""


CODES: Mapping[str, int] = {
    "validation_error": 400,
    "unsupported_ref_namespace": 400,
    "unauthenticated": 401,
    "key_expired": 401,
    "key_revoked": 401,
    "forbidden": 403,
    "not_found": 404,
    "version_conflict": 409,
    "id_taken": 409,
    "idempotency_key_reused": 409,
    "busy": 409,
    "held": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "unprocessable": 422,
    "token_budget_exceeded": 422,
    "dream_gate_failed": 422,
    "spend_limit_exceeded": 422,
    "schedule_horizon_exceeded": 422,
    "rate_limited": 429,
    "quota_exceeded": 429,
    "internal_error": 500,
    "store_corrupt": 500,
    "compaction_redaction_failed": 500,
    "read_only": 503,
    "distiller_failed": 503,
    "store_error": 503,
    "store_busy": 503,
    "store_unavailable": 503,
    "host_unreachable": 503,
    "storage_full": 507,
}
"""Status of the core's errors by code, for REST and OpenWOP. A stale If-Match is 409 in the namespace of both; 412 is
not used."""


def status_in(table: Mapping[str, int], error: ReverieError) -> int:
    """The status of an error in a table of codes. A code that is not in the table has the status of its class."""
    for code in (error.reason, *(getattr(kind, "code", "") for kind in type(error).__mro__)):
        if code in table:
            return table[code]
    return 500


def status_of(error: ReverieError) -> int:
    """The status of a refusal."""
    return next(status for kind, status in STATUS.items() if isinstance(error, kind))


def problem(
    status: int,
    code: str,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    shape: Shape | None = None,
) -> Response:
    """An error answer. `details` is left out when empty. `shape` makes a door's own error body."""
    if shape is not None:
        shaped = shape(code, message[:_LONGEST_MESSAGE], details or {})
        return Reply(shaped, status, headers, default=str)
    body: dict[str, Any] = {"error": code, "message": message[:_LONGEST_MESSAGE]}
    shown = {"next": NEXT[code], **(details or {})} if code in NEXT else dict(details or {})
    if shown:
        body["details"] = shown
    return Reply(body, status, headers, default=str)


def answer(
    error: ReverieError,
    status: int,
    *,
    redactor: Redactor,
    code: str | None = None,
    known: KnownSecrets = KnownSecrets.EMPTY,
    correlation: str | None = None,
    quota_seconds: int = 60,
    shape: Shape | None = None,
) -> Response:
    """An error of the core as an answer. Its texts pass the redactor: a caller may have put a secret anywhere."""
    details: dict[str, Any] = dict(error.details)
    if error.pointer is not None:
        details["pointer"] = error.pointer
    details, _ = redactor.value(details, known)  # type: ignore[assignment]
    if status >= 500 and correlation:
        details["correlationId"] = correlation
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="reverie"'
    if status == 429:
        headers["Retry-After"] = str(max(1, int(error.details.get("retry_after_seconds", quota_seconds))))
    if status == 503:
        headers["Retry-After"] = "5"
    message = redactor.text(error.message, known).text
    return problem(status, code or error.reason, message, details=details, headers=headers, shape=shape)
