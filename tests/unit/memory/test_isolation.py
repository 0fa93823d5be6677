"""Two tenants with the same refs, ids, tags and keys: nothing of one shows in anything the other can ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Link, Scope
from reverie.core.errors import Invalid, NotFound, ReverieError
from reverie.core.event import NewEvent
from reverie.core.query import Filter
from reverie.host import Host
from reverie.store.conformance import HandClock
from reverie.store.contract import WriteTx
from reverie.store.sqlite import SqliteStore

ADA, EVE = Actor(tenant="acme", id="ada"), Actor(tenant="rival", id="ada")


def fill(host: Host, actor: Actor, word: str, number: int = 6) -> None:
    for n in range(number):
        draft = Draft(
            f"The {word} kettle is on shelf {n}.", id=f"e{n}", tags=("t",), subject="zoe", attributes={"w": word}
        )
        host.entries.put(actor, "notes", [draft], idempotency_key=f"k{n}")

    def more(tx: WriteTx) -> None:
        seq = tx.append(NewEvent("document.saved", "SAVE", "x"))
        tx.save("files", "readme", word.encode(), seq=seq)
        tx.link(Link("e0", "e1", "supports", word))

    host.parts.store.write(Scope(actor.tenant, "notes"), more)


def questions(host: Host, actor: Actor) -> dict[str, Any]:
    """Everything a tenant can ask, with ids and positions that the other one has as well."""
    first = host.reader.page(actor, "notes", limit=2)
    answers: dict[str, Any] = {
        "get": host.reader.get(actor, "notes", "e0"),
        "get as of": host.reader.get(actor, "notes", "e0", as_of=3),
        "list": host.reader.page(actor, "notes"),
        "page": first,
        "next page": host.reader.page(actor, "notes", limit=2, cursor=first.cursor),
        "oldest": host.reader.page(actor, "notes", oldest_first=True),
        "as of": host.reader.page(actor, "notes", as_of=2),
        "tag": host.reader.page(actor, "notes", Filter(tags=("t",))),
        "links": host.reader.links(actor, "notes", "e0"),
        "links in": host.reader.links(actor, "notes", "e1", incoming=True),
        "refs": host.reader.refs(actor),
        "snapshot": host.reader.snapshot(actor),
        "events": host.reader.events(actor),
        "stats": host.reader.stats(actor),
        "forget": host.forget.forget(actor, "zoe", preview=True),
        "verify": host.audit.verify(actor),
        "policy": host.rules.policy(actor),
        "document": host.parts.store.read(Scope(actor.tenant), lambda tx: tx.load("files", "readme")),
        "answer": host.parts.store.read(Scope(actor.tenant), lambda tx: tx.recall_answer("k0")),
    }
    for mode in ("hybrid", "words", "meaning"):
        result = host.search.search(actor, "notes", "kettle shelf 3", mode=mode, explain=True)  # type: ignore[arg-type]
        answers[f"search {mode}"] = result
    return answers


def test_nothing_a_neighbour_does_changes_any_answer(make_host: Callable[..., Host]) -> None:
    host = make_host(embedder=EMBEDDER)
    fill(host, ADA, "copper")
    before = questions(host, ADA)
    fill(host, EVE, "silver", 9)
    host.entries.put(EVE, "notes", [Draft("copper copper kettle shelf " * 9) for _ in range(100)])
    host.entries.put(EVE, "secret-ref", [Draft("hidden", subject="zoe")])
    host.lifecycle.pin(EVE, "notes", "e0")
    host.lifecycle.delete(EVE, "notes", "e1")
    host.lifecycle.erase(EVE, "notes", "e2")
    host.rules.set_policy(EVE, {"max_tags": 1})
    host.forget.forget(EVE, "zoe")
    after = questions(host, ADA)
    for name, answer in before.items():
        assert after[name] == answer, name  # scores included, to the last bit


def test_nothing_of_a_neighbour_is_in_any_answer(make_host: Callable[..., Host]) -> None:
    host = make_host(embedder=EMBEDDER)
    fill(host, EVE, "silver", 9)
    fill(host, ADA, "copper")
    told = str(questions(host, ADA)) + str(list(host.bundles.export(ADA)))
    assert "copper" in told
    assert "silver" not in told
    assert "'e8'" not in told
    for entry_id in ("e6", "e7", "e8"):
        with pytest.raises(NotFound):
            host.reader.get(ADA, "notes", entry_id, cold=True)
        with pytest.raises(NotFound):
            host.lifecycle.erase(ADA, "notes", entry_id)
    assert host.reader.get(EVE, "notes", "e8")


def test_a_refusal_is_the_same_whether_a_neighbour_has_it_or_nobody(make_host: Callable[..., Host]) -> None:
    host = make_host()
    fill(host, ADA, "copper", 1)
    fill(host, EVE, "silver", 9)

    def refusal(call: Callable[[], object]) -> tuple[str, str, str | None, str]:
        with pytest.raises(ReverieError) as caught:
            call()
        return (type(caught.value).__name__, caught.value.message, caught.value.pointer, str(caught.value.details))

    for verb in ("pin", "archive", "retract", "delete", "erase", "restore", "hold"):
        method = getattr(host.lifecycle, verb)
        assert refusal(lambda m=method: m(ADA, "notes", "e8")) == refusal(lambda m=method: m(ADA, "notes", "nobody"))
    assert refusal(lambda: host.reader.get(ADA, "notes", "e8")) == refusal(lambda: host.reader.get(ADA, "notes", "x"))
    head = host.reader.snapshot(EVE)
    assert head > host.reader.snapshot(ADA)
    with pytest.raises(Invalid):
        host.reader.page(ADA, "notes", as_of=head)  # a position only the neighbour has


def test_an_idempotency_key_belongs_to_one_tenant(make_host: Callable[..., Host]) -> None:
    host = make_host()
    mine = host.entries.put(ADA, "notes", [Draft("mine")], idempotency_key="k")[0]
    theirs = host.entries.put(EVE, "notes", [Draft("theirs")], idempotency_key="k")[0]
    assert not theirs.replayed
    assert host.reader.get(EVE, "notes", theirs.id).content == "theirs"
    with pytest.raises(NotFound):
        host.reader.get(EVE, "notes", mine.id)


def test_scores_do_not_depend_on_living_in_one_file(
    make_host: Callable[..., Host], make_store: Callable[..., SqliteStore], clock: HandClock
) -> None:
    alone = make_host(store=make_store("alone.db"), embedder=EMBEDDER)
    beside = make_host(store=make_store("beside.db"), embedder=EMBEDDER)
    fill(beside, EVE, "silver", 20)
    for host in (alone, beside):
        fill(host, ADA, "copper")
        fill(host, Actor(tenant="third", id="x"), "copper", 3)

    def scores(host: Host) -> list[tuple[str, float, dict[str, float]]]:
        found = host.search.search(ADA, "notes", "copper kettle on a shelf")
        return [(hit.entry.id, hit.score, dict(hit.signals)) for hit in found.hits]

    assert scores(alone) == scores(beside)
    assert scores(alone)


def test_quotas_are_counted_per_tenant(make_host: Callable[..., Host]) -> None:
    host = make_host()
    host.rules.set_policy(ADA, {"max_entries": 2})
    fill(host, EVE, "silver", 9)
    host.entries.put(ADA, "notes", [Draft("one"), Draft("two")])
    with pytest.raises(ReverieError) as caught:
        host.entries.put(ADA, "notes", [Draft("three")])
    assert caught.value.reason == "quota_exceeded"
    assert caught.value.details["entries"] == 2
