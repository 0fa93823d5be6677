"""ATTUNE: scope, order, reasons, budgets, polling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.stores import on_one_store

from .conftest import Agent, unit

SUBJECTS = [
    "The cargo ship leaves Hamburg harbour on Friday at noon.",
    "The kitchen walls will be painted blue next week.",
    "Our database backup failed twice in March.",
    "The marathon was won in two hours and four minutes.",
]


@on_one_store
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"scope": None},
        {"scope": []},
        {"scope": {"role": "r"}},
        {"scope": {"max_units": 1}},
        {"scope": {"role": "", "max_units": 1}},
        {"scope": {"role": 7, "max_units": 1}},
        {"scope": {"role": "r", "max_units": 0}},
        {"scope": {"role": "r", "max_units": 1.5}},
        {"scope": {"role": "r", "max_units": True}},
        {"scope": {"role": "r", "max_units": 1, "max_tokens": 0}},
        {"scope": {"role": "r", "max_units": 1, "relevance_threshold": 2}},
        {"scope": {"role": "r", "max_units": 1, "recency_weight": -1}},
        {"scope": {"role": "r", "max_units": 1, "interests": "ships"}},
        {"scope": {"role": "r", "max_units": 1, "temporal_layers": ["yesterday"]}},
        {"scope": {"role": "r", "max_units": 1, "since_epoch": -1}},
        {"scope": {"role": "r", "max_units": 1, "include_own": "yes"}},
        {"scope": {"role": "r", "max_units": 1}, "since_epoch": "1"},
        {"scope": {"role": "r", "max_units": 1}, "format": "short"},
        {"scope": {"role": "r", "max_units": 1}, "context_hint": 7},
    ],
)
def test_a_scope_that_is_not_one_is_refused(join: Callable[..., Agent], payload: dict[str, Any]) -> None:
    assert join().refused("INVALID_REQUEST", "ATTUNE", payload)["http"] == 400


def test_units_are_scored_sorted_and_cut(join: Callable[..., Agent]) -> None:
    writer = join()
    for number in range(12):
        writer.record(f"Sample {number} was weighed.", type="decision" if number % 3 else "observation")
    answer = join(writer.caller).attune(scope={"max_units": 5})
    record = answer["record"]
    scores = [item["relevance_score"] for item in record]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert all(len(item["relevance_reason"]) > 10 and item["format"] == "full" for item in record)
    assert answer["context_budget"] == {
        "units_returned": 5,
        "units_available": 12,
        "tokens_used": answer["context_budget"]["tokens_used"],
        "tokens_budget": None,
    }
    assert answer["context_budget"]["tokens_used"] > 5
    assert answer["status"] == "ok"
    assert answer["conflicts"] == []


def test_a_decision_stands_above_an_observation(join: Callable[..., Agent]) -> None:
    writer = join()
    decided = writer.record("We chose the northern route.", type="decision")
    writer.record("The northern route is long.", type="observation")
    assert join(writer.caller).seen()[0] == decided


def test_own_units_only_when_asked(join: Callable[..., Agent]) -> None:
    agent = join()
    own = agent.record("mine")
    other = join(agent.caller).record("theirs")
    assert agent.seen() == [other]
    assert set(agent.seen(scope={"include_own": True})) == {own, other}


@pytest.mark.parametrize("number", range(len(SUBJECTS)))
def test_a_hint_brings_what_it_means_to_the_top(join: Callable[..., Agent], number: int) -> None:
    hints = ["when does the vessel depart?", "colour of the kitchen", "was our data saved?", "running race record"]
    writer = join()
    ids = [writer.record(text) for text in SUBJECTS]
    reader = join(writer.caller)
    answer = reader.attune(context_hint=hints[number])
    assert answer["record"][0]["memory_unit"]["id"] == ids[number]
    assert "meaning" in answer["record"][0]["relevance_reason"]
    assert reader.seen(scope={"interests": [hints[number]]})[0] == ids[number]


def test_nothing_below_the_threshold(join: Callable[..., Agent]) -> None:
    writer = join()
    for text in SUBJECTS:
        writer.record(text)
    reader = join(writer.caller)
    hint = "the cargo ship leaves Hamburg harbour"
    every = reader.attune(context_hint=hint)["record"]
    some = reader.attune(context_hint=hint, scope={"relevance_threshold": 0.6})
    assert 1 <= len(some["record"]) < len(every)
    assert all(item["relevance_score"] >= 0.6 for item in some["record"])
    assert reader.seen(context_hint="zebra", scope={"relevance_threshold": 1}) == []


def test_the_active_task_counts(join: Callable[..., Agent]) -> None:
    writer = join()
    for text in SUBJECTS:
        writer.record(text)
    mine = writer.record("Buy rope.", intent={"purpose": "p", "task_id": "t-9"}, type="observation")
    assert join(writer.caller).seen(scope={"active_task_id": "t-9"})[0] == mine


def test_recency_alone_orders_by_age(join: Callable[..., Agent]) -> None:
    writers = [join()]
    writers += [join(writers[0].caller) for _ in range(4)]
    ids = [writer.record(f"note {number}", type="observation") for number, writer in enumerate(writers)]
    reader = join(writers[0].caller)
    assert reader.seen(scope={"recency_weight": 1}) == ids[::-1]


def test_since_epoch_is_inclusive_and_may_stand_in_the_scope(join: Callable[..., Agent]) -> None:
    writer = join()
    answers = [writer("RECORD", unit(f"note {number}")) for number in range(4)]
    reader = join(writer.caller)
    for at, answer in enumerate(answers):
        expected = {later["memory_unit_id"] for later in answers[at:]}
        assert set(reader.seen(since_epoch=answer["epoch"])) == expected
        assert set(reader.seen(scope={"since_epoch": answer["epoch"]})) == expected


def test_polling_misses_nothing(join: Callable[..., Agent]) -> None:
    writer = join()
    reader = join(writer.caller)
    seen: set[str] = set()
    written: set[str] = set()
    since = 0
    for number in range(6):
        written |= {writer.record(f"note {number}.{part}") for part in range(number % 3)}
        answer = reader.attune(since_epoch=since)
        seen |= {item["memory_unit"]["id"] for item in answer["record"]}
        since = answer["epoch"]
    assert seen == written


@pytest.mark.parametrize("budget", [1, 5, 12, 30, 60, 1000])
def test_a_budget_is_a_budget(join: Callable[..., Agent], budget: int) -> None:
    writer = join()
    for text in SUBJECTS:
        writer.record(text + " It was said twice, and nobody minded at all.")
    answer = join(writer.caller).attune(scope={"max_tokens": budget})
    spent = answer["context_budget"]
    assert spent["tokens_budget"] == budget
    assert spent["tokens_used"] <= budget
    assert spent["units_returned"] == len(answer["record"])
    assert spent["units_available"] == len(SUBJECTS)
    for item in answer["record"]:
        whole = any(item["memory_unit"]["content"].startswith(text) for text in SUBJECTS)
        complete = item["memory_unit"]["content"].endswith("at all.")
        assert item["format"] == ("full" if complete and whole else "summary")
    assert budget < 60 or answer["record"]


def test_formats(join: Callable[..., Agent]) -> None:
    writer = join()
    made = writer.record("The first sentence says it. " + "The rest is detail. " * 40)
    reader = join(writer.caller)
    full = reader.attune()["record"][0]
    short = reader.attune(format="summary")["record"][0]
    bare = reader.attune(format="ids_only")["record"][0]
    assert full["format"] == "full"
    assert short["format"] == "summary"
    assert len(short["memory_unit"]["content"]) < len(full["memory_unit"]["content"]) / 4
    assert short["memory_unit"]["content"].startswith("The first sentence says it.")
    assert bare["memory_unit"] == {"id": made}


def test_a_large_max_units_is_not_cut_in_silence(join: Callable[..., Agent]) -> None:
    writer = join()
    for number in range(120):
        writer.record(f"note {number}")
    answer = join(writer.caller).attune(scope={"max_units": 10_000}, format="ids_only")
    assert len(answer["record"]) == 120


def test_what_another_door_wrote_is_a_unit_too(join: Callable[..., Agent]) -> None:
    agent = join()
    written = agent.caller.put("Written through REST.", ref="akashik")
    shown = agent.attune()["record"][0]["memory_unit"]
    assert shown["id"] == written
    assert shown["type"] == "observation"
    assert shown["intent"]["purpose"]
    assert shown["source"]["agent_role"]
    mine = agent.record("Recorded through Akashik.")
    found = agent.caller.post("memory/akashik/search", {"query": "recorded through akashik"}).json()
    assert mine in [hit["entry"]["id"] for hit in found["hits"]]


def test_an_observer_may_read_and_audit_may_not(join: Callable[..., Agent]) -> None:
    caller = join().caller
    observer, audit = join(caller, authority_level=2), join(caller, authority_level=0)
    assert observer.attune()["status"] == "ok"
    audit.refused("INSUFFICIENT_AUTHORITY", "ATTUNE", {"scope": {"role": "r", "max_units": 1}})
    assert observer.record("draft", mode="draft")
    observer.refused("INSUFFICIENT_AUTHORITY", "RECORD", unit("x"))


def test_a_forgotten_name_is_in_no_stored_reason(
    make_server: Callable[..., Any], tmp_path: Any, join: Callable[..., Agent]
) -> None:
    server = make_server(data=tmp_path)
    writer = join(server.caller())
    reader = join(writer.caller)
    writer.record("Bruno has gate 9.", subject="bruno")
    writer.record("The ferry has two gates.")
    scope = {"role": "researcher", "max_units": 5}
    envelope = reader.envelope("ATTUNE", {"scope": scope, "context_hint": "Which gate has Bruno?"})
    first = reader.post("ATTUNE", envelope).json()
    assert "bruno" in first["record"][0]["relevance_reason"].lower()
    assert reader.post("ATTUNE", envelope).json() == first
    assert writer.caller.post("/v1/host/reverie/memory/forget", {"subject": "bruno"}).status_code == 200
    assert "bruno" not in reader.post("ATTUNE", envelope).text.lower()
    server.host.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"bruno" not in stored.lower()
