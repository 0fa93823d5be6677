"""The result of one check of the doctor."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Status = Literal["ok", "warn", "fail"]


class Check(Struct, frozen=True):
    """A check with its finding and, unless it is ok, the next step."""

    name: str
    status: Status
    found: str
    next_step: str = ""
