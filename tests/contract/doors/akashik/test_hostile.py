"""Whatever is sent, the answer is the protocol's: never a fault of the host."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.host.field.errors import CODES

from .conftest import Agent, unit

EXAMPLES = 400 if os.environ.get("REVERIE_SOAK") else 12
NAMES = {
    "REGISTER": ["id", "role", "interests", "required_operations", "authority_level"],
    "DEREGISTER": ["agent_id"],
    "RECORD": ["mode", "type", "content", "intent", "confidence", "relations", "retracts"],
    "ATTUNE": ["scope", "context_hint", "format", "since_epoch"],
    "DETECT": ["mode", "target_id", "filter"],
    "MERGE": ["conflict_id", "strategy", "resolution"],
    "SUBSCRIBE": ["action", "subscription"],
    "REPLAY": ["target_type", "target_id", "depth"],
    "COMPACT": ["strategy", "filter", "reason", "dry_run"],
    "COORDINATE": ["action", "task", "reason"],
    "HANDOFF": ["action", "handoff_id", "task_id", "to_agent", "reason", "context"],
    "SESSION": ["action", "session"],
}
INNER = [
    "purpose",
    "task_id",
    "question",
    "score",
    "reasoning",
    "evidence",
    "assumptions",
    "type",
    "target_id",
    "description",
    "role",
    "max_units",
    "max_tokens",
    "interests",
    "active_task_id",
    "relevance_threshold",
    "recency_weight",
    "temporal_layers",
    "since_epoch",
    "include_own",
    "include_archived",
    "id",
    "events",
    "min_relevance",
    "debounce_ms",
    "max_age_epochs",
    "session_id",
    "types",
    "status",
    "title",
    "assignee",
    "depends_on",
    "priority",
    "result_unit_id",
    "goal",
    "members",
    "policy",
    "membership",
    "role_rules",
    "min_authority",
    "vote_quorum",
    "winner_id",
    "synthesis",
    "rationale",
    "summary",
    "unit_ids",
    "open_questions",
    "involving_agents",
]
WORDS = [
    "create",
    "claim",
    "start",
    "complete",
    "get",
    "list",
    "initiate",
    "accept",
    "draft",
    "committed",
    "finding",
    "decision",
    "active",
    "full",
    "summary",
    "past",
    "archive",
    "summarize",
    "purge",
    "check",
    "scan",
    "memory_unit",
    "task",
    "vote",
    "authority",
    "synthesis",
    "human_escalation",
    "subscribe",
    "memory.recorded",
    "full_trace",
    "open",
    "invite",
]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**31, 2**53, 2**63, 2**64, 10**30, -(10**30)]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(WORDS),
    st.sampled_from(
        ["", " ", "\u0000x", "a" * 300, "é\u202e\ufeff", "🐙", "../..", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "'; --"]
    ),
    st.text(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(INNER), inner, max_size=5)),
    max_leaves=8,
)


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    operation = draw(st.sampled_from(sorted(NAMES)))
    payload = draw(st.dictionaries(st.sampled_from(NAMES[operation]), values, max_size=6))
    if operation == "RECORD" and draw(st.booleans()):
        payload = unit("text") | payload
    if operation == "ATTUNE" and draw(st.booleans()):
        scope = payload.get("scope") if isinstance(payload.get("scope"), dict) else {}
        payload["scope"] = {"role": "r", "max_units": 5, **scope}  # type: ignore[dict-item]
    return operation, payload


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(sent=st.lists(messages(), min_size=4, max_size=8))
def test_no_message_is_a_fault(join: Callable[..., Agent], sent: list[tuple[str, dict[str, Any]]]) -> None:
    agent = join(authority_level=10)
    other = join(agent.caller)
    other.record("The tide turns at six.")
    for operation, payload in sent:
        try:
            response = agent.send(operation, payload)
        except UnicodeEncodeError:  # a lone surrogate: the client cannot even send it
            continue
        body = response.json()
        assert response.status_code < 500 or body["code"] == "STORAGE_FULL", (operation, payload, body)
        if response.status_code == 200:
            assert type(body["epoch"]) is int
        else:
            assert body["code"] in CODES, body
            assert body["operation"] == operation
            assert isinstance(body["recoverable"], bool)
    page = agent.caller.get("/akashik/v1/field/log?limit=10000").json()["events"]
    assert [event["seq"] for event in page] == list(range(1, len(page) + 1))


@pytest.mark.parametrize(
    ("operation", "payload"),
    [
        ("ATTUNE", {"scope": {"role": "r", "max_units": 10**30}}),
        ("ATTUNE", {"scope": {"role": "r", "max_units": 1, "max_tokens": 2**64}}),
        ("ATTUNE", {"scope": {"role": "r", "max_units": 1}, "since_epoch": 2**64}),
        ("COORDINATE", {"action": "create", "task": {"title": "t", "priority": 10**30}}),
        ("SESSION", {"action": "create", "session": {"policy": {"vote_quorum": 10**30}}}),
        ("SESSION", {"action": "create", "session": {"policy": {"min_authority": {"finding": 10**30}}}}),
        ("REGISTER", {"id": "x", "role": "r", "authority_level": 10**30}),
    ],
)
def test_numbers_beyond_all_measure_are_refused(
    join: Callable[..., Agent], operation: str, payload: dict[str, Any]
) -> None:
    agent = join()
    agent.refused("INVALID_REQUEST", operation, payload, **({"agent_id": "x"} if operation == "REGISTER" else {}))


@pytest.mark.parametrize("path", ["/v1/units/%ff", "/v1/units/%2e%2e%2fagents", "/v1/units/" + "a" * 3000])
def test_an_address_that_makes_no_sense_is_not_found_or_refused(join: Callable[..., Agent], path: str) -> None:
    response = join().caller.get("/akashik" + path)
    assert response.status_code in (400, 404)


def test_a_body_that_is_too_large_is_refused_in_the_protocols_shape(join: Callable[..., Agent]) -> None:
    agent = join()
    response = agent.post("RECORD", agent.envelope("RECORD", unit("x" * (9 * 2**20))))
    assert response.status_code == 413
    assert response.json()["code"] == "INVALID_REQUEST"


def test_deep_nesting_is_refused(join: Callable[..., Agent]) -> None:
    agent = join()
    deep: Any = "x"
    for _ in range(80):
        deep = [deep]
    agent.refused("INVALID_ENVELOPE", "RECORD", unit("x", extra=deep))


def test_a_thousand_relations_are_kept_and_more_refused(join: Callable[..., Agent]) -> None:
    agent = join()
    many = [{"type": "informs", "target_id": f"unit-{number}"} for number in range(1001)]
    agent.refused("INVALID_REQUEST", "RECORD", unit("x", relations=many))
    made = agent.record("x", relations=many[:1000])
    assert len(agent.unit(made)["relations"]) == 1000
