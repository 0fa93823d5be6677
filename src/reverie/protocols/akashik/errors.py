"""Errors of a Field, in the protocol's terms. Every error that leaves the Field is a FieldError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    QuotaExceeded,
    RateLimited,
    ReverieError,
    StoreError,
    StoreFull,
    Unauthenticated,
)

CODES: Mapping[str, tuple[bool, str]] = {
    "MISSING_INTENT": (True, "Say why in intent.purpose and send it again."),
    "MISSING_CONFIDENCE": (True, "Add confidence.score and confidence.reasoning, or record a draft."),
    "INVALID_CONFIDENCE": (True, "Give confidence.score as a number from 0 to 1."),
    "INVALID_TYPE": (True, "Use one of the protocol's types."),
    "AGENT_NOT_REGISTERED": (True, "REGISTER first, with this credential."),
    "AGENT_ID_TAKEN": (True, "REGISTER under another id."),
    "CONFLICT_NOT_FOUND": (False, "DETECT with mode list shows the conflicts there are."),
    "UNIT_NOT_FOUND": (False, "ATTUNE shows the units there are."),
    "INVALID_TRANSITION": (True, "Read the present state and choose an action it allows."),
    "UNSUPPORTED_OPERATION": (False, "REGISTER answers which operations this Field supports."),
    "DUPLICATE_MESSAGE": (False, "Use a new id for a new message."),
    "MERGE_FAILED": (True, "Choose another strategy, or leave winner_id out."),
    "REPLAY_TOO_LARGE": (True, "Ask for a smaller target or a shallower depth."),
    "STORAGE_FULL": (False, "COMPACT with archive or purge, then try again."),
    "EPOCH_OVERFLOW": (False, "Send the epoch of the last answer you got."),
    "INTERNAL_ERROR": (False, "Try again later; the operator finds the fault in the log."),
    "INVALID_ENVELOPE": (True, "Send the eight members of the envelope, and nothing else."),
    "INVALID_REQUEST": (True, "Correct the payload and send it again."),
    "INVALID_FILTER": (True, "Correct the filter; nothing was changed."),
    "UNAUTHENTICATED": (True, "Send `Authorization: Bearer KEY`."),
    "INSUFFICIENT_AUTHORITY": (False, "Ask someone of higher authority."),
    "NOT_A_MEMBER": (False, "Ask the session's creator to invite you."),
    "NOT_FOUND": (False, "List what there is."),
    "RATE_LIMITED": (True, "Wait as long as Retry-After says."),
    "UNAVAILABLE": (True, "Nothing was stored. Try again."),
}
"""Each code: whether it is recoverable, and the suggested action."""

REJECTED = frozenset({"REGISTER", "RECORD"})
"""Operations whose refusals also say `status: rejected`."""


class FieldError(ReverieError):
    """The Field refused the operation."""

    code = "field_error"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        operation: str | None = None,
        extra: Mapping[str, Any] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, details=details)
        self.operation = operation
        self.extra = dict(extra or {})
        """Members in addition to the five of every error, such as `tombstone`."""

    def body(self) -> dict[str, Any]:
        """The protocol's error object."""
        recoverable, action = CODES.get(self.reason, CODES["INTERNAL_ERROR"])
        body: dict[str, Any] = {
            "code": self.reason,
            "message": self.message,
            "operation": self.operation,
            "recoverable": recoverable,
            "suggested_action": action,
        }
        if self.operation in REJECTED:
            body |= {"status": "rejected", "rejection_reason": self.message}
        return body | self.extra


def translated(error: ReverieError, operation: str | None = None) -> FieldError:
    """An error of the core as a FieldError."""
    if isinstance(error, FieldError):
        error.operation = error.operation or operation
        return error
    code = next((code for kind, code in _WORDS if isinstance(error, kind)), "INTERNAL_ERROR")
    message = error.message if code != "INTERNAL_ERROR" else "Something went wrong here."
    if error.pointer:
        message = f"{error.pointer}: {message}"
    made = FieldError(code, message, operation=operation, details=error.details)
    made.__cause__ = error
    return made


_WORDS: tuple[tuple[type[ReverieError], str], ...] = (
    (StoreFull, "STORAGE_FULL"),
    (QuotaExceeded, "STORAGE_FULL"),
    (Unauthenticated, "UNAUTHENTICATED"),
    (Forbidden, "INSUFFICIENT_AUTHORITY"),
    (RateLimited, "RATE_LIMITED"),
    (NotFound, "NOT_FOUND"),
    (Invalid, "INVALID_REQUEST"),
    (Conflict, "UNAVAILABLE"),
    (StoreError, "UNAVAILABLE"),
)
