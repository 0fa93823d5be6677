"""Token estimates without a tokenizer: quick, deterministic, a little too high."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reverie.window.items import COMPACTIONS, Item, compact, encode, item_type, payload_hash, plain
from reverie.window.media import without_media
from reverie.window.models import low_detail

PAYLOAD_TOKENS = 2_000
"""Tokens of a compaction payload when the provider does not report them."""
MOST_TOKENS = 2**31
"""A provider that reports more is not believed."""
UNKNOWN_WINDOW_TRIGGER = 80_000
DEFAULT_OUTPUT_TOKENS = 32_000
_RESERVE = 16_000
_NOT_COUNTED = frozenset({"id", "status", "encrypted_content"})


def estimate(
    items: Iterable[Any] | Mapping[str, Any],
    *,
    payload_tokens: Mapping[str, int] | None = None,
    model: str | None = None,
) -> int:
    """Estimated tokens of items, or of a request shape. `payload_tokens`: output tokens of the pass that made a
    compaction payload, by the hash of the payload. `model`: some models bill low-detail pictures at a flat price."""
    if isinstance(items, Mapping):
        return _quarter(compact(plain(items)))
    low = low_detail(model)
    return sum(item_tokens(item, payload_tokens or {}, low=low) for item in items)


def item_tokens(given: Any, payload_tokens: Mapping[str, int], *, low: int | None = None) -> int:
    """Estimated tokens of one item. An `Item` never changes and is measured once."""
    if isinstance(given, Item):
        size = given.sizes.get(low)
        if size is None:
            size = given.sizes[low] = _measure(given.value, low)
    else:
        size = _measure(plain(given), low)
    tokens, payload = size
    return tokens if payload is None else tokens + payload_tokens.get(payload, PAYLOAD_TOKENS)


def _measure(item: Any, low: int | None) -> tuple[int, str | None]:
    """(tokens of an item without its compaction payload, hash of that payload). The hash is None for an item that has
    none, and empty when it is not known."""
    if not isinstance(item, dict):
        return _quarter(compact(item)), None
    bare, media = without_media({key: value for key, value in item.items() if key not in _NOT_COUNTED}, low=low)
    tokens = _quarter(compact(bare)) + media
    payload = item.get("encrypted_content")
    if item_type(item) in COMPACTIONS:
        return tokens, payload_hash(payload) if isinstance(payload, str) else ""
    return tokens + (-(-len(encode(payload)) // 8) if isinstance(payload, str) else 0), None


def _quarter(text: str) -> int:
    return -(-len(encode(text)) // 4)


def default_trigger(context_window: int | None, max_output_tokens: int | None = None) -> int:
    """Return the default trigger: 70 % of the window, less when an answer needs the room, and at least half of it."""
    if context_window is None:
        return UNKNOWN_WINDOW_TRIGGER
    room = context_window - (max_output_tokens or DEFAULT_OUTPUT_TOKENS) - _RESERVE
    return max(1, context_window // 2, min(context_window * 7 // 10, room))
