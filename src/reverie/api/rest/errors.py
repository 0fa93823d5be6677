"""HTTP status per error code, and the errors that the API documents."""

from __future__ import annotations

from reverie.api.rest.outward import Problem
from reverie.core.errors import ReverieError
from reverie.http.problems import CODES, status_in
from reverie.http.routes import DocumentedAnswer

STATUS = {
    **CODES,
    "already_readable": 409,
    "distilled": 409,
    "not_undoable": 409,
    "no_tokenizer": 422,
    "no_embedder": 422,
    "no_cipher": 422,
    "missing_extra": 501,
    "embedder_failed": 503,
}

MEANING = {
    400: "The request is not valid: `details.pointer` names the field.",
    401: "No key, or one that is not valid, expired or revoked.",
    403: "The key lacks the right named in `details.right`, or the scope in `details.scope`.",
    404: "Absent, or invisible to the caller.",
    409: "In conflict with the stored version, id or idempotency key, or with a hold.",
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
    """The status of an error, by its code."""
    return status_in(STATUS, error)


def documented(*, body: bool, writes: bool) -> dict[int, DocumentedAnswer]:
    """The error answers of an operation, for the OpenAPI document."""
    statuses = {*_ALWAYS, *(_WITH_BODY if body else ()), *(_WRITES if writes else ()), 422}
    return {status: DocumentedAnswer(MEANING[status], Problem) for status in sorted(statuses)}
