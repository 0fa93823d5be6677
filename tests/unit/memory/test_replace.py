"""put with `replaces`: one readable entry per tag, whoever writes; renew: another expiry."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft, EntryState
from reverie.core.errors import Held, Invalid, NotFound
from reverie.core.query import Filter
from reverie.host import Host
from reverie.store.conformance import HandClock

ANN = Actor(tenant="acme", id="key:ann", door="rest")
KEYED = "~key:7f000001"


def draft(text: str, **fields: object) -> Draft:
    return Draft(text, tags=(KEYED, "taste"), replaces=KEYED, **fields)  # type: ignore[arg-type]


def test_the_later_entry_replaces_the_earlier_in_one_transaction(make_host: Callable[..., Host]) -> None:
    host = make_host()
    first = host.entries.put(ANN, "notes", [draft("Tea.")])[0]
    host.entries.put(ANN, "notes", [Draft("Another note about tea.", tags=("taste",))])
    second = host.entries.put(ANN, "notes", [draft("Coffee.")])[0]
    held = host.reader.page(ANN, "notes", Filter(tags=(KEYED,))).items
    assert [entry.id for entry in held] == [second.id]
    assert len(host.reader.page(ANN, "notes").items) == 2
    assert host.reader.get(ANN, "notes", first.id, cold=True).state is EntryState.DELETED
    assert [(link.to_id, link.type) for link in host.reader.links(ANN, "notes", second.id)] == [
        (first.id, "supersedes")
    ]
    events = [(event.type, event.entry_id) for event in host.reader.events(ANN)]
    assert events[-2:] == [("memory.written", second.id), ("memory.superseded", first.id)]
    assert host.audit.verify(ANN).ok
    assert host.lifecycle.restore(ANN, "notes", first.id).content == "Tea."


def test_a_batch_with_the_same_key_leaves_its_last(make_host: Callable[..., Host]) -> None:
    host = make_host()
    host.entries.put(ANN, "notes", [draft("one"), draft("two"), draft("three")])
    assert [entry.content for entry in host.reader.page(ANN, "notes").items] == ["three"]


def test_callers_that_race_leave_exactly_one(make_host: Callable[..., Host]) -> None:
    host = make_host()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: host.entries.put(ANN, "notes", [draft(f"Number {n}.")]), range(24)))
    assert len(host.reader.page(ANN, "notes").items) == 1


def test_a_retry_replaces_nothing(make_host: Callable[..., Host]) -> None:
    host = make_host()
    first = host.entries.put(ANN, "notes", [draft("Tea.")], idempotency_key="k")[0]
    later = host.entries.put(ANN, "notes", [draft("Coffee.")])[0]
    again = host.entries.put(ANN, "notes", [draft("Tea.")], idempotency_key="k")[0]
    assert (again.id, again.replayed) == (first.id, True)
    assert [entry.id for entry in host.reader.page(ANN, "notes").items] == [later.id]


def test_a_held_entry_is_not_replaced_and_nothing_is_stored(make_host: Callable[..., Host]) -> None:
    host = make_host()
    first = host.entries.put(ANN, "notes", [draft("Tea.")])[0]
    host.lifecycle.hold(ANN, "notes", first.id)
    with pytest.raises(Held):
        host.entries.put(ANN, "notes", [draft("Coffee.")])
    assert [entry.content for entry in host.reader.page(ANN, "notes").items] == ["Tea."]


def test_the_replaced_tag_must_be_its_own_and_no_secret(make_host: Callable[..., Host]) -> None:
    host = make_host()
    with pytest.raises(Invalid, match="own tags"):
        host.entries.put(ANN, "notes", [Draft("Tea.", replaces="other")])
    secret = "AKIA" + "Q3EGRT5XJ2KQ7WZL"
    with pytest.raises(Invalid) as refused:
        host.entries.put(ANN, "notes", [Draft("Tea.", tags=(secret,), replaces=secret)])
    assert refused.value.pointer == "/replaces"
    assert secret not in str(refused.value)


def test_marks_are_filtered_by_and_not_found_by_their_words(make_host: Callable[..., Host]) -> None:
    host = make_host()
    host.entries.put(ANN, "notes", [Draft("Tea.", tags=("~key:zebra", "taste"))])
    assert host.search.search(ANN, "notes", "zebra", mode="words").hits == []
    assert len(host.search.search(ANN, "notes", "taste", mode="words").hits) == 1
    assert len(host.reader.page(ANN, "notes", Filter(tags=("~key:zebra",))).items) == 1


def test_an_expiry_is_moved_with_its_event(make_host: Callable[..., Host], clock: HandClock) -> None:
    host = make_host()
    soon = clock.now() + 1000
    entry_id = host.entries.put(ANN, "notes", [Draft("Tea.", expires_at=soon)])[0].id
    host.lifecycle.renew(ANN, "notes", entry_id, soon + 5000)
    clock.advance(2000)
    assert host.reader.get(ANN, "notes", entry_id).expires_at == soon + 5000
    assert host.reader.events(ANN)[-1].type == "memory.renewed"
    with pytest.raises(Invalid, match="passed"):
        host.lifecycle.renew(ANN, "notes", entry_id, clock.now())
    clock.advance(5000)
    with pytest.raises(NotFound):
        host.lifecycle.renew(ANN, "notes", entry_id, clock.now() + 1000)


def _text(host: Host, query: str) -> list[str]:
    return [hit.text for hit in host.search.search(ANN, "notes", query, include="superseded")]


def test_a_superseded_entry_that_expired_follows_no_hit(make_host: Callable[..., Host], clock: HandClock) -> None:
    host = make_host()
    old = host.entries.put(ANN, "notes", [Draft("The gate code is heron.", expires_at=clock.now() + 1000)])[0].id
    host.entries.supersede(ANN, "notes", old, Draft("The gate code is otter."))
    assert _text(host, "gate code") == ["The gate code is otter.", "The gate code is heron."]
    clock.advance(2000)
    assert _text(host, "gate code") == ["The gate code is otter."]


def test_a_superseded_entry_that_was_deleted_later_follows_no_hit(make_host: Callable[..., Host]) -> None:
    host = make_host()
    old = host.entries.put(ANN, "notes", [Draft("The gate code is heron.")])[0].id
    host.entries.supersede(ANN, "notes", old, Draft("The gate code is otter."))
    host.lifecycle.restore(ANN, "notes", old)
    host.lifecycle.delete(ANN, "notes", old)
    assert _text(host, "gate code") == ["The gate code is otter."]
