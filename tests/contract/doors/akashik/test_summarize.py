"""summarize under bad luck: secrets, a full store, a lying model, changes underneath."""

from __future__ import annotations

import secrets as random_secrets
from collections.abc import Callable
from typing import Any

import pytest
from tests.stores import on_one_store

from reverie.core.entry import Scope
from reverie.distil.request import DistilledText, Request
from reverie.dreams.gates import Gates
from reverie.protocols.akashik.operations import compact as compacting

from .test_compact import FACTS, affected, compact, log, syntheses


@pytest.fixture
def boss(join: Callable[..., Any]) -> Any:
    return join(authority_level=10)


class Model:
    """A distiller that answers what it is told to."""

    name = "llm"
    fingerprint = "test/1"

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.requests: list[Request] = []

    def distil(self, request: Request) -> DistilledText:
        self.requests.append(request)
        if self.text is None:
            raise RuntimeError("the model is down")
        return DistilledText(self.text)


@pytest.fixture
def modelled(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], Model]:
    """`modelled(text)`: every summarize asks a model that answers `text`."""

    def install(text: str | None) -> Model:
        model = Model(text)
        monkeypatch.setattr(Gates, "choose", lambda *_: model)
        return model

    return install


def shown(agent: Any) -> str:
    """Everything a synthesis says anywhere."""
    return "\n".join(str(unit) for unit in syntheses(agent))


def test_registered_and_shaped_secrets_never_reach_a_synthesis(boss: Any, server: Any) -> None:
    known = "correct-horse-" + random_secrets.token_hex(8)
    shaped = "AKIA" + random_secrets.token_hex(8).upper()
    boss.record(f"The gate code is {known} for the crane.")
    boss.record(f"The bucket opens with {shaped} in the yard.")
    actor = server.host.keys.authenticate(boss.caller.key, door="rest")
    server.host.rules.register(actor, "gate", known)
    half = len(known) // 2
    boss.record(f"The first half of the gate code is {known[:half]}")
    boss.record(f"{known[half:]} is the second half of the gate code")
    compact(boss, "summarize", reason=f"because {known} is old")
    text = shown(boss)
    for secret in (known, shaped):
        assert secret not in text
        assert secret not in text.replace("\\n", "").replace(" ", "")


@on_one_store
@pytest.mark.parametrize("text", [None, "", "   ", "Bananas grow in Iceland in 1999.", "x" * 200_000])
def test_whatever_a_model_does_summarize_comes_to_an_end(
    boss: Any, modelled: Callable[[str | None], Model], text: str | None
) -> None:
    model = modelled(text)
    for fact in FACTS[:6]:
        boss.record(fact)
    assert affected(boss, "summarize") == 6
    assert model.requests
    for unit in syntheses(boss):
        assert unit["content"].strip()
        assert "Bananas" not in unit["content"]
        assert "flood" in unit["content"]


def test_a_model_that_tells_a_secret_is_not_believed(boss: Any, modelled: Callable[[str | None], Model]) -> None:
    secret = "ghp_" + random_secrets.token_urlsafe(27).replace("-", "x").replace("_", "y")
    modelled(f"Gate 1 of the lock opened; the token is {secret}")
    for fact in FACTS[:6]:
        boss.record(fact)
    compact(boss, "summarize")
    assert secret not in shown(boss)


def test_a_full_store_refuses_summarize_whole_and_still_archives_and_purges(
    make_server: Callable[..., Any], join: Callable[..., Any]
) -> None:
    server = make_server(akashik_faults=True)
    boss = join(server.caller(), authority_level=10)
    ids = [boss.record(fact) for fact in FACTS[:4]]
    boss.caller.post("/akashik/v1/test/faults", {"kind": "storage_full", "on": True})
    before = log(boss)
    body = boss.refused("STORAGE_FULL", "COMPACT", {"strategy": "summarize"})
    assert (body["http"], body["recoverable"]) == (507, False)
    assert log(boss) == before
    assert not any("archived" in boss.unit(i) for i in ids)
    assert affected(boss, "summarize", dry_run=True) == 4
    assert affected(boss, "archive", filter={"types": ["finding"]}) == 4
    assert affected(boss, "purge") == 4
    boss.caller.post("/akashik/v1/test/faults", {"kind": "storage_full", "on": False})
    boss.record(FACTS[5])
    assert affected(boss, "summarize") == 1


def test_a_quota_is_a_full_store(boss: Any, server: Any) -> None:
    for fact in FACTS[:3]:
        boss.record(fact)
    actor = server.host.keys.authenticate(boss.caller.key, door="rest")
    server.host.rules.set_policy(actor, {"max_entries": 3})
    boss.refused("STORAGE_FULL", "COMPACT", {"strategy": "summarize"})
    assert affected(boss, "archive") == 3


def test_a_summarize_that_is_refused_keeps_no_other_waiting(boss: Any, server: Any) -> None:
    for fact in FACTS[:3]:
        boss.record(fact)
    actor = server.host.keys.authenticate(boss.caller.key, door="rest")
    scope = Scope(actor.tenant)
    used = server.host.parts.store.read(scope, lambda tx: tx.head().bytes)
    server.host.rules.set_policy(actor, {"max_bytes": used + 5})
    boss.refused("STORAGE_FULL", "COMPACT", {"strategy": "summarize"})
    held = server.host.parts.store.read(scope, lambda tx: tx.leases(limit=10))
    assert not [lease.name for lease in held if lease.name.startswith("compact/")]


def test_an_original_that_changes_meanwhile_drops_out_and_its_group_is_made_again(
    boss: Any, join: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mate = join(boss.caller, authority_level=10)
    ids = [boss.record(fact) for fact in FACTS[:6]]
    inner, calls = compacting._members, []

    def meddling(*given: Any) -> Any:
        found = inner(*given)
        calls.append(len(given[1]))
        if len(calls) == 1:
            mate("COMPACT", {"strategy": "purge", "filter": {"max_age_epochs": 3}})
            boss.record("Lock-keeper Ines wrote this down late.")
        return found

    monkeypatch.setattr(compacting, "_members", meddling)
    taken = affected(boss, "summarize")
    linked = {relation["target_id"] for unit in syntheses(boss) for relation in unit["relations"]}
    gone = {e["memory_unit_id"] for e in log(boss) if e["type"] == "memory.purged"}
    assert gone
    assert linked.isdisjoint(gone)
    assert len(linked) == taken
    assert set(ids) - gone <= linked
    assert len(calls) == 2


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_field_of_a_lower_level_lacks_some_of_it(
    make_server: Callable[..., Any], join: Callable[..., Any], level: int
) -> None:
    server = make_server(akashik_level=level)
    agent = join(server.caller())
    if level < 2:
        assert agent.refused("UNSUPPORTED_OPERATION", "COMPACT", {"strategy": "archive"})["http"] == 501
        return
    agent.record(FACTS[0])
    assert agent.refused("UNSUPPORTED_OPERATION", "COMPACT", {"strategy": "purge"})["http"] == 501
    assert affected(agent, "summarize") == 1
    agent.refused("UNSUPPORTED_OPERATION", "MERGE", {"conflict_id": "x", "strategy": "vote", "resolution": {}})


def test_forgetting_a_subject_reaches_the_syntheses_made_from_it(boss: Any, server: Any) -> None:
    ids = [boss.record(fact) for fact in FACTS[:3]]
    actor = server.host.keys.authenticate(boss.caller.key, door="rest")
    (ref,) = [name for name, _ in server.host.reader.refs(actor)]
    boss.caller.post(f"memory/{ref}/entries", {"content": "Gate 9 belongs to Odalys.", "subject": "odalys"})
    compact(boss, "summarize")
    assert "Odalys" in shown(boss)
    done = server.host.forget.forget(actor, "odalys")
    assert done.forgotten == 1
    assert "Odalys" not in str(boss.attune(scope={"include_archived": True}))
    assert server.host.audit.verify(actor).ok
    for unit in boss.attune()["record"]:
        assert unit["memory_unit"]["type"] == "synthesis"
        assert unit["memory_unit"]["source"]["agent_id"] == "akashik.field"
        assert {relation["target_id"] for relation in unit["memory_unit"]["relations"]} <= set(ids)
    assert all(boss.unit(i)["archived"] for i in ids)


def test_one_memory_through_every_door(boss: Any) -> None:
    unit = boss.record("The ferry leaves at dawn from the north quay.")
    found = boss.caller.post("memory/akashik/search", {"query": "When does the ferry leave?"}).json()
    assert found["hits"][0]["entry"]["id"] == unit
    compact(boss, "summarize")
    (made,) = syntheses(boss)
    found = boss.caller.post("memory/akashik/search", {"query": "When does the ferry leave?"}).json()
    assert [hit["entry"]["id"] for hit in found["hits"]] == [made["id"]]
    events = boss.caller.get("events?limit=1000&type=memory.compacted").json()["events"]
    assert [event["memory_unit_id"] for event in events] == [made["id"]]


RULES = [
    "Never deploy the crane on a Friday evening.",
    "Mira is allergic to peanuts and cashews.",
    "Do not log request bodies in production.",
    "The launch review must be signed by Tomas before 3 March.",
    "Always run the migration script before the tests.",
    "We decided to use PostgreSQL 16 for billing.",
    "The crane password is rotated by Ines every Monday.",
    "Visitors must wear a helmet in the yard.",
]


def test_what_must_be_kept_is_carried_into_as_many_units_as_it_takes(boss: Any) -> None:
    originals = [boss.record(rule) for rule in RULES]
    planned = compact(boss, "summarize", dry_run=True)
    done = compact(boss, "summarize")
    assert done["units_affected"] == len(originals)
    units = syntheses(boss)
    assert len(units) == done["synthesis_units_created"] == planned["synthesis_units_created"]
    text = "\n".join(unit["content"] for unit in units)
    assert [rule for rule in RULES if rule.rstrip(".") not in text] == []
    for unit in units:
        if len(unit["relations"]) >= 5:
            assert len(unit["content"]) < sum(len(rule) for rule in RULES if rule.rstrip(".") in unit["content"])
    assert sum(len(unit["relations"]) for unit in units) == len(originals)


def test_units_about_subjects_of_every_length_can_be_summarized_and_forgotten(boss: Any) -> None:
    long, longer = "ana " * 63 + "lena", "bo " * 85 + "x"
    assert (len(long), len(longer)) == (256, 256)
    for subject, text in ((long, FACTS[0]), (longer, FACTS[1]), ("Cy", FACTS[2])):
        boss.record(text, subject=subject)
    assert affected(boss, "summarize") == 3
    tags = {tag for unit in syntheses(boss) for tag in unit.get("tags", [])}
    subjects = {unit.get("subject") for unit in syntheses(boss)}
    assert {f"subject:{long}", f"subject:{longer}"} <= tags or {long, longer} <= subjects
    assert boss.caller.post("/v1/host/reverie/memory/forget", {"subject": longer}).json()["forgotten"] == 1
    left = boss.caller.get("memory/akashik/entries").text
    assert "synthesis" in left
    assert "opened 4 times" not in left
