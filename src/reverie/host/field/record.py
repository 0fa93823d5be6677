"""RECORD."""

from __future__ import annotations

from typing import Any

from reverie.core.actor import Right
from reverie.host.field.call import Call, Operation


def _execute(call: Call) -> dict[str, Any]:
    raise call.error("UNSUPPORTED_OPERATION", "Not yet.")


RECORD = Operation("RECORD", level=0, execute=_execute, right=Right.WRITE)
