"""Test seams. A switch decides whether a seam exists, never who may call it: every seam requires a key.

A seam that is switched off has no route, so its path answers 404 like any other path that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.settings import Settings


@dataclass(frozen=True, slots=True)
class Seams:
    """The enabled seams. Production mode refuses to start with any of them (`Settings.check`)."""

    compaction: bool = False
    """`POST /v1/test/memory/compact`: two switches, both of them."""
    others: bool = False
    """Everything under `/v1/host/sample/`, and the fixtures."""

    @property
    def memory(self) -> bool:
        """Seed, read and forget: what either group needs to show anything."""
        return self.compaction or self.others


def seams_of(settings: Settings) -> Seams:
    """The seams of this process."""
    return Seams(compaction=settings.compaction_seams, others=settings.openwop_seams)
