"""The injection budget (RFC 0113): a ranked list cut to tokens, no entry cut, and a list of its own for relevance."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.contract.doors.openwop.schemas import ERROR, MEMORY_ENTRY, valid
from tests.contract.doors.openwop.test_compaction import fresh, seed, stored
from tests.contract.doors.openwop.test_runs import events, start
from tests.stores import on_one_store


def planted(caller: Any) -> str:
    ref = fresh()
    texts = ["tea at four", "the kites are blue and fly over the long beach", "soup", "word " * 500]
    entries = [
        {"id": f"e{n}", "content": text, "createdAt": f"2024-01-0{n + 1}T00:00:00Z"} for n, text in enumerate(texts)
    ]
    seed(caller, ref, *entries)
    return ref


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["id"] for entry in entries]


def test_the_longest_beginning_of_the_list_that_fits(seamed: Any, ada: Any) -> None:
    ref, count = planted(ada), seamed.host.parts.tokens.count
    everything = stored(ada, ref)
    assert ids(everything) == ["e3", "e2", "e1", "e0"]
    for budget in (1, 5, 12, 20, 600):
        kept = stored(ada, ref, tokenBudget=budget)
        fitting = [entry for entry in everything if count(entry["content"]) <= budget]
        assert ids(kept) == ids(fitting)[: len(kept)]
        assert sum(count(entry["content"]) for entry in kept) <= budget
        if len(kept) < len(fitting):
            more = [*kept, fitting[len(kept)]]
            assert sum(count(entry["content"]) for entry in more) > budget


def test_an_entry_over_the_budget_alone_is_left_out_whole(ada: Any) -> None:
    assert ids(stored(ada, planted(ada), tokenBudget=30)) == ["e2", "e1", "e0"]


def test_by_relevance_the_best_answer_comes_first(ada: Any) -> None:
    ref = planted(ada)
    assert ids(stored(ada, ref, rank="relevance", query="blue kites"))[0] == "e1"
    assert ids(stored(ada, ref, rank="relevance", query="blue kites", tokenBudget=12))[0] == "e1"


@on_one_store
@pytest.mark.parametrize(
    "asked",
    ["tokenBudget=0", "tokenBudget=-1", "tokenBudget=x", "rank=luck", "rank=relevance", "limit=-1", "asOf=then"],
)
def test_what_makes_no_sense_is_refused(ada: Any, asked: str) -> None:
    answer = ada.get(f"/v1/memory/{quote('a/b', safe='')}?{asked}")
    assert answer.status_code == 400, answer.text
    valid(answer.json(), ERROR)


FIXTURE = "conformance-agent-memory-injection-budget"


@pytest.mark.parametrize("inputs", [{}, {"tokenBudget": 40}, {"tokenBudget": 700}])
def test_the_fixture_shows_every_promise(seamed: Any, ada: Any, inputs: dict[str, int]) -> None:
    run = start(ada, FIXTURE, inputs=inputs)
    assert run["status"] == "completed", run
    shown, count = run["variables"], seamed.host.parts.tokens.count
    kept = shown["budgetedEntries"]
    assert shown["tokenBudget"] == inputs.get("tokenBudget", 64)
    assert kept
    for entry in kept:
        valid(entry, MEMORY_ENTRY)
    assert shown["budgetedTokenTotal"] == sum(count(entry["content"]) for entry in kept) <= shown["tokenBudget"]
    assert shown["tokenCounter"] == "o200k_base"
    assert shown["overBudgetEntryOmitted"] is True
    assert shown["overBudgetEntryId"] not in ids(kept)
    assert "[REDACTED:conformance-test-secret]" in shown["redactedContentSample"]
    assert shown["redactedContentSample"] in [entry["content"] for entry in kept]
    assert shown["crossTenantBudgetedProbe"] == []
    assert set(shown["recencyOrder"]) == set(shown["relevanceOrder"])
    assert len(shown["recencyOrder"]) == 4
    assert shown["recencyOrder"] != shown["relevanceOrder"]
    assert shown["relevanceOrder"][0].endswith(".relevant")
    written = [event["payload"] for event in events(ada, run["runId"]) if event["type"] == "memory.written"]
    assert all(stored(ada, ref) == [] for ref in {payload["memoryRef"] for payload in written})


def test_without_an_embedder_the_fixture_invents_no_order(make_server: Any) -> None:
    caller = make_server(openwop_seams=True, embedder="none").caller()
    shown = start(caller, FIXTURE)["variables"]
    assert shown["budgetedEntries"]
    assert not {"recencyOrder", "relevanceOrder"} & set(shown)


@on_one_store
@pytest.mark.parametrize("budget", [0, 1, "x", True, 10**9])
def test_a_budget_the_fixture_cannot_show_is_refused(ada: Any, budget: Any) -> None:
    refused = ada.post("/v1/runs", {"workflowId": FIXTURE, "inputs": {"tokenBudget": budget}})
    assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")


def test_without_the_parts_it_is_not_provided(make_server: Any) -> None:
    server = make_server(openwop_seams=True, tokenizer="none", embedder="none")
    caller = server.caller()
    seed(caller, "notes", "one")
    for asked in ("tokenBudget=10", "rank=relevance&query=one"):
        answer = caller.get(f"/v1/memory/notes?{asked}")
        assert answer.status_code == 501
        assert answer.json()["error"] == "capability_not_provided"
