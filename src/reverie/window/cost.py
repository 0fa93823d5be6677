"""The cost of carrying a history along, compared with that of a pass: the rule of `WindowPolicy(rule="cost")`.

Every request pays again for what it repeats. A pass pays once: for reading the window, for writing the payload, and for
sending the new window without a cache. In a window that grows evenly, the cheapest moment to compact is when the first
sum has reached the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reverie.window.estimate import PAYLOAD_TOKENS, estimate

if TYPE_CHECKING:
    from reverie.window.state import WindowState

CACHED = 0.1
"""The price of a cached input token, when one that is not cached costs 1."""
OUTPUT = 8.0
"""The price of an output token."""
_RETAINED_TOKENS = 64_000


def remains(state: WindowState) -> int:
    """Estimated tokens of a request after a pass: its shape, the user's messages and the payload."""
    form = state.pending.shape if state.pending else state.shape
    users = estimate(i for i in state.items if i.type == "message" and i.value.get("role") == "user")
    return estimate(form) + min(users, _RETAINED_TOKENS) + payload(state)


def payload(state: WindowState) -> int:
    """Tokens of the payload that a pass would make."""
    held = estimate(state.items, payload_tokens=state.payload_tokens)
    return max(state.payload_tokens.values(), default=min(PAYLOAD_TOKENS, held // 10))


def carry(state: WindowState, sent: int, *, new: int, cached: int | None) -> None:
    """Add the cost of the tokens that a request of `sent` tokens repeated and a pass would have removed. `new`: tokens
    sent for the first time. `cached`: tokens read from the cache, None when that is not reported."""
    repeated = max(0, sent - new)
    beyond = min(repeated, max(0, sent - remains(state)))
    hit = repeated if cached is None else min(cached, repeated)
    rate = (hit * CACHED + (repeated - hit)) / repeated if repeated else 0.0
    state.carried += rate * beyond


def carry_response(state: WindowState, usage: Mapping[str, Any] | None, new: int) -> None:
    """The same for a response, by the usage it reports."""
    sent = usage.get("input_tokens") if usage else None
    details = usage.get("input_tokens_details") if usage else None
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    if isinstance(sent, int):
        carry(state, sent, new=new, cached=cached if isinstance(cached, int) else None)


def of_pass(state: WindowState, tokens: int, method: str) -> float:
    """The price of a pass over a window of `tokens`. With the trigger item the window is read from the cache, if it was
    sent before."""
    read = CACHED if method == "trigger" and state.last is not None else 1.0
    return read * tokens + OUTPUT * payload(state) + (1 - CACHED) * remains(state)
