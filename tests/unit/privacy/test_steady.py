"""What is stored and forgotten again leaves nothing behind that later operations pay for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.counting import Counted

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.store.contract import Store

SUBJECTS = 6
ROUNDS = 60


def test_no_operation_costs_more_after_many_forgets(
    make_host: Callable[..., Host], make_store: Callable[..., Store], ada: Actor
) -> None:
    """The memory stays as large as it is: every round stores about a new subject and forgets the oldest."""
    counted = Counted(make_store())
    host = make_host(store=counted)

    def put(number: int) -> object:
        texts = [f"Customer {number} asked on day {number * 4 + day} for pump {day}." for day in range(4)]
        return host.entries.put(ada, "notes", [Draft(content=text, subject=f"customer-{number}") for text in texts])

    def measured(work: Callable[[], object]) -> tuple[int, int, int]:
        before = counted.transactions, counted.calls, counted.rows
        work()
        return (
            counted.transactions - before[0],
            counted.calls - before[1],
            counted.rows - before[2],
        )

    def costs(number: int) -> dict[str, tuple[int, int, int]]:
        return {
            "put": measured(lambda: put(number)),
            "forget": measured(lambda: host.forget.forget(ada, f"customer-{number - SUBJECTS}")),
            "search": measured(lambda: host.search.search(ada, "notes", "which pump did the customer ask for")),
            "list": measured(lambda: host.reader.page(ada, "notes", limit=50)),
        }

    for number in range(SUBJECTS):
        put(number)
    rounds: list[dict[str, Any]] = [costs(number) for number in range(SUBJECTS, SUBJECTS + ROUNDS)]
    assert host.reader.stats(ada)["entries"] == SUBJECTS * 4
    early, late = rounds[2], rounds[-1]
    assert late == early
