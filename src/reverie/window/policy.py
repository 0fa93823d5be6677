"""How a window is kept small: every choice with its default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from reverie.core.errors import Invalid
from reverie.window.estimate import default_trigger

Mode = Literal["standalone", "trigger", "server_side", "off"]
BaseKind = Literal["api", "codex"]
_MODES = ("standalone", "trigger", "server_side", "off")
_METHODS = ("standalone", "trigger")


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The defaults are safe; `mode` and `fallback_methods` follow the kind of base when left out."""

    mode: Mode | None = None
    """`standalone` on `api`, `trigger` on `codex`; `server_side` is opt-in; `off` never compacts."""
    store: bool = False
    """Whether the provider keeps responses. With it, requests are chained and send only what is new."""
    trigger_input_tokens: int | None = None
    """Compact from here on. By default 70 % of the context window, less when answers need the room; 80,000 when the
    window is unknown."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    min_reduction: float = 0.20
    retained_message_tokens: int = 64_000
    compact_timeout_seconds: float = 120.0
    inject_checkpoint: Literal["off", "brief"] = "off"
    server_compact_threshold: int | None = None
    watchdog_seconds: float = 120.0
    """Server-side mode: how long a stream may be silent."""
    fallback_methods: Sequence[str] | None = None
    previews: bool = False
    ledger: bool = True
    """Whether every item also becomes a readable, redacted entry of the memory."""

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in _MODES:
            raise Invalid(f"mode is one of {', '.join(_MODES)}.", pointer="/mode")
        if any(method not in _METHODS for method in self.fallback_methods or ()):
            raise Invalid(f"fallback_methods are among {', '.join(_METHODS)}.", pointer="/fallback_methods")
        if self.inject_checkpoint not in ("off", "brief"):
            raise Invalid("inject_checkpoint is off or brief.", pointer="/inject_checkpoint")
        for name in ("trigger_input_tokens", "context_window", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise Invalid(f"{name} is at least 1.", pointer=f"/{name}")
        if self.server_compact_threshold is not None and self.server_compact_threshold < 1000:
            raise Invalid("server_compact_threshold is at least 1000.", pointer="/server_compact_threshold")
        if not 0 <= self.min_reduction < 1:
            raise Invalid("min_reduction is at least 0 and below 1.", pointer="/min_reduction")

    def mode_for(self, base_kind: str) -> str:
        """The mode on a kind of base."""
        return self.mode or ("trigger" if base_kind == "codex" else "standalone")

    def methods_for(self, base_kind: str, mode: str) -> list[str]:
        """The methods of a pass in the order they are tried."""
        allowed = ["trigger"] if base_kind == "codex" else list(_METHODS)
        wanted = allowed if self.fallback_methods is None else [m for m in self.fallback_methods if m in allowed]
        if mode in wanted:
            return [mode, *(method for method in wanted if method != mode)]
        if mode in allowed:
            return [mode, *wanted]
        return wanted

    def trigger(self, max_output_tokens: int | None = None) -> int:
        """Input tokens from which on the window is compacted."""
        if self.trigger_input_tokens is not None:
            return self.trigger_input_tokens
        return default_trigger(self.context_window, self.max_output_tokens or max_output_tokens)

    def server_threshold(self, max_output_tokens: int | None = None) -> int:
        """The `compact_threshold` of server-side mode; the API takes none below 1000."""
        return self.server_compact_threshold or max(1000, self.trigger(max_output_tokens))


@dataclass(frozen=True, slots=True)
class Base:
    """Where requests go: a base URL, normalised once."""

    url: str
    kind: BaseKind

    @classmethod
    def of(cls, url: str, kind: BaseKind | None = None) -> Base:
        """Strip the trailing slash; a ChatGPT backend ends in `/codex`, exactly once."""
        clean = str(url).rstrip("/")
        parts = urlsplit(clean)
        path = parts.path.rstrip("/")
        if kind is None:
            backend = path.endswith("/backend-api") or path.endswith("/backend-api/codex")
            kind = "codex" if backend else "api"
        if kind == "codex" and not path.endswith("/codex"):
            clean += "/codex"
        return cls(clean, kind)

    @property
    def create_url(self) -> str:
        """Where responses are created."""
        return f"{self.url}/responses"

    @property
    def compact_url(self) -> str:
        """Where a window is compacted; with the method, the key of the negative cache."""
        return f"{self.url}/responses/compact"


class NegativeCache:
    """What a provider cannot do, for the life of a session, shared by every scope that talks to it.

    A hint: losing it costs one refused request.
    """

    def __init__(self) -> None:
        self._missing: dict[tuple[str, str], int] = {}
        self._told: set[str] = set()

    def add(self, base: Base, method: str, http_status: int) -> None:
        """The method does not work here."""
        self._missing[(base.compact_url, method)] = http_status

    def status(self, base: Base, method: str) -> int | None:
        """The HTTP status that told so, or None."""
        return self._missing.get((base.compact_url, method))

    def first(self, base: Base, scope: str) -> bool:
        """Whether nobody was told yet that nothing is left to try here."""
        key = f"{base.compact_url} {scope}"
        if key in self._told:
            return False
        self._told.add(key)
        return True
