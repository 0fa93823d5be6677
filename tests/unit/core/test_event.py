"""Events: whatever a damaged row holds, an event is sound or it is not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reverie.core.event import NewEvent, chain, genesis

EVENT = chain(
    NewEvent("memory.written", "PUT", "ada", data={"ref": "notes"}), seq=1, epoch=1, at=0, prev_hash=genesis("acme")
)


def nested(depth: int) -> Any:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    return data


def test_an_event_is_sound_as_it_was_chained() -> None:
    assert EVENT.sound()
    assert not replace(EVENT, actor="eve").sound()


@pytest.mark.parametrize(
    "changes",
    [
        {"data": {"deep": nested(980)}},
        {"data": {"x": float("nan")}},
        {"data": {"x": 2**60}},
        {"at": 10**18},
        {"hash": 5},
    ],
)
def test_a_damaged_event_is_not_sound_and_raises_nothing(changes: dict[str, Any]) -> None:
    assert not replace(EVENT, **changes).sound()
