"""Mapping of errors to the protocol's codes and their HTTP statuses."""

from __future__ import annotations

from reverie.core.errors import ReverieError, TooLarge

STATUS = {
    "validation_error": 400,
    "unsupported_ref_namespace": 400,
    "unsupported_stream_mode": 400,
    "unauthenticated": 401,
    "key_expired": 401,
    "key_revoked": 401,
    "forbidden": 403,
    "run_forbidden": 403,
    "not_found": 404,
    "version_conflict": 409,
    "workspace_conflict": 409,
    "id_taken": 409,
    "busy": 409,
    "held": 409,
    "idempotency_key_reused": 409,
    "idempotency_key_mismatch": 409,
    "idempotency_in_flight": 409,
    "run_terminal": 409,
    "run_state_conflict": 409,
    "engine_version_mismatch": 409,
    "too_large": 413,
    "workspace_too_large": 413,
    "unsupported_media_type": 415,
    "unprocessable": 422,
    "secret_leakage": 422,
    "token_budget_exceeded": 422,
    "dream_gate_failed": 422,
    "spend_limit_exceeded": 422,
    "model_failed": 422,
    "schedule_horizon_exceeded": 422,
    "replay_memory_snapshot_unavailable": 422,
    "invalid_from_seq": 422,
    "rate_limited": 429,
    "quota_exceeded": 429,
    "internal_error": 500,
    "compaction_redaction_failed": 500,
    "store_corrupt": 500,
    "capability_not_provided": 501,
    "read_only": 503,
    "distiller_failed": 503,
    "store_error": 503,
    "store_busy": 503,
    "store_unavailable": 503,
    "host_unreachable": 503,
    "storage_full": 507,
}
"""Every code this door answers with."""

CODES = {
    "no_tokenizer": "capability_not_provided",
    "no_embedder": "capability_not_provided",
    "no_cipher": "capability_not_provided",
    "idempotency_key_reused": "idempotency_key_mismatch",
}
"""Error codes that differ between the core and the protocol."""


def code_of(error: ReverieError) -> str:
    """The protocol's code. A field that is too large is simply not valid; a body that is too large stays what it is."""
    if isinstance(error, TooLarge) and error.reason == TooLarge.code and error.pointer is not None:
        return "validation_error"
    reason = CODES.get(error.reason, error.reason)
    if reason in STATUS:
        return reason
    kinds = (getattr(kind, "code", "") for kind in type(error).__mro__)
    return next((code for code in kinds if code in STATUS), "internal_error")


def status_of(error: ReverieError) -> int:
    """By the protocol's code."""
    return STATUS[code_of(error)]
