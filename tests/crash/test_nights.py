"""A memory far larger than any budget shrinks night after night, and no night spends more than it may."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

from tests.stores import on_one_store

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, Source
from reverie.core.query import Filter
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.store.conformance import HandClock

SOAK = bool(os.environ.get("REVERIE_SOAK"))
TOKENS = 1_000_000 if SOAK else 30_000
BUDGET = 60_000 if SOAK else 6_000
THINGS = [
    "pump",
    "valve",
    "belt",
    "crane",
    "gate",
    "oven",
    "mixer",
    "lamp",
    "panel",
    "boiler",
    "sensor",
    "hinge",
    "rotor",
    "filter",
    "nozzle",
]
DOINGS = [
    "was replaced",
    "failed the check",
    "runs again",
    "needs grease",
    "was ordered",
    "is out of stock",
    "leaks oil",
]


def notes(seed: int) -> list[Draft]:
    pick = random.Random(seed)
    return [
        Draft(
            content=f"The {pick.choice(THINGS)} {pick.randrange(900)} in hall {pick.randrange(40)} "
            f"{pick.choice(DOINGS)}; order {pick.randrange(10**6)} came to {pick.randrange(9000)} EUR.",
            source=Source(actor=pick.choice(("Ann", "Bob", "Cleo")), session=f"shift-{pick.randrange(9)}"),
        )
        for _ in range(500)
    ]


@on_one_store
def test_a_large_memory_shrinks_over_nights_within_its_budget(
    make_host: Callable[..., Host], ada: Actor, clock: HandClock
) -> None:
    host = make_host(tokens=TokenCounter())
    host.rules.set_policy(ada, {"dream_budget": BUDGET})
    count, seed = TokenCounter().count, 0
    before = 0
    while before < TOKENS:
        drafts = notes(seed)
        before += sum(count(draft.content) for draft in drafts)
        host.entries.put(ada, "plant", drafts)
        clock.advance(3_600_000)
        seed += 1
    nights, spent = 0, 0
    while host.reader.page(ada, "plant", Filter(kinds=("note",)), limit=2).items:
        report = host.dreams.run(ada, DreamPlan("plant", fit=True))
        assert report is not None, "a night without progress"
        assert report.tokens_used <= BUDGET
        assert report.gates["must_keep"]["missing"] == 0
        spent += report.tokens_used
        nights += 1
        clock.advance(86_400_000)
        host.lifecycle.retain(ada)
        assert nights <= TOKENS // BUDGET * 4
    left, cursor = 0, None
    while True:
        page = host.reader.page(ada, "plant", limit=1000, cursor=cursor)
        left += sum(count(entry.content) for entry in page.items)
        cursor = page.cursor
        if cursor is None:
            break
    assert left < before * 0.8  # most of these notes must be kept
    assert nights >= TOKENS // BUDGET // 2
    assert spent <= nights * BUDGET
    assert host.audit.verify(ada).ok
