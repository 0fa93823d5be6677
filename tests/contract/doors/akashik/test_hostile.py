"""Whatever stands in a payload, the answer is a refusal in the protocol's words: never a 500."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MEMBERS = {
    "REGISTER": ("id", "role", "interests", "required_operations", "authority_level"),
    "DEREGISTER": ("agent_id",),
    "RECORD": ("mode", "type", "content", "intent", "confidence", "relations", "retracts"),
    "ATTUNE": ("scope", "context_hint", "format", "since_epoch"),
    "DETECT": ("mode", "target_id", "filter"),
    "MERGE": ("conflict_id", "strategy", "resolution"),
    "REPLAY": ("target_type", "target_id", "depth"),
    "COMPACT": ("strategy", "filter", "reason", "dry_run"),
    "SUBSCRIBE": ("action", "subscription"),
    "HANDOFF": ("action", "handoff_id", "task_id", "to_agent", "reason", "context"),
    "COORDINATE": ("action", "task", "reason"),
    "SESSION": ("action", "session"),
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
    "status",
    "types",
    "involving_agents",
    "winner_id",
    "synthesis",
    "rationale",
    "max_age_epochs",
    "session_id",
    "id",
    "events",
    "min_relevance",
    "debounce_ms",
    "summary",
    "unit_ids",
    "open_questions",
    "title",
    "assignee",
    "depends_on",
    "priority",
    "goal",
    "members",
    "policy",
    "membership",
    "role_rules",
    "min_authority",
    "vote_quorum",
    "cross_session",
]
WORDS = st.sampled_from(
    [
        "committed",
        "draft",
        "finding",
        "decision",
        "list",
        "check",
        "scan",
        "subscribe",
        "unsubscribe",
        "create",
        "claim",
        "start",
        "complete",
        "get",
        "join",
        "initiate",
        "accept",
        "archive",
        "summarize",
        "purge",
        "last_write_wins",
        "vote",
        "synthesis",
        "memory_unit",
        "session",
        "task",
        "conflict",
        "full_trace",
        "x",
    ]
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-3, 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | st.text(max_size=20)
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("operation", sorted(MEMBERS))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_payload_breaks_an_operation(join: Callable[..., Any], acme: Any, operation: str, data: Any) -> None:
    agent = _AGENTS.get(acme.tenant) or _AGENTS.setdefault(acme.tenant, join(acme, id="fuzz", authority_level=10))
    payload = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(MEMBERS[operation], VALUES)))
    if operation == "DEREGISTER":
        payload["agent_id"] = payload.get("agent_id") if payload.get("agent_id") != "fuzz" else "other"
        if payload["agent_id"] is None:
            payload["agent_id"] = "other"
    response = agent.send(operation, payload, session_id=data.draw(st.sampled_from([None, "s"])))
    assert response.status_code < 500 or response.status_code in (501, 507), (payload, response.text)
    if response.status_code >= 400:
        body = response.json()
        assert {"code", "message", "operation", "recoverable", "suggested_action"} <= body.keys()
        assert body["operation"] == operation


_AGENTS: dict[str, Any] = {}
