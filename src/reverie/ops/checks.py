"""One thing the doctor looked at."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Status = Literal["ok", "warn", "fail"]


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    status: Status
    found: str
    next_step: str = ""
