"""TenantPolicy: what an operator may decide per tenant. Plain data, stored as a document, with good defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from reverie.core.clock import MS_PER_DAY
from reverie.core.errors import Invalid


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """Limits, retention and quotas of one tenant. There is no setting that turns redaction or the log off."""

    max_entry_bytes: int = 65_536
    max_tags: int = 64
    max_attribute_bytes: int = 16_384
    max_entries: int = 10_000_000
    max_bytes: int = 100 * 2**30
    undo_window_ms: int = 7 * MS_PER_DAY
    """How long retired text rests in cold storage before it is destroyed."""
    idempotency_ms: int = MS_PER_DAY
    """How long a retry with the same key is recognised."""
    default_ttl_ms: int | None = None
    """When set, entries without an expiry get this one."""
    zone: str = "UTC"
    """The tenant's time zone: schedules are meant in it."""
    dream_budget: int = 8000
    """The most tokens, input and output together, that one dream may use; the default when none is asked."""
    dream_percent: int = 30
    """How much of the input a dream may keep."""
    dream_distiller: str = "extractive"
    """`extractive`, or `llm` where the host has a model."""
    dream_trust: int = 0
    """Entries of less trust than this stay out of dreams."""
    archive_retention_ms: int = 30 * MS_PER_DAY
    """How long the archive of a dream is kept; the dream itself stays."""
    model_tokens_per_day: int = 1_000_000
    model_calls_per_day: int = 1000
    model_cents_per_day: int = 1000
    model_seconds_per_dream: int = 300
    model_fallback: str = "extractive"
    """When a model fails or its limit is used up: `extractive`, or `refuse`."""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    def changed(self, changes: Mapping[str, Any]) -> TenantPolicy:
        """A copy with `changes`; an unknown name or a wrong type is refused."""
        values = self.document()
        kinds = {f.name: f.type for f in fields(self)}
        for name, value in changes.items():
            if name not in values:
                raise Invalid(f"There is no policy '{name[:64]}'.", details={"known": sorted(values)})
            wanted = str if kinds[name] == "str" else int
            optional = "None" in str(kinds[name])
            if not (value is None and optional):
                if not isinstance(value, wanted) or isinstance(value, bool):
                    raise Invalid(f"The policy '{name}' takes {wanted.__name__}.", pointer=f"/{name}")
                if isinstance(value, int) and value < 0:
                    raise Invalid(f"The policy '{name}' cannot be negative.", pointer=f"/{name}")
            values[name] = value
        return TenantPolicy(**values)
