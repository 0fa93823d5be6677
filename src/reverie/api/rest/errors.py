"""HTTP status per error code, and the errors that the API documents."""

from __future__ import annotations

from reverie.api.rest.outward import Problem
from reverie.core.errors import ReverieError
from reverie.http.routes import DocumentedAnswer

STATUS = {
    "validation_error": 400,
    "unsupported_ref_namespace": 400,
    "unauthenticated": 401,
    "key_expired": 401,
    "key_revoked": 401,
    "forbidden": 403,
    "not_found": 404,
    "version_conflict": 409,
    "id_taken": 409,
    "already_readable": 409,
    "distilled": 409,
    "idempotency_key_reused": 409,
    "busy": 409,
    "held": 409,
    "not_undoable": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "unprocessable": 422,
    "no_tokenizer": 422,
    "no_embedder": 422,
    "no_cipher": 422,
    "token_budget_exceeded": 422,
    "dream_gate_failed": 422,
    "spend_limit_exceeded": 422,
    "schedule_horizon_exceeded": 422,
    "rate_limited": 429,
    "quota_exceeded": 429,
    "internal_error": 500,
    "store_corrupt": 500,
    "compaction_redaction_failed": 500,
    "missing_extra": 501,
    "read_only": 503,
    "embedder_failed": 503,
    "distiller_failed": 503,
    "store_error": 503,
    "store_busy": 503,
    "store_unavailable": 503,
    "host_unreachable": 503,
    "storage_full": 507,
}
"""A stale If-Match is 409, as everywhere in the namespace this API lives in; 412 is not used."""

MEANING = {
    400: "The request is not valid: `details.pointer` names the field.",
    401: "No key, or one that is not valid, expired or revoked.",
    403: "The key lacks the right named in `details.right`, or the scope in `details.scope`.",
    404: "Absent, or invisible to the caller.",
    409: "The stored version, id or idempotency key is in the way, or a hold is.",
    413: "The body, an entry or a batch is over its limit.",
    415: "The body is not of the documented media type.",
    422: "Well formed, but this host cannot do it as asked.",
    429: "Too many requests, or the tenant's quota is used up. `Retry-After` says when to try again.",
    500: "A fault of the host. `details.correlationId` finds it in the log.",
    501: "The host lacks an optional package; the message names the command that installs it.",
    503: "The store is busy or unavailable, or the host is read-only. Nothing was stored.",
    507: "The disk is full. Nothing was stored.",
}
_ALWAYS = (400, 401, 403, 404, 429, 500, 503)
_WITH_BODY = (413, 415, 422)
_WRITES = (409, 507)


def status_of(error: ReverieError) -> int:
    """By code; a code not in the table answers as its class does."""
    for code in (error.reason, *(getattr(kind, "code", "") for kind in type(error).__mro__)):
        if code in STATUS:
            return STATUS[code]
    return 500


def documented(*, body: bool, writes: bool) -> dict[int, DocumentedAnswer]:
    """The error answers of an operation, for the OpenAPI document."""
    statuses = {*_ALWAYS, *(_WITH_BODY if body else ()), *(_WRITES if writes else ()), 422}
    return {status: DocumentedAnswer(MEANING[status], Problem) for status in sorted(statuses)}
