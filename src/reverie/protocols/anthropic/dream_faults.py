"""Failures of a dream of a memory store, in the protocol's terms."""

from __future__ import annotations

from typing import Any

from reverie.core.dream import GateFailed, ModelFailed, RedactionFailed, SpendExceeded
from reverie.core.errors import NotFound, QuotaExceeded, ReverieError
from reverie.protocols.anthropic.dream_plan import DreamTooLarge
from reverie.protocols.anthropic.dream_records import DreamFault
from reverie.protocols.anthropic.errors import MemoryLimit, StoreLimit
from reverie.protocols.anthropic.transcripts import SessionGone


class Unavailable(NotFound):
    """The input store was archived or deleted."""

    code = "input_memory_store_unavailable"


def failure(fault: Exception) -> tuple[DreamFault, dict[str, Any]]:
    """A fault as the protocol shows it. Messages hold no text of a memory."""
    if isinstance(fault, TimeoutError):
        return DreamFault("timeout", "The dream took longer than it may."), {}
    if isinstance(fault, SessionGone):
        return DreamFault("input_session_unavailable", fault.message), {}
    if isinstance(fault, StoreLimit):
        return DreamFault("memory_store_org_limit_exceeded", fault.message), {}
    if isinstance(fault, DreamTooLarge):
        return DreamFault(fault.code, fault.message), {"minimum_required": fault.details["minimum_required"]}
    if isinstance(fault, Unavailable | GateFailed | RedactionFailed | SpendExceeded | ModelFailed):
        return DreamFault(fault.reason, fault.message), {}
    if isinstance(fault, MemoryLimit):
        return DreamFault("input_memory_store_too_large", fault.message), {"error_code": fault.code}
    if isinstance(fault, QuotaExceeded):
        return DreamFault("internal_error", fault.message), {"error_code": "storage_quota_exceeded"}
    code = fault.reason if isinstance(fault, ReverieError) else "internal_error"
    return DreamFault("internal_error", "Something went wrong here."), {"error_code": code}
