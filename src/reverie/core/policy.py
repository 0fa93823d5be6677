"""TenantPolicy: the operator's settings for one tenant. Plain data with defaults, stored as a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from reverie.core.clock import MS_PER_DAY
from reverie.core.errors import Invalid

NIGHT = 3
"""The hour of the nightly dream."""
LIGHT_BYTES = 8000
"""A tenant with fewer bytes of text has no memory of more than `SMALL_MEMORY` tokens."""
SMALL_MEMORY = 4000
"""Hot tokens up to which a dream removes only duplicates, chatter and outdated statements."""
MOST_SEARCHES = 200
"""The largest value of `recorded_searches`."""
CHOICES = {
    "nightly": ("on", "off"),
    "store_secrets": ("rewrite", "refuse"),
    "model_fallback": ("extractive", "refuse"),
}
"""Policies that have one of a few values."""


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """Limits, retention and quotas of one tenant. There is no setting that turns redaction or the log off."""

    max_entry_bytes: int = 65_536
    max_tags: int = 64
    max_attribute_bytes: int = 65_536
    max_entries: int = 10_000_000
    max_bytes: int = 100 * 2**30
    undo_window_ms: int = 7 * MS_PER_DAY
    """Time in which a deleted entry can be restored; then its text is destroyed."""
    cold_retention_ms: int | None = None
    """Time that the sources of dreams stay in cold storage before their text is destroyed; unlimited when not set."""
    idempotency_ms: int = MS_PER_DAY
    """Time in which a retry with the same key is recognised."""
    default_ttl_ms: int | None = None
    """Expiry of entries that are written without one; none when not set."""
    zone: str = "UTC"
    """The tenant's time zone, in which schedules run."""
    dream_budget: int = 8000
    """The most tokens, input and output together, that one dream may use; also the default budget."""
    hot_target: str = "50%"
    """Target size of hot memory after a dream, as a share of its input or in tokens (`8000`). Must-keep statements stay
    hot regardless of the target, and a memory below 4,000 hot tokens loses only duplicates and chatter.
    """
    nightly: str = "on"
    """`on` or `off`: whether memories above 4,000 hot tokens are dreamt at 03:00 in the tenant's zone."""
    dream_distiller: str = "extractive"
    """`extractive`, or `llm` where the host has a model."""
    dream_trust: int = 0
    """Entries of less trust than this stay out of dreams."""
    archive_retention_ms: int = 30 * MS_PER_DAY
    """Time that the archive of a dream is kept; the dream itself stays."""
    recorded_searches: int = 20
    """Number of recent searches of a memory that are kept, sealed, for dreams to replay; at most 200, and 0: none."""
    model_tokens_per_day: int = 1_000_000
    model_calls_per_day: int = 1000
    model_cents_per_day: int = 1000
    model_seconds_per_dream: int = 300
    model_fallback: str = "extractive"
    """Fallback when a model fails or its limit is used up: `extractive`, or `refuse`."""
    max_memory_bytes: int = 102_400
    """Largest file of a memory store; instead of `max_entry_bytes`, for entries of kind `file`."""
    max_memories_per_store: int = 2000
    max_memory_stores: int = 10_000
    memory_version_retention_ms: int = 30 * MS_PER_DAY
    """Time that replaced and deleted versions of files are kept; the newest ten of an existing file are always kept."""
    store_secrets: str = "rewrite"
    """A secret in a file of a memory store: `rewrite` replaces it, `refuse` refuses the write."""
    workspace_id: str = ""
    """The tenant's id in protocols that have workspaces; empty: `wrkspc_` and the tenant's name."""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    def changed(self, changes: Mapping[str, Any]) -> TenantPolicy:
        """A copy with `changes`; an unknown name or a wrong type is refused."""
        changes = _renamed(changes)
        values = self.document()
        kinds = {f.name: f.type for f in fields(self)}
        for name, value in changes.items():
            if name not in values:
                raise Invalid(f"There is no policy '{name[:64]}'.", details={"known": sorted(values)})
            wanted = str if kinds[name] == "str" else int
            optional = "None" in str(kinds[name])
            if not (value is None and optional):
                if not isinstance(value, wanted) or isinstance(value, bool):
                    noun = "a text" if wanted is str else "a whole number"
                    raise Invalid(f"The policy '{name}' is {noun}.", pointer=f"/{name}")
                if isinstance(value, int) and value < 0:
                    raise Invalid(f"The policy '{name}' cannot be negative.", pointer=f"/{name}")
            allowed = CHOICES.get(name)
            if allowed is not None and value not in allowed:
                raise Invalid(f"The policy '{name}' is one of {', '.join(allowed)}.", pointer=f"/{name}")
            values[name] = value
        share_of(values["hot_target"])
        if values["recorded_searches"] > MOST_SEARCHES:
            raise Invalid(f"recorded_searches is 0 to {MOST_SEARCHES}.", pointer="/recorded_searches")
        return TenantPolicy(**values)

    def hot_share(self, hot_tokens: int | None) -> int:
        """Return the share of its sources, per mille, that a dream of a memory with this many hot tokens may keep.

        None: the target share, however small the memory; 50 % where the target is a number of tokens.
        """
        if hot_tokens is None:
            return (share_of(self.hot_target)[0] or 50) * 10
        return min(1000, self.hot_goal(hot_tokens) * 1000 // max(hot_tokens, 1))

    def hot_goal(self, hot_tokens: int) -> int:
        """The target size, in tokens, of a memory with this many hot tokens."""
        percent, tokens = share_of(self.hot_target)
        return tokens if percent is None else max(SMALL_MEMORY, hot_tokens * percent // 100)

    def hot_rest(self, hot_tokens: int | None) -> int:
        """The share, per mille, that always stays of statements that are neither must-keep nor chatter.

        The least informative are dropped first. A target in per cent drops 1.2 times the share of them that it asks to
        drop of everything, however much must be kept: so a dream costs few answers even where most must be kept. A
        target in tokens has no such floor.
        """
        percent, _ = share_of(self.hot_target)
        return 0 if percent is None else max(0, 1000 - (1000 - self.hot_share(hot_tokens)) * 12 // 10)

    def local(self, now: int) -> datetime:
        """An instant in the tenant's zone."""
        try:
            zone: tzinfo = ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            zone = UTC
        return datetime.fromtimestamp(now / 1000, zone)

    def next_night(self, now: int) -> int:
        """The first 03:00 in the tenant's zone after an instant."""
        local = self.local(now)
        night = local.replace(hour=NIGHT, minute=0, second=0, microsecond=0)
        if night <= local:
            night = (night + timedelta(days=1)).replace(hour=NIGHT)
        return int(night.timestamp() * 1000)

    def is_crowded(self, hot_tokens: int | None) -> bool:
        """Whether the target is a number of tokens and the memory is above it."""
        percent, tokens = share_of(self.hot_target)
        return percent is None and hot_tokens is not None and hot_tokens > tokens


def share_of(target: str) -> tuple[int | None, int]:
    """A `hot_target` as (per cent, 0) or (None, tokens). Raises Invalid."""
    number = target.strip().removesuffix("%").strip()
    if not number.isdecimal() or len(number) > 10 or not 0 < int(number) <= (100 if "%" in target else 10**9):
        raise Invalid("hot_target is a share such as 50% or a number of tokens such as 8000.", pointer="/hot_target")
    return (int(number), 0) if "%" in target else (None, int(number))


def _renamed(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """`dream_percent`, the name of `hot_target` before 0.2, is still understood."""
    if "dream_percent" not in changes:
        return changes
    kept = {name: value for name, value in changes.items() if name != "dream_percent"}
    return {"hot_target": f"{changes['dream_percent']}%", **kept}
