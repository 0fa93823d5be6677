"""Diagnosis of a lost prompt cache. Reports only, decides nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_MODEL = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_TYPES = frozenset({"cache_hit", "cache_miss", "comparison_response_not_found", "unavailable"})
_REASONS = frozenset(
    {
        "model_changed",
        "prompt_cache_key_changed",
        "tools_changed",
        "text_format_changed",
        "reasoning_effort_changed",
        "verbosity_changed",
        "context_compacted",
        "input_changed",
        "service_tier_changed",
    }
)


@dataclass(slots=True)
class LastTurn:
    """Request and answer of the previous turn."""

    sent: list[str] = field(default_factory=list)
    """Hashes of the items that were sent, then of those that came back."""
    tokens: int | None = None
    """Input and output tokens of that turn."""
    server_item: bool = False


def attribute(
    usage: Mapping[str, Any] | None,
    last: LastTurn | None,
    *,
    sent: Sequence[str],
    compacted: bool,
    reset: bool,
    changed_keys: Sequence[str],
) -> dict[str, Any]:
    """The `cache` part of a turn's diagnostics."""
    given = usage or {}
    details = given.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    report: dict[str, Any] = {
        "cached_tokens": cached if isinstance(cached, int) else None,
        "input_tokens": given.get("input_tokens") if isinstance(given.get("input_tokens"), int) else None,
        "cache_loss": "none",
    }
    if last is None:
        return report
    if report["cached_tokens"] is None or last.tokens is None:
        return report | {"cache_loss": "unknown"}
    if report["cached_tokens"] * 2 >= last.tokens:
        return report
    if compacted:
        return report | {"cache_loss": "compaction"}
    if last.server_item:
        return report | {"cache_loss": "server_compaction"}
    if reset:
        return report | {"cache_loss": "reset"}
    if changed_keys:
        return report | {"cache_loss": "shape_drift", "changed_keys": list(changed_keys)}
    if list(sent[: len(last.sent)]) != last.sent:
        return report | {"cache_loss": "input_drift"}
    return report | {"cache_loss": "expired_or_evicted"}


def options_of(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The caller's `prompt_cache_options`; empty when there are none that can be read."""
    given = form.get("prompt_cache_options")
    return given if isinstance(given, Mapping) else {}


def supports_comparison(model: Any) -> bool:
    """Whether a model compares a request with an earlier one."""
    found = _MODEL.match(model) if isinstance(model, str) else None
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 6)


def provider_word(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the provider's own diagnosis of its cache, limited to the known terms."""
    given = body.get("prompt_cache_diagnostics")
    if not isinstance(given, Mapping) or given.get("type") not in _TYPES:
        return None
    return {"type": given["type"]} | ({"reason": given["reason"]} if given.get("reason") in _REASONS else {})
