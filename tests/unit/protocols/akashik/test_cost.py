"""Cost of RECORD, ATTUNE and HANDOFF: rows and writes do not follow the size of the Field, and answers stay exact."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from tests.conftest import EMBEDDER
from tests.counting import Counted

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope, Source
from reverie.core.event import NewEvent
from reverie.distil.contradictions import Contradiction
from reverie.host import Host
from reverie.protocols.akashik import conflicts
from reverie.protocols.akashik.errors import FieldError
from reverie.protocols.akashik.field import Field
from reverie.protocols.akashik.notify import Feed
from reverie.protocols.akashik.operations import attune, detect
from reverie.protocols.akashik.operations.subscriptions import find
from reverie.providers.tokenizer import TokenCounter
from reverie.store import contract
from reverie.store.contract import Store, WriteTx

MakeHost = Callable[..., Host]
MakeStore = Callable[..., Store]
ACTOR = Actor(tenant="team", id="local:test")
_IDS = count(1)
_WORDS = [f"{head}{tail}" for head in ("bar", "cel", "dim", "fol") for tail in ("on", "et", "us", "ip", "or")]
_INDEXED = ("find", "match", "nearest", "cosines", "known", "scan", "count", "documents")


class Watched(Counted):
    """Counts, and remembers which verbs each write used. `meanwhile` runs once, before the next write."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.writes: list[set[str]] = []
        self.meanwhile: Callable[[], object] | None = None
        self.reading = 0

    def read(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
        self.reading += 1
        try:
            return super().read(scope, body)
        finally:
            self.reading -= 1

    def write(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        used: set[str] = set()
        self.writes.append(used)
        return super().write(scope, lambda tx: body(_Named(tx, used)))


class _Named:
    def __init__(self, tx: Any, used: set[str]) -> None:
        object.__setattr__(self, "_tx", tx)
        object.__setattr__(self, "_used", used)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tx, name, value)

    def __getattr__(self, name: str) -> Any:
        self._used.add(name)
        return getattr(self._tx, name)


class Placed:
    """An embedder that remembers, for each call, how many snapshots were open."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.name, self.dimensions = EMBEDDER.name, EMBEDDER.dimensions
        self.open: list[int] = []

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.open.append(self._watched.reading)
        return EMBEDDER.embed(texts)


def send(host: Host, operation: str, payload: dict[str, Any], agent: str = "me", session: str | None = None) -> Any:
    envelope = {
        "protocol": "akashik",
        "version": "0.1.0",
        "id": f"m{next(_IDS)}",
        "operation": operation,
        "agent_id": agent,
        "session_id": session,
        "epoch": 0,
        "payload": payload,
    }
    return host.field.perform(ACTOR, envelope)


def unit(content: str, **more: Any) -> dict[str, Any]:
    sure = {"score": 0.8, "reasoning": "seen"}
    return {"type": "finding", "content": content, "intent": {"purpose": "test"}, "confidence": sure, **more}


def field_of(make_host: MakeHost, store: Store, size: int) -> tuple[Host, Watched]:
    """A Field of so many units of other agents, and two agents."""
    watched = Watched(store)
    host = make_host(store=watched, tokens=TokenCounter(), embedder=EMBEDDER)
    for agent in ("me", "mate"):
        send(host, "REGISTER", {"id": agent, "role": "builder"}, agent)
    grow(host, size)
    return host, watched


def grow(host: Host, more: int) -> None:
    """Units of other agents."""
    rnd = random.Random(5)
    drafts = [
        Draft(
            f"Sluice {rnd.choice(_WORDS)} {rnd.choice(_WORDS)} {next(_IDS):x}",
            kind="finding",
            source=Source(actor=f"agent{n % 5}", role="builder"),
            attributes={"mode": "committed", "relations": 0},
        )
        for n in range(more)
    ]
    for start in range(0, more, 200):
        host.entries.put(ACTOR, host.parts.field.ref, drafts[start : start + 200])


def cost(watched: Watched, act: Callable[[], object]) -> tuple[int, int]:
    act()  # what is cached is cached
    before = watched.rows, watched.transactions
    act()
    return watched.rows - before[0], watched.transactions - before[1]


@pytest.mark.parametrize(
    ("operation", "payload"),
    [
        ("RECORD", {}),
        ("ATTUNE", {"scope": {"role": "builder", "max_units": 5}}),
        ("ATTUNE", {"scope": {"role": "builder", "max_units": 5}, "context_hint": "sluice baron celet"}),
    ],
)
def test_rows_and_transactions_do_not_follow_the_size(
    make_host: MakeHost, make_store: MakeStore, operation: str, payload: dict[str, Any]
) -> None:
    host, watched = field_of(make_host, make_store(), 500)

    def act() -> object:
        return send(host, operation, payload or unit(f"A new weir {next(_IDS):x} was built"))

    costs = []
    for more in (0, 1000):
        grow(host, more)
        costs.append(cost(watched, act))
        assert not watched.writes[-1] & set(_INDEXED) - {"documents"}, "a write searched or scanned"
    (small, few), (large, many) = costs
    assert few == many
    assert large <= small + 60  # how many of the best by words and by meaning are the same unit differs


def test_a_large_field_says_exactly_how_many_units_there_are(make_host: MakeHost, make_store: MakeStore) -> None:
    host, _ = field_of(make_host, make_store(), 450)
    send(host, "RECORD", unit("My own sluice"))
    send(host, "RECORD", unit("A draft of mine", mode="draft"))
    send(host, "RECORD", unit("A draft of another", mode="draft"), "mate")
    send(host, "RECORD", unit("A note of the mate"), "mate")
    send(host, "RECORD", unit("In a session"), "mate", "room")
    seen = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5}})
    assert seen["context_budget"]["units_available"] == 451
    assert len(seen["record"]) == 5
    own = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5, "include_own": True}})
    assert own["context_budget"]["units_available"] == 453
    near = {"role": "builder", "max_units": 5, "relevance_threshold": 0.9}
    few = send(host, "ATTUNE", {"scope": near, "context_hint": "sluice"})
    assert few["context_budget"]["units_available"] == 451  # admitted, scored or not
    assert all(item["relevance_score"] >= 0.9 for item in few["record"])
    since = {"role": "builder", "max_units": 5, "since_epoch": seen["epoch"]}
    send(host, "RECORD", unit("Later"), "mate")
    late = send(host, "ATTUNE", {"scope": since})
    assert late["context_budget"]["units_available"] == 1
    room = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5}}, "me", "room")
    assert room["context_budget"]["units_available"] == 1


def test_a_query_scores_two_hundred_units_where_there_are_so_many(
    make_host: MakeHost, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = field_of(make_host, make_store(), 450)
    scored: list[int] = []
    plain = attune.rank_units

    def counted(entries: Any, *rest: Any) -> Any:
        scored.append(len(entries))
        return plain(entries, *rest)

    monkeypatch.setattr(attune, "rank_units", counted)
    newest = next(_IDS) - 1  # among the newest, so that what is found is among them too
    hint = f"sluice {newest:x} {newest - 1:x}"
    send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5}, "context_hint": hint})
    assert scored[0] >= 200


def test_a_query_scores_ninety_older_units_that_have_its_words(
    make_host: MakeHost, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = field_of(make_host, make_store(), 0)
    source = Source(actor="agent0", role="builder")
    kept = {"mode": "committed", "relations": 0}
    lanterns = [Draft(f"Lantern {n} of the weir", kind="finding", source=source, attributes=kept) for n in range(90)]
    host.entries.put(ACTOR, host.parts.field.ref, lanterns)
    grow(host, 450)
    scored: list[Any] = []
    plain = attune.rank_units
    monkeypatch.setattr(attune, "rank_units", lambda entries, *rest: scored.extend(entries) or plain(entries, *rest))
    send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 20}, "context_hint": "lantern of the weir"})
    assert sum("Lantern" in entry.content for entry in scored) == 90


def test_a_session_with_rules_counts_what_the_agent_sees(make_host: MakeHost, make_store: MakeStore) -> None:
    host, _ = field_of(make_host, make_store(), 0)
    policy = {"role_rules": [{"role": "builder", "deny_types": ["decision"]}]}
    send(host, "SESSION", {"action": "create", "session": {"id": "s", "policy": policy, "members": ["me", "mate"]}})
    for n in range(230):
        kind = "decision" if n % 3 == 0 else "finding"
        send(host, "RECORD", unit(f"Sluice {n:x}", type=kind), "mate", "s")
    seen = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 50}}, "me", "s")
    assert seen["context_budget"]["units_available"] == sum(n % 3 != 0 for n in range(230))
    assert {item["memory_unit"]["type"] for item in seen["record"]} == {"finding"}


def _across(host: Host) -> None:
    """A session from which agents see other sessions, one they are not members of, and one with a rule."""
    rule = {"role_rules": [{"role": "builder", "deny_types": ["decision", "observation"]}]}
    for name, members, policy in (
        ("wide", ["me", "mate"], {"cross_session": True}),
        ("closed", [], {}),
        ("ruled", ["me", "mate"], rule),
    ):
        send(host, "REGISTER", {"id": f"of {name}", "role": "owner"}, f"of {name}")
        session = {"id": name, "members": members, "policy": policy}
        send(host, "SESSION", {"action": "create", "session": session}, f"of {name}")


def _units_in(host: Host, session: str | None, number: int, kind: str) -> None:
    drafts = [
        Draft(
            f"Sluice {next(_IDS):x} stands.",
            kind=kind,
            source=Source(actor="agent0", role="builder", session=session),
            attributes={"mode": "committed", "relations": 0},
        )
        for _ in range(number)
    ]
    host.entries.put(ACTOR, host.parts.field.ref, drafts)


@pytest.mark.parametrize(
    ("session", "kind"),
    [(None, "finding"), ("open", "note"), ("closed", "finding"), ("ruled", "decision"), ("ruled", "note")],
)
def test_across_sessions_rows_do_not_follow_the_size(
    make_host: MakeHost, make_store: MakeStore, session: str | None, kind: str
) -> None:
    host, watched = field_of(make_host, make_store(), 300)
    _across(host)

    def act() -> object:
        return send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5}}, "me", "wide")

    costs = []
    for more in (0, 600):
        _units_in(host, session, more, kind) if more else None
        costs.append(cost(watched, act))
    (small, few), (large, many) = costs
    assert few == many
    assert large <= small + 10


def test_across_sessions_an_agent_counts_what_it_sees(make_host: MakeHost, make_store: MakeStore) -> None:
    host, _ = field_of(make_host, make_store(), 300)
    _across(host)
    for session, kind in (("closed", "finding"), ("ruled", "decision"), ("ruled", "note"), ("ruled", "observation")):
        _units_in(host, session, 20, kind)
    _units_in(host, "ruled", 3, "finding")
    _units_in(host, "open", 4, "note")
    _units_in(host, "wide", 5, "decision")
    seen = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 400}}, "me", "wide")
    assert seen["context_budget"]["units_available"] == len(seen["record"]) == 312
    few = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5}}, "me", "wide")
    assert few["context_budget"]["units_available"] == 312
    told = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5}, "context_hint": "sluice"}, "me", "wide")
    assert told["context_budget"]["units_available"] == 312
    assert {item["memory_unit"]["source"]["session_id"] for item in seen["record"]} == {None, "ruled", "open", "wide"}


def test_what_is_committed_between_snapshot_and_write_is_in_the_answer(
    make_host: MakeHost, make_store: MakeStore
) -> None:
    host, watched = field_of(make_host, make_store(), 300)
    old = send(host, "RECORD", unit("The weir baron gate is open"), "mate")["memory_unit_id"]
    new: list[str] = []

    def meanwhile() -> None:
        made = send(host, "RECORD", unit("The weir baron gate leaks", retracts=[old]), "mate")
        new.append(made["memory_unit_id"])

    watched.meanwhile = meanwhile
    seen = send(host, "ATTUNE", {"scope": {"role": "builder", "max_units": 5}, "context_hint": "weir baron gate"})
    ids = [item["memory_unit"]["id"] for item in seen["record"]]
    assert new[0] in ids
    assert old not in ids
    assert seen["context_budget"]["units_available"] == 301


def test_a_contradiction_recorded_meanwhile_is_found(make_host: MakeHost, make_store: MakeStore) -> None:
    host, watched = field_of(make_host, make_store(), 20)
    watched.meanwhile = lambda: send(host, "RECORD", unit("The pump runs at 40 bar."), "mate")
    answer = send(host, "RECORD", unit("The pump runs at 55 bar."))
    assert len(answer["conflicts_detected"]) == 1


def test_texts_are_compared_outside_the_write(
    make_host: MakeHost, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, watched = field_of(make_host, make_store(), 20)
    for n in range(8):
        send(host, "RECORD", unit(f"The pump of hall {n} runs at 40 bar."), "mate")
    compared: list[int] = []
    plain = conflicts.contradiction

    def counted(first: str, second: str) -> Contradiction | None:
        compared.append(len(watched.writes))
        return plain(first, second)

    monkeypatch.setattr(conflicts, "contradiction", counted)
    answer = send(host, "RECORD", unit("The pump of hall 3 runs at 55 bar."))
    assert len(answer["conflicts_detected"]) == 1
    assert compared
    assert set(compared) == {len(watched.writes) - 1}


def test_a_scan_ends_in_time_however_many_units_share_a_word(
    make_host: MakeHost, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = field_of(make_host, make_store(), 0)
    host.entries.put(ACTOR, host.parts.field.ref, [Draft(f"The sluice {n}", kind="finding") for n in range(100)])
    compared: list[str] = []
    monkeypatch.setattr(detect, "contradiction", lambda first, _: compared.append(first))
    monkeypatch.setattr(detect, "_SECONDS", 0.0)
    answer = send(host, "DETECT", {"mode": "scan"})
    assert answer["conflict_detection"] == "deferred"
    assert len(compared) < 100


def test_notifications_embed_the_interests_of_an_agent_once(make_host: MakeHost, make_store: MakeStore) -> None:
    watched = Watched(make_store())
    embedder = Placed(watched)
    host = make_host(store=watched, embedder=embedder)
    send(host, "REGISTER", {"id": "me", "role": "builder", "interests": ["weirs"]})
    send(host, "SUBSCRIBE", {"action": "subscribe", "subscription": {"id": "s", "events": ["memory.recorded"]}})
    for n in range(5):
        send(host, "RECORD", unit(f"Weir {n} was built"))
    services = host.use(Field).services
    feed = Feed(services, ACTOR.tenant, find(services, ACTOR, "me", "s"), None)
    embedder.open.clear()
    told, _ = feed.tell(host.reader.events(ACTOR, types=("memory.recorded",)))
    assert len(told) == 5
    assert all(item["relevance_score"] > 0 for item in told)
    assert embedder.open == [0]


def _objections(host: Host, number: int) -> list[tuple[str, str]]:
    """Units of which each contradicts one of its own, with the conflicts."""
    made = []
    for _ in range(number):
        first = send(host, "RECORD", unit(f"Weir {next(_IDS):x}"))["memory_unit_id"]
        against = {"relations": [{"type": "contradicts", "target_id": first}]}
        answer = send(host, "RECORD", unit(f"No weir {next(_IDS):x}", **against), "mate")
        made.append((first, answer["conflicts_detected"][0]))
    return made


def _merge(host: Host, conflict: str) -> dict[str, Any]:
    resolution = {"rationale": "looked again"}
    payload = {"conflict_id": conflict, "strategy": "last_write_wins", "resolution": resolution}
    return dict(send(host, "MERGE", payload, "boss"))


def test_a_merge_reads_no_conflict_but_those_of_its_units(make_host: MakeHost, make_store: MakeStore) -> None:
    host, watched = field_of(make_host, make_store(), 0)
    send(host, "REGISTER", {"id": "boss", "role": "r", "authority_level": 10}, "boss")
    costs = []
    for more in (3, 40):
        found = _objections(host, more)
        _merge(host, found[0][1])
        before = watched.rows
        _merge(host, found[1][1])
        costs.append(watched.rows - before)
    assert costs[0] == costs[1]
    assert len(host.use(Field).conflicts(ACTOR)["conflicts"]) == 39


def test_a_merge_knows_the_conflicts_that_an_older_version_opened(make_host: MakeHost, make_store: MakeStore) -> None:
    host, watched = field_of(make_host, make_store(), 0)
    send(host, "REGISTER", {"id": "boss", "role": "r", "authority_level": 10}, "boss")
    ((first, key),) = _objections(host, 1)
    against = {"relations": [{"type": "contradicts", "target_id": first}]}
    second = send(host, "RECORD", unit("Another objection", **against))["conflicts_detected"][0]

    def as_before(tx: WriteTx) -> None:
        seq = tx.append(NewEvent("document.saved", "TEST", "host:test"))
        for document in tx.documents(conflicts.OF_UNIT).items:
            tx.drop(conflicts.OF_UNIT, document.key, seq=seq, keep=0)

    watched.write(Scope(ACTOR.tenant, host.parts.field.ref), as_before)
    resolution = {"rationale": "looked again", "winner_id": first}
    for conflict, after in ((key, "contested"), (second, "active")):
        send(host, "MERGE", {"conflict_id": conflict, "strategy": "authority", "resolution": resolution}, "boss")
        assert host.use(Field).unit(ACTOR, first)["status"] == after
    kept = watched.read(
        Scope(ACTOR.tenant), lambda tx: [tx.documents(s).items for s in (conflicts.OPEN, conflicts.OF_UNIT)]
    )
    assert [len(documents) for documents in kept] == [0, 1]


def test_a_tombstone_is_found_without_reading_every_purge_before_it(
    make_host: MakeHost, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, watched = field_of(make_host, make_store(), 0)
    send(host, "REGISTER", {"id": "boss", "role": "r", "authority_level": 10}, "boss")
    grow(host, 300)
    send(host, "COMPACT", {"strategy": "purge"}, "boss")
    last = host.reader.events(ACTOR, types=("memory.purged",))[-1]
    monkeypatch.setattr(contract, "LOG_PAGE", 20)
    before = watched.rows
    with pytest.raises(FieldError) as gone:
        host.use(Field).unit(ACTOR, str(last.entry_id))
    assert gone.value.extra["tombstone"] == last.data["tombstone"]
    assert watched.rows - before < 50


def test_a_handoff_ranks_outside_the_write(make_host: MakeHost, make_store: MakeStore) -> None:
    host, watched = field_of(make_host, make_store(), 300)
    intent = {"purpose": "test", "task_id": "t1"}
    first = send(host, "RECORD", unit("Weir of the task", intent=intent))["memory_unit_id"]
    fresh: list[str] = []

    def meanwhile() -> None:
        fresh.append(send(host, "RECORD", unit("Another weir of it", intent=intent))["memory_unit_id"])

    watched.meanwhile = meanwhile
    payload = {"action": "initiate", "task_id": "t1", "to_agent": "mate", "context": {"summary": "the weir"}}
    package = send(host, "HANDOFF", payload)["handoff"]["package"]
    assert {item["id"] for item in package["units"]} == {first, fresh[0]}
    assert not watched.writes[-1] & set(_INDEXED) - {"documents"}
