"""How many examples a property test tries."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

SOAK = bool(os.environ.get("REVERIE_SOAK"))


def examples(number: int, *, part: int = 3, **options: Any) -> Any:
    """All `number` examples under `make soak`; `make test` tries one of `part`, the same every time."""
    return settings(max_examples=number if SOAK else max(number // part, 1), deadline=None, **options)
