"""JSON Schemas of the payloads: for models that call the operations as tools, and for people who read them.

They describe; the operations themselves validate, with the protocol's own error codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.protocols.akashik.conflicts import STATUSES as CONFLICT_STATUSES
from reverie.protocols.akashik.conflicts import TYPES as CONFLICT_TYPES
from reverie.protocols.akashik.operations.attune import FORMATS
from reverie.protocols.akashik.operations.handoff import ACTIONS as HANDOFF_ACTIONS
from reverie.protocols.akashik.operations.merge import STRATEGIES
from reverie.protocols.akashik.operations.replay import DEPTHS, TARGETS
from reverie.protocols.akashik.relevance import LAYERS
from reverie.protocols.akashik.units import RELATIONS, STATUSES, TYPES

Schema = dict[str, Any]


def _object(required: str = "", /, *, about: str = "", **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "required": required.split()}
    return schema | ({"description": about} if about else {})


def _text(about: str = "") -> Schema:
    return {"type": "string"} | ({"description": about} if about else {})


def _one_of(values: Any, about: str = "") -> Schema:
    return {"type": "string", "enum": list(values)} | ({"description": about} if about else {})


def _list(item: Schema | None = None, about: str = "") -> Schema:
    return {"type": "array", "items": item or _text()} | ({"description": about} if about else {})


def _integer(about: str = "", *, least: int = 0) -> Schema:
    return {"type": "integer", "minimum": least} | ({"description": about} if about else {})


def _share(about: str = "") -> Schema:
    return {"type": "number", "minimum": 0, "maximum": 1} | ({"description": about} if about else {})


def _flag(about: str = "") -> Schema:
    return {"type": "boolean"} | ({"description": about} if about else {})


_TASK_ACTIONS = (
    "create assign claim start block unblock complete fail retry release cancel get list".split()  # noqa: SIM905
)
_SESSION_ACTIONS = "create join leave pause resume end get list set_policy".split()  # noqa: SIM905

PAYLOADS: Mapping[str, Schema] = {
    "REGISTER": _object(
        "id role",
        id=_text("Your id; unique among registered agents."),
        role=_text("What you do: researcher, builder, reviewer."),
        interests=_list(about="Topics you want to be shown first."),
        required_operations=_list(about="Operations you cannot work without."),
        authority_level={"type": "integer", "minimum": 0, "maximum": 10},
    ),
    "DEREGISTER": _object("agent_id", agent_id=_text("The agent that leaves: you, or another with authority 8.")),
    "RECORD": _object(
        "type content intent",
        mode=_one_of(("draft", "committed"), "committed by default; a draft is seen by you alone."),
        type=_one_of(TYPES),
        content=_text("What you found, in full sentences that others understand without your context."),
        intent=_object(
            "purpose",
            purpose=_text("Why you record it."),
            task_id=_text("The task it belongs to."),
            question=_text("The question it answers."),
        ),
        confidence=_object(
            "score reasoning",
            about="Required for a committed unit.",
            score=_share("How sure you are."),
            reasoning=_text("Why you are that sure."),
            evidence=_list(),
            assumptions=_list(),
        ),
        relations=_list(
            _object("type target_id", type=_one_of(RELATIONS), target_id=_text("Id of a unit."), description=_text())
        ),
        retracts=_list(about="Ids of your own units that this one withdraws."),
        subject=_text("Whom it is about, so that it can be forgotten."),
        tags=_list(),
    ),
    "ATTUNE": _object(
        "scope",
        scope=_object(
            "role max_units",
            role=_text("The role you act in."),
            max_units=_integer("How many units at most.", least=1),
            max_tokens=_integer("How many tokens of content at most.", least=1),
            interests=_list(),
            active_task_id=_text("The task you work on."),
            relevance_threshold=_share("Nothing below this score."),
            recency_weight=_share("How much newer units are preferred."),
            temporal_layers=_list(_one_of(LAYERS)),
            since_epoch=_integer("Only units recorded at or after this epoch: the epoch of your last ATTUNE."),
            include_own=_flag("Also what you recorded yourself."),
            include_archived=_flag(),
        ),
        context_hint=_text("What you are doing now, in a sentence."),
        format=_one_of(FORMATS),
    ),
    "DETECT": _object(
        "mode",
        mode=_one_of(("check", "scan", "list"), "check one unit, scan all, or list known conflicts."),
        target_id=_text("check: the unit."),
        filter=_object(
            status=_list(_one_of(CONFLICT_STATUSES)), types=_list(_one_of(CONFLICT_TYPES)), involving_agents=_list()
        ),
    ),
    "MERGE": _object(
        "conflict_id strategy resolution",
        conflict_id=_text(),
        strategy=_one_of(STRATEGIES),
        resolution=_object(
            "rationale",
            rationale=_text("Why it is decided so."),
            winner_id=_text("authority and vote: the unit that is right."),
            synthesis=_text("synthesis: the statement that replaces both."),
        ),
    ),
    "REPLAY": _object("target_type target_id", target_type=_one_of(TARGETS), target_id=_text(), depth=_one_of(DEPTHS)),
    "COMPACT": _object(
        "strategy",
        strategy=_one_of(("archive", "summarize", "purge"), "purge destroys text and needs authority 10."),
        filter=_object(
            max_age_epochs=_integer("Only units older than this many epochs."),
            session_id=_text(),
            types=_list(_one_of(TYPES)),
            status=_list(_one_of(STATUSES)),
        ),
        reason=_text(),
        dry_run=_flag("Say what would happen; change nothing."),
    ),
    "SUBSCRIBE": _object("action", action=_one_of(("list",), "Over MCP there is no push: poll ATTUNE.")),
    "HANDOFF": _object(
        "action",
        action=_one_of(HANDOFF_ACTIONS),
        handoff_id=_text("accept, reject, get."),
        task_id=_text("initiate: the task."),
        to_agent=_text("initiate: who takes it over."),
        reason=_text(),
        context=_object(summary=_text(), unit_ids=_list(), open_questions=_list(), max_tokens=_integer(least=1)),
    ),
    "COORDINATE": _object(
        "action",
        action=_one_of(_TASK_ACTIONS),
        task=_object(
            id=_text("All but create and list."),
            title=_text("create: what is to be done."),
            description=_text(),
            assignee=_text("An agent's id."),
            depends_on=_list(about="Ids of tasks that come first."),
            priority={"type": ["integer", "string"]},
            result_unit_id=_text("complete: the unit with the result."),
        ),
        reason=_text(),
    ),
    "SESSION": _object(
        "action",
        action=_one_of(_SESSION_ACTIONS),
        session=_object(
            id=_text(),
            goal=_text(),
            members=_list(about="Agents' ids."),
            policy=_object(
                membership=_one_of(("invite", "open")),
                role_rules=_list(_object("role deny_types", role=_text(), deny_types=_list(_one_of(TYPES)))),
                min_authority={"type": "object", "additionalProperties": _integer()},
                vote_quorum=_integer(least=1),
                cross_session=_flag("Members also see the other sessions they are in."),
            ),
        ),
    ),
}
"""By operation."""

SUMMARIES: Mapping[str, str] = {
    "REGISTER": "Join the Field. The answer lists what this Field supports.",
    "DEREGISTER": "Leave the Field. What you recorded stays.",
    "RECORD": "Record something the team should know. Say why in intent.purpose and how sure you are.",
    "ATTUNE": "Get the units that matter to you now. To follow the Field, ask again with since_epoch.",
    "DETECT": "Find contradictions between units.",
    "MERGE": "Resolve a conflict between two units.",
    "REPLAY": "How a unit, task, conflict or session came to be, from the log.",
    "COMPACT": "Keep the Field small: archive, summarize or purge old units.",
    "SUBSCRIBE": "List your subscriptions. Over MCP there is no push: poll ATTUNE with since_epoch.",
    "HANDOFF": "Hand a task to another agent with the context it needs.",
    "COORDINATE": "Create and move tasks of the team.",
    "SESSION": "Sessions: who works together, and who sees what.",
}
"""Each operation in a sentence."""
