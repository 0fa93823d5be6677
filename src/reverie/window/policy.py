"""The policy of a window: every choice with its default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from reverie.core.errors import Invalid
from reverie.window import models
from reverie.window.estimate import default_trigger

Mode = Literal["standalone", "trigger", "on_demand", "server_side", "off"]
BaseKind = Literal["api", "codex", "messages"]
_MODES = ("standalone", "trigger", "on_demand", "server_side", "off")
_CHOICES = {"rule": ("size", "cost"), "inject_checkpoint": ("off", "brief"), "count_tokens": ("auto", "off")}
_LEAST = {"trigger_input_tokens": 1, "context_window": 1, "max_output_tokens": 1, "server_compact_threshold": 1000}
_METHODS = ("standalone", "trigger")
_PASSES = (*_METHODS, "on_demand")


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The defaults are safe; `mode` and `fallback_methods` follow the kind of base when left out."""

    rule: Literal["size", "cost"] = "size"
    """`cost`: compact as soon as carrying the history along has cost as much as a pass would (`cost.py`), at the latest
    at 80 % of a known context window; passes then use the trigger item first, which reads from the prompt cache."""
    mode: Mode | None = None
    """`standalone` on `api`, `trigger` on `codex`, `on_demand` on `messages`; `server_side` is opt-in; `off` never
    compacts."""
    store: bool = False
    """Whether the provider keeps responses. With it, requests are chained and send only new items."""
    trigger_input_tokens: int | None = None
    """Input tokens at which the window is compacted. By default 70 % of the context window, less when answers need the
    room and at least half of it; 80,000 when the window is unknown."""
    context_window: int | None = None
    """The model's context window in tokens; by default that of known models (`models.py`)."""
    context_windows: Mapping[str, int] | None = None
    """Context windows of further models, by the beginning of their names."""
    max_output_tokens: int | None = None
    min_reduction: float = 0.20
    retained_message_tokens: int = 64_000
    compact_timeout_seconds: float = 120.0
    inject_checkpoint: Literal["off", "brief"] = "off"
    server_compact_threshold: int | None = None
    watchdog_seconds: float = 120.0
    """Server-side mode: longest silence of a stream, in seconds."""
    fallback_methods: Sequence[str] | None = None
    count_tokens: Literal["auto", "off"] = "auto"
    """`auto`: before an estimate causes a pass, the provider is asked for the exact count, where it has one."""
    edits: Sequence[Mapping[str, Any]] | None = None
    """Messages API: edits of context editing (`clear_tool_uses_20250919`, `clear_thinking_20251015`) for every request
    but a pass."""
    previews: bool = False
    ledger: bool = True
    """Whether every item also becomes a readable, redacted entry of the memory."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise Invalid(f"{name} is {' or '.join(choices)}.", pointer=f"/{name}")
        if self.mode is not None and self.mode not in _MODES:
            raise Invalid(f"mode is one of {', '.join(_MODES)}.", pointer="/mode")
        if any(method not in _METHODS for method in self.fallback_methods or ()):
            raise Invalid(f"fallback_methods are among {', '.join(_METHODS)}.", pointer="/fallback_methods")
        if any(not isinstance(value, int) or value < 1 for value in (self.context_windows or {}).values()):
            raise Invalid("Every one of context_windows is a whole number of at least 1.", pointer="/context_windows")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise Invalid(f"{name} is at least {least}.", pointer=f"/{name}")
        if any(not str(edit.get("type", "")).startswith("clear_") for edit in self.edits or ()):
            raise Invalid("edits are edits of context editing: their type begins with clear_.", pointer="/edits")
        if not 0 <= self.min_reduction < 1:
            raise Invalid("min_reduction is at least 0 and below 1.", pointer="/min_reduction")

    def mode_for(self, base_kind: str) -> str:
        """The mode on a kind of base. Raises Invalid when the policy names one of another kind."""
        if self.mode is not None and (base_kind == "messages") != (self.mode == "on_demand") and self.mode in _PASSES:
            raise Invalid(f"This provider has no mode {self.mode}.", pointer="/mode")
        if base_kind == "messages":
            return self.mode or "on_demand"
        return self.mode or ("trigger" if base_kind == "codex" or self.rule == "cost" else "standalone")

    def methods_for(self, base_kind: str, mode: str) -> list[str]:
        """The methods of a pass, in the order in which they are tried."""
        if base_kind == "messages":
            return ["on_demand"]
        allowed = ["trigger"] if base_kind == "codex" else list(_METHODS)
        wanted = allowed if self.fallback_methods is None else [m for m in self.fallback_methods if m in allowed]
        if mode in wanted:
            return [mode, *(method for method in wanted if method != mode)]
        if mode in allowed:
            return [mode, *wanted]
        return wanted

    def window_of(self, model: str | None, base_kind: str = "api") -> int | None:
        """The context window of a model; None when it is not known."""
        return self.context_window or models.context_window(model, base_kind, self.context_windows)

    def trigger(
        self, max_output_tokens: int | None = None, *, model: str | None = None, window: int | None = None
    ) -> int:
        """Input tokens at which the window is compacted. `window`: the model's, when it is known."""
        if self.trigger_input_tokens is not None:
            return self.trigger_input_tokens
        size = window or self.window_of(model)
        found = default_trigger(size, self.max_output_tokens or max_output_tokens)
        if self.rule == "cost" and size is not None:
            found = max(found, size * 8 // 10)
        return min(found, models.LONG_CONTEXT_TRIGGER) if models.bills_long_context(model) else found


@dataclass(frozen=True, slots=True)
class Base:
    """The base URL of requests, normalised once."""

    url: str
    kind: BaseKind

    @classmethod
    def of(cls, url: str, kind: BaseKind | None = None) -> Base:
        """Strip the trailing slash; a ChatGPT backend ends in `/codex` and a Messages API in `/v1`, exactly once."""
        clean = str(url).rstrip("/")
        parts = urlsplit(clean)
        path = parts.path.rstrip("/")
        if kind is None:
            backend = path.endswith("/backend-api") or path.endswith("/backend-api/codex")
            kind = "codex" if backend else "messages" if parts.hostname == "api.anthropic.com" else "api"
        if kind == "messages" and not path.endswith("/v1"):
            clean += "/v1"
        if kind == "codex" and not path.endswith("/codex"):
            clean += "/codex"
        return cls(clean, kind)

    @property
    def create_url(self) -> str:
        """URL for creating responses."""
        return f"{self.url}/{'messages' if self.kind == 'messages' else 'responses'}"

    @property
    def compact_url(self) -> str:
        """URL for compacting a window. With the method it is the key of the negative cache."""
        return self.create_url if self.kind == "messages" else f"{self.url}/responses/compact"


class NegativeCache:
    """Features that a provider lacks, for the life of a session, shared by every scope that talks to it.

    A hint: losing it costs one refused request.
    """

    def __init__(self) -> None:
        self._missing: dict[tuple[str, str], int] = {}
        self._windows: dict[tuple[str, str | None], int] = {}
        self._warned: set[str] = set()

    def add(self, base: Base, method: str, http_status: int) -> None:
        """Record that a method does not work here."""
        self._missing[(base.compact_url, method)] = http_status

    def status(self, base: Base, method: str) -> int | None:
        """The HTTP status with which a method was refused here, or None."""
        return self._missing.get((base.compact_url, method))

    def learn_window(self, base: Base, model: str | None, tokens: int) -> None:
        """Record the context window that the provider named for a model."""
        self._windows[(base.url, model)] = tokens

    def context_window(self, base: Base, model: str | None) -> int | None:
        """The context window that the provider named, or None."""
        return self._windows.get((base.url, model))

    def first(self, base: Base, scope: str) -> bool:
        """Whether this is the first report of a scope that no method is left here."""
        key = f"{base.compact_url} {scope}"
        if key in self._warned:
            return False
        self._warned.add(key)
        return True
