"""Distillation (RFC 0062) over HTTP: a budget that is a budget, an archive anyone can recompute, an index without text."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import uuid4

import pytest
from tests.contract.doors.openwop.schemas import ARCHIVE, COMPACTED, ERROR, FILE, INDEX, valid
from tests.contract.doors.openwop.test_compaction import fresh, run_events, seed, stored
from tests.stores import on_one_store

from reverie.core.actor import Actor
from reverie.core.clock import MS_PER_DAY

DISTILL = "/v1/host/sample/memory/distill"
INDEX_FILE = "/v1/host/workspace/files/MEMORY-INDEX.json"
FACTS = [
    "The deploy window is Tuesday at 14:00 UTC.",
    "Ann prefers e-mail to phone calls.",
    "The parser was rewritten in March and is twice as fast.",
    "We decided to keep the old index until the migration is done.",
]


def distil(caller: Any, ref: str, **more: Any) -> Any:
    answer = caller.post(DISTILL, {"memoryRef": ref, **more})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    valid(body["event"]["payload"], COMPACTED)
    valid(body["archive"], ARCHIVE)
    assert jcs_checksum(body["archive"]) == body["archiveChecksum"]
    told = body["event"]["distillation"]
    assert body["event"]["payload"] == {k: v for k, v in body["event"].items() if k not in ("type", "ts", "payload")}
    assert told["tokensUsed"] <= told["tokenBudget"]
    return body


def jcs_checksum(document: dict[str, Any]) -> str:
    """RFC 8785 of a document of plain strings and integers, by the standard library alone."""
    encoded = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(encoded.encode()).hexdigest()


def planted(caller: Any) -> str:
    ref = fresh()
    seed(caller, ref, *FACTS)
    return ref


class TestConformanceCalls:
    """What the official suite sends, in any order, on a memory that has nothing in it."""

    REF = "conformance-distill"

    def test_a_fixed_corpus_stands_in_for_an_empty_memory(self, ada: Any) -> None:
        body = distil(ada, self.REF, tokenBudget=8000)
        assert body["event"]["sourceCount"] >= 2
        assert body["event"]["distillation"]["tokenBudget"] == 8000
        again = ada.post(DISTILL, {"memoryRef": self.REF, "tokenBudget": 1})
        assert again.json()["error"] == "token_budget_exceeded"

    def test_a_budget_of_one_is_too_small(self, ada: Any) -> None:
        answer = ada.post(DISTILL, {"memoryRef": self.REF, "tokenBudget": 1})
        assert answer.status_code == 422
        valid(answer.json(), ERROR)
        assert answer.json()["error"] == "token_budget_exceeded"
        assert "archiveChecksum" not in answer.text
        assert answer.json()["details"]["budget"] == 1
        assert answer.json()["details"]["minimumRequired"] > 1

    def test_the_same_sources_have_one_checksum_and_others_another(self, ada: Any) -> None:
        sums = [
            distil(ada, self.REF, sources=sources)["archiveChecksum"]
            for sources in (["s1", "s2", "s3"], ["s3", "s1", "s2"], ["s1", "s2", "s4"])
        ]
        assert sums[0] == sums[1] != sums[2]

    def test_the_index_is_reported(self, ada: Any) -> None:
        body = distil(ada, self.REF, indexEmitted=True)
        assert body["indexUpdated"] is True
        valid(body["indexFile"], FILE)
        quiet = distil(ada, self.REF, indexEmitted=False)
        assert quiet["indexUpdated"] is False
        assert "indexFile" not in quiet
        assert quiet["event"]["distillation"]["indexUpdated"] is False
        assert not run_events(ada, quiet["runId"], "workspace.updated")

    def test_a_run_that_wants_no_index_leaves_it_alone(self, ada: Any) -> None:
        """Also when it makes one of archives that the index names."""
        ref, path = fresh(), "/v1/host/workspace/files/MEMORY-INDEX.json"
        seed(ada, ref, "one thing", "another thing")
        distil(ada, ref, indexEmitted=True)
        seed(ada, ref, "a third thing")
        before = ada.get(path).json()
        quiet = distil(ada, ref, indexEmitted=False)
        assert ada.get(path).json() == before
        assert run_events(ada, quiet["runId"], "workspace.updated") == []
        seed(ada, ref, "a fourth thing")
        body = {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": ref, "indexEmitted": False}}
        run = ada.post("/v1/runs", body).json()
        assert run["status"] == "completed"
        (event,) = run_events(ada, run["runId"], "memory.compacted")
        assert event["payload"]["distillation"]["indexUpdated"] is False
        assert ada.get(path).json() == before
        refused = ada.post("/v1/runs", {**body, "inputs": {"memoryRef": ref, "indexEmitted": "no"}})
        assert refused.status_code == 400

    def test_a_canary_is_never_echoed(self, ada: Any) -> None:
        canary = "sk-canary-" + uuid4().hex
        sources = [f"the key is {canary}", "nothing here"]
        answer = ada.post(DISTILL, {"memoryRef": self.REF, "sources": sources, "includeSecretCanary": True})
        assert answer.status_code == 200
        assert canary not in answer.text
        assert "[REDACTED:" in answer.json()["archive"]["content"]


def test_the_archive_names_its_sources_by_hash_and_nothing_else(ada: Any) -> None:
    ref = planted(ada)
    body = distil(ada, ref)
    archive = body["archive"]
    assert [item["id"] for item in archive["sources"]] == ["e0", "e1", "e2", "e3"]
    assert [item["sha256"] for item in archive["sources"]] == [hashlib.sha256(f.encode()).hexdigest() for f in FACTS]
    for word in (ref, ada.tenant, body["runId"], body["event"]["outputId"]):
        assert word not in json.dumps(archive)
    (entry,) = stored(ada, ref)
    assert entry["content"] == archive["content"] == body["outputContent"]
    assert body["event"]["byteSize"] == len(archive["content"].encode())
    assert {f"compacted-from:{body['runId']}", f"archive:{body['archiveChecksum']}"} <= set(entry["tags"])
    assert body["event"]["trigger"] == "host-managed"


def test_the_order_of_insertion_and_the_place_do_not_matter(seamed: Any, ada: Any) -> None:
    entries = [{"id": f"m{n}", "content": fact, "createdAt": "2024-05-01T10:00:00Z"} for n, fact in enumerate(FACTS)]
    other, sums = seamed.caller(), []
    for caller, order in ((ada, entries), (ada, entries[::-1]), (other, entries[2:] + entries[:2])):
        ref = fresh()
        seed(caller, ref, *order)
        sums.append(distil(caller, ref)["archiveChecksum"])
    assert len(set(sums)) == 1


def test_a_budget_is_clamped_to_the_most_and_defaults_to_it(ada: Any) -> None:
    for asked in (None, 8000, 999_999):
        more = {} if asked is None else {"tokenBudget": asked}
        assert distil(ada, planted(ada), **more)["event"]["distillation"]["tokenBudget"] == 8000
    assert distil(ada, planted(ada), tokenBudget=500)["event"]["distillation"]["tokenBudget"] == 500


@on_one_store
@pytest.mark.parametrize(
    "sources",
    [
        FACTS,
        ["s1", "s2"],
        ["same", "same"],
        ["...", "!!!"],
        ["☕ naïve [BYOK:x] text", "другой текст", "第三の文"],
        ["I prefer tea.", "I prefer tea.", "We decided to stop."],
        ["word " * 300, "one [REDACTED:x] more"],
        [" "],
    ],
)
def test_the_minimum_is_exact(ada: Any, sources: list[str]) -> None:
    ref = fresh()
    least = ada.post(DISTILL, {"memoryRef": ref, "sources": sources, "tokenBudget": 1}).json()["details"]
    assert least["budget"] == 1
    minimum = least["minimumRequired"]
    below = ada.post(DISTILL, {"memoryRef": ref, "sources": sources, "tokenBudget": minimum - 1})
    assert below.status_code == 422
    assert below.json()["details"] == {"budget": minimum - 1, "minimumRequired": minimum}
    assert distil(ada, ref, sources=sources, tokenBudget=minimum)["event"]["distillation"]["tokenBudget"] == minimum


def test_the_least_budget_holds_what_must_be_kept(ada: Any) -> None:
    rules = [
        "Never deploy on a Friday evening.",
        "Mira is allergic to peanuts and cashews.",
        "The launch review must be signed by Tomas before 3 March.",
    ]
    talk = [f"Good morning number {n}, the weather is fine." for n in range(20)]
    ref = fresh()
    asked = {"memoryRef": ref, "sources": [*rules, *talk]}
    minimum = ada.post(DISTILL, {**asked, "tokenBudget": 1}).json()["details"]["minimumRequired"]
    text = distil(ada, ref, sources=[*rules, *talk], tokenBudget=minimum)["outputContent"]
    assert [rule for rule in rules if rule.rstrip(".") not in text] == []
    few = ada.post(DISTILL, {"memoryRef": ref, "sources": [rules[0], *talk], "tokenBudget": 1}).json()["details"]
    assert few["minimumRequired"] < minimum


def test_what_fails_fails_whole(ada: Any) -> None:
    ref = planted(ada)
    before = stored(ada, ref)
    answer = ada.post(DISTILL, {"memoryRef": ref, "tokenBudget": 20})
    assert answer.status_code == 422
    assert stored(ada, ref) == before
    assert ada.get(INDEX_FILE).status_code == 404
    log = ada.get("/v1/host/reverie/events?limit=1000").text
    assert "memory.compacted" not in log
    assert "workspace.updated" not in log


@on_one_store
@pytest.mark.parametrize("bad", [0, -1, 1.5, "100", True, [], {}])
def test_what_is_no_budget_is_refused(ada: Any, bad: Any) -> None:
    answer = ada.post(DISTILL, {"memoryRef": "x", "tokenBudget": bad})
    assert answer.status_code == 400
    valid(answer.json(), ERROR)
    assert answer.json()["error"] == "validation_error"


def test_the_index_is_a_workspace_file_without_a_word_of_memory(seamed: Any, ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, *(f"The zanzibar ledger number {n} is kept in zanzibar." for n in range(6)))
    body = distil(ada, ref)
    file = ada.get(INDEX_FILE).json()
    valid(file, FILE)
    assert file == body["indexFile"]
    index = json.loads(file["content"])
    valid(index, INDEX)
    (item,) = index["archives"]
    assert item["memoryRef"] == ref
    assert item["archiveChecksum"] == body["archiveChecksum"]
    assert item["outputId"] == body["event"]["outputId"]
    assert item["sourceCount"] == 6
    assert "zanzibar" not in file["content"]
    (event,) = run_events(ada, body["runId"], "workspace.updated")
    assert event["payload"] == {"path": "MEMORY-INDEX.json", "version": file["version"]}
    (event,) = run_events(ada, body["runId"], "memory.compacted")
    assert event["payload"] == body["event"]["payload"]
    assert seamed.caller().get(INDEX_FILE).status_code == 404


def test_distilling_again_takes_the_archive_and_replaces_it_in_the_index(ada: Any) -> None:
    ref = planted(ada)
    first = distil(ada, ref)
    seed(ada, ref, {"id": "new", "content": "leak [BYOK:zzz] and <REDACTED:tok>"})
    second = distil(ada, ref)
    assert {item["id"] for item in second["archive"]["sources"]} == {first["event"]["outputId"], "new"}
    assert "BYOK" not in json.dumps(second)
    assert "[REDACTED:" in second["archive"]["content"]
    index = json.loads(ada.get(INDEX_FILE).json()["content"])
    assert [item["outputId"] for item in index["archives"]] == [second["event"]["outputId"]]


def test_a_hostile_summariser_reaches_neither_memory_nor_archive(ada: Any) -> None:
    secret = "v4ult-" + uuid4().hex
    for told in (f"it is {secret}", f"{secret[:9]}\n{secret[9:]}", f"[BYOK:{secret}]", "[BYOK:" + secret):
        ref = planted(ada)
        body = distil(ada, ref, summarizerOutput=told, secrets=[{"secretId": "v", "value": secret}])
        assert body["secretsRegistered"] == 1
        shown = json.dumps([body, stored(ada, ref), ada.get(INDEX_FILE).text])
        assert secret not in "".join(shown.split()).replace("\\n", "")
        assert "[REDACTED:" in body["archive"]["content"]


@pytest.mark.parametrize("leak", ["[BYOK:aaa]", "<REDACTED:label>", "x [BYOK:zz] y"])
def test_a_leak_leaves_a_marker_even_where_it_tells_nothing(ada: Any, leak: str) -> None:
    body = distil(ada, fresh(), sources=[leak, *FACTS])
    assert "BYOK" not in json.dumps(body)
    assert "[REDACTED:" in body["archive"]["content"]
    assert "Tuesday" in body["archive"]["content"]


def test_a_summariser_that_says_too_much_is_cut_to_the_budget(ada: Any) -> None:
    body = distil(ada, planted(ada), summarizerOutput="many words " * 5000, tokenBudget=300)
    assert body["event"]["distillation"]["tokensUsed"] <= 300


def test_sources_that_hold_a_registered_secret_are_hashed_without_it(ada: Any) -> None:
    secret = "v4ult-" + uuid4().hex
    body = distil(
        ada, fresh(), sources=[{"id": "a", "content": f"x {secret}"}, "b"], secrets=[{"secretId": "v", "value": secret}]
    )
    hashes = {item["id"]: item["sha256"] for item in body["archive"]["sources"]}
    assert hashes["a"] == hashlib.sha256(b"x [REDACTED:v]").hexdigest()


def test_a_run_of_the_host_workflow_takes_its_budget_from_its_options(ada: Any) -> None:
    for options in ({"distillation.tokenBudget": 700}, {"distillation": {"tokenBudget": 700}}):
        ref = planted(ada)
        begun = ada.post(
            "/v1/runs",
            {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": ref}, "configurable": options},
        )
        assert begun.status_code == 201, begun.text
        run = begun.json()["runId"]
        (event,) = run_events(ada, run, "memory.compacted")
        assert event["payload"]["distillation"]["tokenBudget"] == 700
        assert ada.get(f"/v1/runs/{run}").json()["status"] == "completed"


def test_a_run_that_cannot_keep_its_budget_fails_with_the_code(ada: Any) -> None:
    ref = planted(ada)
    before = stored(ada, ref)
    asked = {"workflowId": "reverie.memory.distill", "inputs": {"memoryRef": ref}}
    run = ada.post("/v1/runs", {**asked, "configurable": {"distillation.tokenBudget": 2}}).json()["runId"]
    snapshot = ada.get(f"/v1/runs/{run}").json()
    assert snapshot["status"] == "failed"
    assert snapshot["error"]["code"] == "token_budget_exceeded"
    assert stored(ada, ref) == before
    assert not run_events(ada, run, "memory.compacted")
    refused = ada.post("/v1/runs", {**asked, "configurable": {"distillation.tokenBudget": 0}})
    assert refused.status_code == 400


def test_an_archive_outlives_its_retention_by_nothing(make_server: Any) -> None:
    server = make_server(openwop_seams=True)
    caller = server.caller()
    checksum = distil(caller, planted(caller))["archiveChecksum"]
    actor, clock = Actor(tenant=caller.tenant, id="host:test"), server.host.parts.clock
    path = f"/v1/host/reverie/archives/{checksum}"
    assert caller.get(path).status_code == 200
    assert server.host.archives.collect(actor) == 0
    now = clock.now()
    server.host.archives._parts = replace_clock(server.host.parts, now + 30 * MS_PER_DAY + 1)
    assert server.host.archives.collect(actor) == 1
    assert caller.get(path).status_code == 404
    assert json.loads(caller.get(INDEX_FILE).json()["content"])["archives"] == []


def replace_clock(parts: Any, now: int) -> Any:
    from dataclasses import replace

    class Later:
        def now(self) -> int:
            return now

    return replace(parts, clock=Later())


def test_forgetting_a_subject_takes_archive_and_index_with_it(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, *({"id": f"a{n}", "content": f"Ann said {n}.", "tags": ["subject:ann"]} for n in range(3)))
    checksum = distil(ada, ref)["archiveChecksum"]
    answer = ada.post("/v1/host/reverie/memory/forget", {"subject": "ann"})
    assert answer.status_code == 200
    assert answer.json()["forgotten"] >= 1
    assert stored(ada, ref) == []
    assert ada.get(f"/v1/host/reverie/archives/{checksum}").status_code == 404
    assert json.loads(ada.get(INDEX_FILE).json()["content"])["archives"] == []
