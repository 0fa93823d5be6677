"""The test seams in the OpenAPI document: present while they are switched on, like their routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from reverie.http.routes import DocumentedAnswer, Form
from reverie.protocols.openwop.http.described import CamelCase, Object, RunEvent, Time, refusals

TAGS = ("openwop test seams",)
Event = Annotated[Object, Meta(description="`type`, `ts` and the fields of the payload, which is also in `payload`.")]


class SeamPlanted(CamelCase):
    planted_ids: list[str]
    secrets_registered: int | UnsetType = UNSET


class SeamForgotten(CamelCase):
    forgotten: int


class SeamCompacted(CamelCase):
    type: Literal["memory.compacted"]
    payload: Object
    output_content: str
    run_id: str
    secrets_registered: int | UnsetType = UNSET


class SeamDistilled(CamelCase):
    event: Event
    archive_checksum: str
    index_updated: bool
    run_id: str
    archive: Object
    output_content: str
    index_file: Object | UnsetType = UNSET
    secrets_registered: int | UnsetType = UNSET


class SeamConsolidated(CamelCase):
    event: Event
    run_id: str
    secret_leaked: bool | UnsetType = UNSET


class SeamFired(CamelCase):
    event: Event
    fire_count: int
    run_id: str
    intention_canary: str | UnsetType = UNSET


class SeamEntry(CamelCase):
    id: str
    content: str
    tags: list[str]
    created_at: Time
    expires_at: Time | UnsetType = UNSET


class SeamEntries(CamelCase):
    memory_ref: str
    entries: list[SeamEntry]
    as_of: str | UnsetType = UNSET


class SeamTicked(CamelCase):
    runs_fired: int
    run_ids: list[str]


class SeamDispatched(CamelCase):
    agent_id: str
    status: Literal["completed", "escalated"]
    events: list[Object]
    run_id: str


class SeamEvents(CamelCase):
    events: list[RunEvent]


def seam(
    name: str,
    summary: str,
    form: Form,
    *,
    status: int = 200,
    nothing: str = "",
) -> dict[str, Any]:
    """Describe a route; `nothing` is the condition under which it answers 204."""
    answers = {
        status: DocumentedAnswer(body=form),
        **({204: DocumentedAnswer(nothing)} if nothing else {}),
        **refusals(),
    }
    return {"id": f"seam_{name}", "summary": summary, "tags": TAGS, "answers": answers}
