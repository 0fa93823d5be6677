"""Long work pauses between its steps, for the requests of other tenants, and never inside a write transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.core.pause import PAUSE, Pauses
from reverie.host import Host

WORK: dict[str, Callable[[Host, Actor, list[bytes]], Any]] = {
    "export": lambda host, ada, _: list(host.bundles.export(ada)),
    "proof": lambda host, ada, _: host.audit.verify(ada),
    "scan": lambda host, ada, _: host.rescan.scan(ada),
    "import": lambda host, ada, lines: host.bundles.take(ada, lines, ref="again"),
}


@contextmanager
def counted(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """The pauses that were made: whether each was inside a write."""
    pauses: list[bool] = []
    writing = False
    write = host.parts.store.write

    def watched(scope: Any, body: Any, *how: Any, **more: Any) -> Any:
        def inside(tx: Any) -> Any:
            nonlocal writing
            writing = True
            try:
                return body(tx)
            finally:
                writing = False

        inside.__dict__.update(getattr(body, "__dict__", {}))
        return write(scope, inside, *how, **more)

    monkeypatch.setattr(host.parts.store, "write", watched)
    token = PAUSE.set(Pauses(lambda: pauses.append(writing)))
    try:
        yield pauses
    finally:
        PAUSE.reset(token)


@pytest.mark.parametrize("name", WORK)
def test_long_work_pauses_at_every_entry(
    name: str, make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    host.entries.put(ada, "notes", [Draft(f"Pump {number} runs at {number} bar.") for number in range(30)])
    lines = list(host.bundles.export(ada))
    with counted(host, monkeypatch) as pauses:
        WORK[name](host, ada, lines)
    assert len(pauses) >= 30
    assert not any(pauses)


def test_a_batch_pauses_between_its_entries_and_a_single_entry_never(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    with counted(host, monkeypatch) as pauses:
        host.entries.put(ada, "notes", [Draft("Pump 1 runs at 1 bar.", tags=("pumps",), subject="pump 1")])
        assert pauses == []
        host.entries.put(ada, "notes", [Draft(f"Pump {number} runs at {number} bar.") for number in range(30)])
    assert len(pauses) >= 29
    assert not any(pauses)
