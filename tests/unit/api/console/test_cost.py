"""A page reads what it shows: ten times the entries, events and dreams, the same number of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.api.console.test_pages import Site

import reverie.store.snapshot as rows
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, Scope
from reverie.core.event import NewEvent
from reverie.dreams.report import save_report
from reverie.store.contract import WriteTx

PAGES = (
    "/",
    "/memories",
    "/memories?where=cold",
    "/dreams",
    "/audit",
    "/audit?type=memory.compacted",
    "/operate",
    "/forget",
)


def filled(folder: Path, entries: int, dreams: int) -> Site:
    """A host with so many entries, and so many dreams: one real one, and its report under other ids."""
    site = Site(folder)
    actor = site.host.system_actor("acme")
    for n in [*range(8), *range(8)]:
        site.put("acme", f"Berth {n} costs {n + 10} euros a day.")
    report = site.host.dreams.run(actor, DreamPlan(ref="notes", budget=4000))
    assert report is not None
    site.host.entries.put(actor, "notes", [Draft(f"Boat {n} is dry.") for n in range(entries)])

    def body(tx: WriteTx) -> None:
        for n in range(dreams):
            data = {"ref": "notes", "dream": f"d{n}"}
            seq = tx.append(NewEvent("memory.compacted", "DREAM", actor.id, data=data))
            save_report(tx, msgspec.structs.replace(report, id=f"d{n}", seq=seq), seq=seq)

    site.host.parts.store.write(Scope("acme"), body)
    return site


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Rows that become entries, events or documents."""
    seen: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        for name in ("to_entry", "to_event", "to_document"):
            made = getattr(rows, name)

            def counted(row: Any, *rest: Any, made: Any = made, name: str = name) -> Any:
                seen[name] += 1
                return made(row, *rest)

            patch.setattr(rows, name, counted)
        yield seen


def test_pages_read_no_more_from_a_larger_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for size in (100, 1000):
        site = filled(tmp_path / str(size), size, 120 + size // 2)
        browser = site.browser(site.key("acme"))
        found = {}
        for page in PAGES:
            with counting(monkeypatch) as seen:
                assert browser.get(page).status_code == 200
            found[page] = seen
        counts.append(found)
        site.host.close()
    for page in PAGES:
        few, many = counts[0][page], counts[1][page]
        assert few, page
        assert sum(many.values()) <= sum(few.values()) + 2, (page, few, many)
        assert many["to_entry"] <= 27
        assert many["to_document"] <= 140  # a plot shows the newest hundred dreams
