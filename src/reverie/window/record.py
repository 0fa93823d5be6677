"""A window as bytes, and back. Bytes that do not match their own hashes are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reverie.window.cache import LastTurn
from reverie.window.continuation import ExpectedItem
from reverie.window.items import Item, payload_hash, prefix_hash
from reverie.window.policy import Base, NegativeCache, WindowPolicy
from reverie.window.state import WindowState

FORMAT = "reverie.window/1"
_PLAIN = (
    "provider",
    "account_fingerprint",
    "mode",
    "model",
    "generation",
    "epoch",
    "prune_from",
    "response_id",
    "last_response_id",
    "shape",
    "request_shape_hash",
    "reported_input_tokens",
    "reported_at_items",
    "replay_loss_reason",
    "cooldown_until_tokens",
    "cooldown_until_ms",
    "failures",
    "awaiting_usage",
    "replaced",
    "payload_tokens",
    "next_position",
    "epoch_position",
    "compacted_since",
    "reset_since",
    "positions",
    "suspected_loss",
    "server_faults",
)

_LATER: dict[str, Any] = {
    "refused_at_tokens": None,
    "tokens_after_pass": None,
    "server_overflows": 0,
    "server_disabled": False,
    "compare_with": None,
    "carried": 0.0,
    "all_stored": False,
    "background": None,
    "counted_input_tokens": None,
    "counted_at_items": 0,
}
"""Fields that earlier releases did not store, with their values there."""


class CorruptWindow(ValueError):
    """The stored window fails its own checks."""


def dump(state: WindowState) -> bytes:
    """The window as bytes. The texts of its items stay as they were received."""
    last = state.last
    document = {name: getattr(state, name) for name in (*_PLAIN, *_LATER)} | {
        "format": FORMAT,
        "scope_id": state.scope_id,
        "base_url": state.base.url,
        "base_kind": state.base.kind,
        "items": [item.text for item in state.items],
        "items_hash": prefix_hash(state.items),
        "payloads": _payloads(state.items),
        "match": [[match.hash, match.type, match.id, match.need] for match in state.match],
        "last": None if last is None else [last.sent, last.tokens, last.server_item],
    }
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()


def load(data: bytes, *, policy: WindowPolicy | None = None, negative: NegativeCache | None = None) -> WindowState:
    """Load a window. Raises CorruptWindow when a hash does not match or anything else is wrong."""
    try:
        document = json.loads(data)
        if document["format"] != FORMAT:
            raise CorruptWindow("unknown format")
        items = [Item(text) for text in document["items"]]
        if prefix_hash(items) != document["items_hash"] or _payloads(items) != document["payloads"]:
            raise CorruptWindow("hash mismatch")
        last = document["last"]
        state = WindowState(
            scope_id=document["scope_id"],
            base=Base(document["base_url"], document["base_kind"]),
            policy=policy or WindowPolicy(),
            negative=negative or NegativeCache(),
            items=items,
            match=[ExpectedItem(*row) for row in document["match"]],
            last=None if last is None else LastTurn(*last),
            **{name: document[name] for name in _PLAIN},
            **{name: document.get(name, default) for name, default in _LATER.items()},
        )
    except CorruptWindow:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise CorruptWindow(type(fault).__name__) from None
    if not 0 <= state.replaced <= len(items) or not 0 <= state.reported_at_items <= len(items):
        raise CorruptWindow("out of range")
    return state


def _payloads(items: list[Item]) -> list[list[Any]]:
    """[index, hash] of every encrypted string."""
    results: list[list[Any]] = []
    for index, item in enumerate(items):
        value = item.value
        payload = value.get("encrypted_content") if isinstance(value, Mapping) else None
        if isinstance(payload, str):
            results.append([index, payload_hash(payload)])
    return results


def carry(newest: WindowState, local: WindowState) -> WindowState:
    """Copy the state that only this process knows of a window onto a newer copy of it."""
    forms = {match.hash: match for match in local.match if match.form is not None}
    newest.match = [forms.get(match.hash, match) if match.form is None else match for match in newest.match]
    newest.pending = local.pending
    newest.round, newest.passed_round, newest.local_ranges = local.round, local.passed_round, local.local_ranges
    newest.redact, newest.negative, newest.policy = local.redact, local.negative, local.policy
    if newest.remote_compaction is None:
        newest.remote_compaction = local.remote_compaction
    return newest
