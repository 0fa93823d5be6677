"""Context windows of known models, in tokens. A policy may add to them (`context_windows`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

CONTEXT_WINDOWS: Mapping[str, int] = {
    "gpt-5.6": 1_000_000,
    "gpt-5.5": 1_050_000,
    "gpt-5.4": 1_050_000,
    "gpt-5.4-mini": 400_000,
    "gpt-5.4-nano": 400_000,
    "gpt-5": 400_000,
    "gpt-5.1": 400_000,
    "gpt-5.2": 400_000,
    "gpt-5.3": 400_000,
    "gpt-5.3-codex-spark": 128_000,
    "gpt-5-chat": 128_000,
    "gpt-5.1-chat": 128_000,
    "gpt-5.2-chat": 128_000,
    "gpt-5.3-chat": 128_000,
    "gpt-5.4-chat": 128_000,
    "gpt-5.5-chat": 128_000,
    "gpt-5.6-chat": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "codex-mini": 200_000,
    "claude": 200_000,
}
LONG_CONTEXT_PRICE = frozenset({"gpt-5.5", "gpt-5.4"})
"""Models that bill more from 272,000 input tokens on."""
LONG_CONTEXT_TRIGGER = 240_000
_FLAT_LOW = dict.fromkeys(("gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3"), 85)
"""Tokens of a picture of low detail, for models that bill it flat."""
_BY_PATCHES = ("-mini", "-nano")
_CODEX_WINDOW = 272_000
_VENDOR = re.compile(r"^(?:[^/]+/)*(?:[a-z]+\.)?")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def family(model: str | None, windows: Mapping[str, int]) -> str | None:
    """The longest name in `windows` that `model` begins with, up to its end, a hyphen or a dot."""
    if not model:
        return None
    name = _VENDOR.sub("", model.strip().casefold())
    name = _DATE.sub("", name.removesuffix("-latest"))
    fitting = [known for known in windows if name == known or name.startswith((f"{known}-", f"{known}."))]
    return max(fitting, key=len, default=None)


def context_window(model: str | None, base_kind: str, more: Mapping[str, int] | None = None) -> int | None:
    """The context window of a model on a kind of base; None when it is not known."""
    added = {name.casefold(): tokens for name, tokens in (more or {}).items()}
    found = family(model, added)
    if found is not None:
        return added[found]
    found = family(model, CONTEXT_WINDOWS)
    if found is None:
        return None
    window = CONTEXT_WINDOWS[found]
    return min(window, _CODEX_WINDOW) if base_kind == "codex" and found.startswith("gpt-5") else window


def bills_long_context(model: str | None) -> bool:
    """Whether a model bills long input at a higher price."""
    return family(model, CONTEXT_WINDOWS) in LONG_CONTEXT_PRICE


def low_detail(model: str | None) -> int | None:
    """The flat price of a picture of low detail; None for a model that counts patches."""
    found = family(model, _FLAT_LOW)
    small = model is not None and any(part in model for part in _BY_PATCHES)
    return None if found is None or small else _FLAT_LOW[found]
