"""Mapping of errors to the protocol's codes and their HTTP statuses."""

from __future__ import annotations

from reverie.core.errors import ReverieError, TooLarge
from reverie.http.problems import CODES

STATUS = {
    **CODES,
    "unsupported_stream_mode": 400,
    "run_forbidden": 403,
    "workspace_conflict": 409,
    "idempotency_key_mismatch": 409,
    "idempotency_in_flight": 409,
    "run_terminal": 409,
    "run_state_conflict": 409,
    "engine_version_mismatch": 409,
    "workspace_too_large": 413,
    "secret_leakage": 422,
    "model_failed": 422,
    "replay_memory_snapshot_unavailable": 422,
    "invalid_from_seq": 422,
    "capability_not_provided": 501,
}
"""Every code this door answers with."""

OWN_CODES = {
    "no_tokenizer": "capability_not_provided",
    "no_embedder": "capability_not_provided",
    "no_cipher": "capability_not_provided",
    "idempotency_key_reused": "idempotency_key_mismatch",
}
"""Error codes that differ between the core and the protocol."""


def code_of(error: ReverieError) -> str:
    """The protocol's code. A field that is too large is `validation_error`; a body that is too large keeps its code."""
    if isinstance(error, TooLarge) and error.reason == TooLarge.code and error.pointer is not None:
        return "validation_error"
    reason = OWN_CODES.get(error.reason, error.reason)
    if reason in STATUS:
        return reason
    kinds = (getattr(kind, "code", "") for kind in type(error).__mro__)
    return next((code for code in kinds if code in STATUS), "internal_error")


def status_of(error: ReverieError) -> int:
    """By the protocol's code."""
    return STATUS[code_of(error)]
