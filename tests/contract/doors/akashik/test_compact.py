"""COMPACT over HTTP: every rule of what is taken, what becomes of it, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.stores import on_one_store

FACTS = [f"Gate {n} of the lock opened {n + 3} times before the flood reached mark {n}." for n in range(30)]


@pytest.fixture
def boss(join: Callable[..., Any]) -> Any:
    """An agent that may do everything."""
    return join(authority_level=10)


@pytest.fixture
def mate(join: Callable[..., Any], boss: Any) -> Any:
    """Another agent of the same Field."""
    return join(boss.caller)


def compact(agent: Any, strategy: str, **payload: Any) -> dict[str, Any]:
    answer: dict[str, Any] = agent("COMPACT", {"strategy": strategy, **payload})
    assert answer["status"] == "ok"
    assert {"units_affected", "synthesis_units_created", "storage_reclaimed_bytes", "epoch"} <= answer.keys()
    return answer


def affected(agent: Any, strategy: str, **payload: Any) -> int:
    return int(compact(agent, strategy, **payload)["units_affected"])


def log(agent: Any) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = agent.caller.get("/akashik/v1/field/log?limit=10000").json()["events"]
    return events


def syntheses(agent: Any) -> list[dict[str, Any]]:
    return [agent.unit(e["memory_unit_id"]) for e in log(agent) if e["type"] == "memory.compacted"]


# archive


def test_archive_moves_units_out_of_attune_and_changes_nothing_else(boss: Any, mate: Any) -> None:
    ids = [boss.record(fact) for fact in FACTS[:3]]
    before = [boss.unit(i) for i in ids]
    answer = compact(boss, "archive")
    assert (answer["units_affected"], answer["synthesis_units_created"]) == (3, 0)
    assert answer["storage_reclaimed_bytes"] is None
    after = [boss.unit(i) for i in ids]
    for old, new in zip(before, after, strict=True):
        assert new.pop("archived") is True
        assert new.pop("archived_epoch") == answer["epoch"]
        assert new == old
    assert mate.seen() == []
    assert mate.seen(since_epoch=0, context_hint="gate lock flood", format="ids_only") == []
    assert boss.seen(scope={"include_own": True}) == []
    assert sorted(mate.seen(scope={"include_archived": True})) == sorted(ids)
    events = [e for e in log(boss) if e["epoch"] == answer["epoch"]]
    assert [e["type"] for e in events].count("memory.archived") == 3
    assert affected(boss, "archive") == 0


def test_no_strategy_takes_a_row_of_the_log(boss: Any) -> None:
    for fact in FACTS[:6]:
        boss.record(fact)
    seen = log(boss)
    for strategy in ("archive", "summarize", "purge"):
        compact(boss, strategy)
        now = log(boss)
        assert now[: len(seen)] == seen
        assert len(now) > len(seen)
        assert [e["seq"] for e in now] == list(range(1, len(now) + 1))
        seen = now


def test_nothing_to_do_is_ok_and_in_the_log(boss: Any) -> None:
    for strategy in ("archive", "summarize", "purge"):
        answer = compact(boss, strategy)
        assert (answer["units_affected"], answer["synthesis_units_created"]) == (0, 0)
        assert [e["operation"] for e in log(boss) if e["epoch"] == answer["epoch"]] == ["COMPACT"]


# which units match


@on_one_store
@pytest.mark.parametrize(
    "wrong",
    [
        {"typo": 1},
        {"type": ["finding"]},
        {"types": "finding"},
        {"types": ["hypothesis"]},
        {"types": [7]},
        {"types": [["finding"]]},
        {"status": ["archived"]},
        {"status": {"superseded": True}},
        {"max_age_epochs": -1},
        {"max_age_epochs": 1.5},
        {"max_age_epochs": True},
        {"max_age_epochs": "3"},
        {"session_id": 7},
        [],
        "all",
        7,
    ],
)
def test_a_wrong_filter_is_refused_and_nothing_happens(boss: Any, wrong: Any) -> None:
    unit = boss.record(FACTS[0])
    for strategy in ("archive", "summarize", "purge"):
        refused = boss.refused("INVALID_FILTER", "COMPACT", {"strategy": strategy, "filter": wrong})
        assert refused["http"] == 400
    assert "archived" not in boss.unit(unit)


@on_one_store
@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"strategy": None},
        {"strategy": "delete"},
        {"strategy": ["archive"]},
        {"strategy": "archive", "reason": 7},
        {"strategy": "archive", "dry_run": "yes"},
        {"strategy": "archive", "filters": {"types": []}},
    ],
)
def test_a_wrong_request_is_refused(boss: Any, wrong: Any) -> None:
    assert boss.refused("INVALID_REQUEST", "COMPACT", wrong)["http"] == 400


def test_members_of_a_filter_combine(boss: Any) -> None:
    def put(**fields: Any) -> str:
        return str(boss.record(FACTS[len(log(boss)) % 30], **fields))

    old = put(type="assumption")
    put(type="observation")
    put(type="assumption", relations=[{"type": "supersedes", "target_id": old}])
    assert affected(boss, "archive", dry_run=True, filter={"types": ["assumption"], "status": ["superseded"]}) == 1
    assert affected(boss, "archive", dry_run=True, filter={"types": ["assumption"]}) == 2
    assert affected(boss, "archive", dry_run=True, filter={"types": ["assumption", "observation"]}) == 3
    assert affected(boss, "archive", dry_run=True, filter={"types": None, "status": None, "session_id": None}) == 3
    assert affected(boss, "archive", dry_run=True, filter={}) == 3
    assert affected(boss, "archive", dry_run=True, filter=None) == 3
    for empty in ({"types": []}, {"status": []}, {"types": ["assumption"], "status": []}):
        for strategy in ("archive", "summarize", "purge"):
            assert affected(boss, strategy, filter=empty) == 0
    assert affected(boss, "archive", filter={"status": ["superseded"]}) == 1
    assert affected(boss, "purge", filter={"status": ["superseded"]}) == 1


def test_age_is_counted_in_epochs_of_the_field_and_strictly(boss: Any) -> None:
    unit = boss.record(FACTS[0])
    born = boss.unit(unit)["epoch"]
    clock = boss.caller.get("/akashik/v1/field/status").json()["epoch"]
    age = clock + 1 - born
    assert (
        affected(
            boss,
            "archive",
            dry_run=True,
            filter={"max_age_epochs": age},
        )
        == 0
    )
    # each dry run ticked the clock once
    assert affected(boss, "archive", dry_run=True, filter={"max_age_epochs": age}) == 1
    assert affected(boss, "archive", dry_run=True, filter={"max_age_epochs": 0}) == 1


def test_a_caller_whose_clock_is_ahead_does_not_age_units(boss: Any) -> None:
    boss.record(FACTS[0])
    answer = boss("COMPACT", {"strategy": "archive", "filter": {"max_age_epochs": 50}}, epoch=boss.epoch + 100_000)
    assert answer["units_affected"] == 0
    assert answer["epoch"] > 100_000


def test_sessions_are_told_apart(boss: Any, mate: Any) -> None:
    one, other = mate.inside("one"), mate.inside("two")
    inside = one.record(FACTS[0])
    other.record(FACTS[1])
    mate.record(FACTS[2])
    assert affected(boss, "archive", dry_run=True) == 3
    assert affected(boss, "archive", filter={"session_id": "one"}) == 1
    assert boss.unit(inside)["archived"] is True
    assert affected(boss, "archive", filter={"session_id": "none-such"}) == 0


def test_a_session_one_is_no_member_of_is_out_of_reach(join: Callable[..., Any], boss: Any) -> None:
    owner = join(boss.caller, authority_level=8)
    owner("SESSION", {"action": "create", "session": {"id": "closed", "goal": "g", "members": []}})
    inside = owner.inside("closed").record(FACTS[0])
    outsider = join(boss.caller, authority_level=6)
    assert affected(outsider, "archive", filter={"session_id": "closed"}) == 0
    assert affected(outsider, "summarize") == 0
    assert "archived" not in boss.unit(inside)
    assert affected(boss, "archive", filter={"session_id": "closed"}) == 1


def test_contested_units_and_drafts_of_others_are_spared_unless_named(boss: Any, mate: Any) -> None:
    plain = mate.record("The mill stands by the river.")
    boss.record("The wheel turns 7 times a minute.")
    mate.record("The wheel turns 9 times a minute.")
    mate.record("A thought not finished.", mode="draft")
    boss.record("A thought of my own.", mode="draft")
    for strategy in ("archive", "summarize", "purge"):
        assert affected(boss, strategy, dry_run=True) == 2
    assert affected(boss, "archive", dry_run=True, filter={"status": ["contested"]}) == 2
    assert affected(boss, "archive", dry_run=True, filter={"status": ["draft"]}) == 2
    assert affected(boss, "archive") == 2
    assert boss.unit(plain)["archived"] is True


# summarize


def test_summarize_makes_synthesis_units_that_elaborate_and_archives_the_originals(boss: Any, mate: Any) -> None:
    ids = [mate.record(fact, intent={"purpose": "flood", "task_id": "t-1"}) for fact in FACTS[:7]]
    mate.record(FACTS[8], confidence={"score": 0.3, "reasoning": "guess"}, type="observation")
    answer = compact(boss, "summarize", reason="the flood is over")
    assert answer["units_affected"] == 8
    made = syntheses(boss)
    assert len(made) == answer["synthesis_units_created"] >= 2
    linked = [relation["target_id"] for unit in made for relation in unit["relations"]]
    assert len(linked) == len(set(linked)) == 8
    for unit in made:
        assert {relation["type"] for relation in unit["relations"]} == {"elaborates"}
        assert (unit["type"], unit["mode"], unit["status"]) == ("synthesis", "committed", "active")
        assert unit["source"]["agent_id"] == "akashik.field"
        assert unit["source"]["agent_role"] == "compactor"
        assert unit["epoch"] == answer["epoch"]
        assert str(len(unit["relations"])) in unit["intent"]["purpose"]
        assert "the flood is over" in unit["intent"]["purpose"]
        assert unit["confidence"]["reasoning"]
    flood = next(unit for unit in made if ids[0] in {r["target_id"] for r in unit["relations"]})
    assert flood["intent"]["task_id"] == "t-1"
    assert flood["confidence"]["score"] == 0.8
    assert flood["derived_from_types"] == ["finding"]
    seen = mate.attune()["record"]
    assert {item["memory_unit"]["id"] for item in seen} == {unit["id"] for unit in made}
    assert {item["memory_unit"]["id"] for item in boss.attune()["record"]} == {unit["id"] for unit in made}
    assert all(boss.unit(i)["archived"] for i in ids)
    again = compact(boss, "summarize")
    assert (again["units_affected"], again["synthesis_units_created"]) == (0, 0)
    named = compact(boss, "summarize", filter={"types": ["synthesis"]})
    assert named["units_affected"] == len(made)


def test_what_openwop_observers_read_of_a_compaction(boss: Any) -> None:
    ids = [boss.inside("s").record(fact) for fact in FACTS[:3]]
    answer = compact(boss, "summarize")
    events = [e for e in log(boss) if e["type"] == "memory.compacted"]
    assert len(events) == answer["synthesis_units_created"]
    named: list[str] = []
    for event in events:
        data = event["data"]
        assert data["outputId"] == event["memory_unit_id"]
        assert data["sourceCount"] == len(data["sourceIds"])
        assert data["trigger"] == "host-managed"
        assert data["session_id"] == "s"
        assert data["byteSize"] == len(boss.unit(data["outputId"])["content"].encode())
        named += data["sourceIds"]
    assert sorted(named) == sorted(ids)
    native = boss.caller.get("events?limit=1000").json()["events"]
    assert [e["seq"] for e in native if e["type"] == "memory.compacted"] == [e["seq"] for e in events]


def test_groups_never_cross_a_border(boss: Any) -> None:
    same = "The lighthouse lamp was cleaned on deck"
    for session in (None, "one"):
        for task in (None, "t"):
            for kind in ("finding", "decision"):
                agent = boss.inside(session)
                agent.record(f"{same}.", type=kind, intent={"purpose": "p", "task_id": task})
    answer = compact(boss, "summarize")
    assert (answer["units_affected"], answer["synthesis_units_created"]) == (8, 8)
    for unit in syntheses(boss):
        (original,) = [boss.unit(relation["target_id"]) for relation in unit["relations"]]
        assert unit["source"]["session_id"] == original["source"]["session_id"]
        assert unit["intent"]["task_id"] == original["intent"]["task_id"]
        assert same in unit["content"]


def test_a_group_has_at_most_25_originals_and_is_shorter_than_they_are(boss: Any) -> None:
    for n in range(55):
        boss.record(f"The harbour crane lifted container {n} onto the ship in bay {n % 5} at noon.")
    answer = compact(boss, "summarize")
    assert answer["units_affected"] == 55
    for unit in syntheses(boss):
        originals = [boss.unit(relation["target_id"]) for relation in unit["relations"]]
        assert len(originals) <= 25
        if len(originals) >= 5:
            assert len(unit["content"]) < sum(len(original["content"]) for original in originals)
    assert answer["synthesis_units_created"] <= 5


@on_one_store
@pytest.mark.parametrize("kind", ["finding", "decision", "constraint", "question"])
@pytest.mark.parametrize("text", ["{n}", "ok", "Ship {n}.", "TODO: never touch valve {n}", "We must keep rule {n}."])
def test_even_the_shortest_units_become_something_shorter(boss: Any, kind: str, text: str) -> None:
    for n in range(6):
        boss.record(text.format(n=n), type=kind)
    answer = compact(boss, "summarize", filter={"status": ["active", "contested"]})
    assert answer["units_affected"] == 6
    for unit in syntheses(boss):
        originals = [boss.unit(relation["target_id"])["content"] for relation in unit["relations"]]
        assert unit["content"].strip()
        if len(originals) >= 5:
            assert len(unit["content"]) < sum(map(len, originals))


def test_retracted_text_is_counted_and_superseded_text_is_marked(boss: Any) -> None:
    gone = boss.record("The vault holds the orange gemstone.")
    boss.record("The register of the vault was checked.", retracts=[gone])
    old = boss.record("The bridge carries lorries of any weight.")
    boss.record("The bridge is open to carts.", relations=[{"type": "supersedes", "target_id": old}])
    compact(boss, "summarize")
    texts = {r["target_id"]: unit["content"] for unit in syntheses(boss) for r in unit["relations"]}
    assert "orange" not in "".join(texts.values())
    assert "retracted" in texts[gone]
    assert "Replaced since" in texts[old]


def test_contested_units_are_told_as_disputed(boss: Any, mate: Any) -> None:
    boss.record("The wheel turns 7 times a minute.")
    mate.record("The wheel turns 9 times a minute.")
    open_before = boss("DETECT", {"mode": "list"})["conflicts"]
    compact(boss, "summarize", filter={"status": ["contested"]})
    (unit,) = syntheses(boss)
    assert "Disputed" in unit["content"]
    assert unit["status"] == "active"
    assert boss("DETECT", {"mode": "list"})["conflicts"] == open_before
    assert boss.attune()["conflicts"] == open_before
    assert boss.caller.get("/akashik/v1/conflicts").json()["conflicts"] == open_before
    (conflict,) = open_before
    resolution = {"strategy": "last_write_wins", "resolution": {"rationale": "newer"}}
    merged = boss("MERGE", {"conflict_id": conflict["id"], **resolution})
    loser = merged["side_effects"]["superseded_units"][0]
    assert boss.unit(loser)["status"] == "superseded"
    assert all(boss.unit(side)["archived"] for side in (conflict["unit_a"], conflict["unit_b"]))
    assert mate.seen() == [unit["id"]]


def test_drafts_never_reach_a_synthesis(boss: Any, mate: Any) -> None:
    mate.record("The secret plan is the turquoise door.", mode="draft")
    boss.record("A thing of my own in violet.", mode="draft")
    compact(boss, "summarize", filter={"status": ["draft", "active"]})
    shown = "".join(unit["content"] + unit["intent"]["purpose"] for unit in syntheses(boss))
    assert "turquoise" not in shown
    assert "violet" not in shown


def test_a_synthesis_is_visible_only_with_every_type_it_was_made_from(join: Callable[..., Any], boss: Any) -> None:
    policy = {"membership": "open", "role_rules": [{"role": "guest", "deny_types": ["decision"]}]}
    boss("SESSION", {"action": "create", "session": {"id": "s", "goal": "g", "policy": policy}})
    guest = join(boss.caller, role="guest")
    guest("SESSION", {"action": "join", "session": {"id": "s"}})
    inside = boss.inside("s")
    inside.record("We chose the narrow gauge.", type="decision")
    inside.record("The narrow gauge is narrow.", type="finding")
    compact(boss, "summarize")
    seen = guest.inside("s").attune()["record"]
    assert [item["memory_unit"]["derived_from_types"] for item in seen] == [["finding"]]


# purge


def test_purge_leaves_tombstones_and_no_text(boss: Any, mate: Any) -> None:
    word = "zirconium"
    ids = [mate.record(f"The {word} rod number {n} is in the shed.") for n in range(2)]
    cold = mate.record(f"The {word} lathe is in the yard.", type="observation")
    compact(boss, "archive", filter={"types": ["observation"]})
    answer = compact(boss, "purge", reason="the shed is closed")
    assert answer["units_affected"] == 3
    assert answer["storage_reclaimed_bytes"] >= sum(len(f"The {word} rod number 0 is in the shed.") for _ in ids)
    stones = {e["memory_unit_id"]: e for e in log(boss) if e["type"] == "memory.purged"}
    assert set(stones) == {*ids, cold}
    for unit_id, event in stones.items():
        stone = event["data"]["tombstone"]
        assert stone["unit_id"] == unit_id
        assert stone["reason"] == "the shed is closed"
        assert stone["purged_by"] == boss.id
        assert stone["deleted_at"].endswith("Z")
        response = boss.caller.get(f"/akashik/v1/units/{unit_id}")
        assert response.status_code == 410
        assert response.json()["code"] == "UNIT_NOT_FOUND"
        assert response.json()["tombstone"] == stone
    replayed = mate("REPLAY", {"target_type": "memory_unit", "target_id": ids[0], "depth": "full_trace"})
    assert replayed["timeline"][0]["event_type"] == "memory.recorded"
    assert [line["tombstone"] for line in replayed["timeline"] if "tombstone" in line] == [
        stones[ids[0]]["data"]["tombstone"]
    ]
    assert boss.seen(scope={"include_archived": True}) == []
    assert affected(boss, "purge") == 0
    assert word not in boss.caller.get("/akashik/v1/field/log?limit=10000").text
    assert word not in boss.caller.post("memory/akashik/search", {"query": word}).text
    boss.refused("UNIT_NOT_FOUND", "DETECT", {"mode": "check", "target_id": ids[0]})
    fresh = {"mode": "committed", "type": "finding", "content": "c", "intent": {"purpose": "p"}}
    fresh["confidence"] = {"score": 1, "reasoning": "r"}
    for kind, code in (("contradicts", "UNIT_NOT_FOUND"), ("supersedes", "UNIT_NOT_FOUND")):
        boss.refused(code, "RECORD", {**fresh, "relations": [{"type": kind, "target_id": ids[0]}]})
    boss("RECORD", {**fresh, "relations": [{"type": "informs", "target_id": ids[0]}]})


def test_the_default_reason_names_who_purged(boss: Any) -> None:
    boss.record(FACTS[0])
    compact(boss, "purge")
    (event,) = [e for e in log(boss) if e["type"] == "memory.purged"]
    assert event["data"]["tombstone"]["reason"] == f"COMPACT purge by {boss.id}"


def test_purging_originals_leaves_their_synthesis_alone(boss: Any) -> None:
    for fact in FACTS[:3]:
        boss.record(fact)
    compact(boss, "summarize")
    before = syntheses(boss)
    assert affected(boss, "purge", filter={"types": ["finding"]}) == 3
    assert syntheses(boss) == before


def test_purging_a_side_ends_its_conflict(boss: Any, mate: Any) -> None:
    one = boss.record("The wheel turns 7 times a minute.", type="finding")
    other = mate.record("The wheel turns 9 times a minute.", type="observation")
    assert affected(boss, "purge", filter={"types": ["finding"], "status": ["contested"]}) == 1
    (conflict,) = boss("DETECT", {"mode": "list"})["conflicts"]
    assert conflict["status"] == "resolved"
    assert conflict["resolution"] == {
        "strategy": "human_escalation",
        "winner_id": other,
        "rationale": "unit purged",
        "resolved_by": boss.id,
        "epoch_resolved": boss.epoch - 1,
    }
    assert boss.unit(other)["status"] == "active"
    kinds = [e["type"] for e in log(boss) if e["conflict_id"] == conflict["id"] and e["type"].startswith("conflict.")]
    assert kinds == ["conflict.detected", "conflict.escalated", "conflict.resolved"]
    assert boss.attune()["conflicts"] == []
    assert one


# authority, dry runs, repeats


def test_who_may(join: Callable[..., Any], boss: Any) -> None:
    boss.record(FACTS[0])
    for level, strategy in ((4, "archive"), (4, "summarize"), (6, "purge"), (8, "purge")):
        agent = join(boss.caller, authority_level=level)
        assert agent.refused("INSUFFICIENT_AUTHORITY", "COMPACT", {"strategy": strategy})["http"] == 403
    six = join(boss.caller, authority_level=6)
    assert affected(six, "summarize") == 1
    stranger = boss.inside(None)
    stranger.id = "never-registered"
    assert stranger.refused("AGENT_NOT_REGISTERED", "COMPACT", {"strategy": "archive"})["http"] == 403


def test_a_dry_run_counts_and_changes_nothing(boss: Any) -> None:
    ids = [boss.record(fact) for fact in FACTS[:4]]
    before = [boss.unit(i) for i in ids]
    for strategy in ("archive", "summarize", "purge"):
        assert affected(boss, strategy, dry_run=True) == 4
    assert [boss.unit(i) for i in ids] == before
    planned = compact(boss, "summarize", dry_run=True)["synthesis_units_created"]
    assert compact(boss, "summarize")["synthesis_units_created"] == planned


@pytest.mark.parametrize("strategy", ["archive", "summarize", "purge"])
def test_a_repeat_of_the_message_answers_the_same_and_does_nothing(boss: Any, strategy: str) -> None:
    boss.record(FACTS[0])
    envelope = boss.envelope("COMPACT", {"strategy": strategy})
    first = boss.post("COMPACT", envelope)
    boss.record(FACTS[1])
    assert boss.post("COMPACT", envelope).json() == first.json()
    assert affected(boss, strategy, dry_run=True) == 1
    other = {**envelope, "payload": {"strategy": strategy, "dry_run": True}}
    assert boss.post("COMPACT", other).json()["code"] == "DUPLICATE_MESSAGE"


# many at once


@pytest.mark.parametrize("strategy", ["archive", "summarize", "purge"])
def test_eight_at_once_take_every_unit_once(boss: Any, strategy: str) -> None:
    ids = [boss.record(fact) for fact in FACTS[:16]]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: boss.send("COMPACT", {"strategy": strategy}), range(8)))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert sum(answer.json()["units_affected"] for answer in answers) == 16
    assert len({answer.json()["epoch"] for answer in answers}) == 8
    if strategy == "summarize":
        linked = [relation["target_id"] for unit in syntheses(boss) for relation in unit["relations"]]
        assert sorted(linked) == sorted(ids)


def test_units_recorded_meanwhile_are_each_in_exactly_one_place(boss: Any, join: Callable[..., Any]) -> None:
    writers = [join(boss.caller) for _ in range(4)]
    for fact in FACTS[:10]:
        boss.record(fact)

    def write(writer: Any) -> list[str]:
        return [writer.record(f"Buoy {n} of {writer.id} drifted past pier {n + 1}.") for n in range(8)]

    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, writer) for writer in writers]
        taking = [pool.submit(boss.send, "COMPACT", {"strategy": "summarize"}) for _ in range(4)]
        written = [unit for future in writing for unit in future.result()]
        taken = sum(future.result().json()["units_affected"] for future in taking)
    linked = [relation["target_id"] for unit in syntheses(boss) for relation in unit["relations"]]
    assert len(linked) == len(set(linked)) == taken
    for unit_id in written:
        assert (unit_id in linked) == boss.unit(unit_id).get("archived", False)
