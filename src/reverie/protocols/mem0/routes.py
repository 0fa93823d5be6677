"""Handlers of the mem0 routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field
from starlette.responses import Response

from reverie.core.actor import Right
from reverie.core.clock import from_iso
from reverie.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    ReverieError,
    TooLarge,
    Unauthenticated,
)
from reverie.http.call import Call, needs
from reverie.http.parsing import UnsupportedMedia
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Form, Query, Router, Segment
from reverie.protocols.mem0 import PREFIX, shapes
from reverie.protocols.mem0.memories import KINDS, Memories

router = Router(PREFIX, tags=("mem0",))
_STATUS: tuple[tuple[type[ReverieError], int], ...] = (
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (TooLarge, 413),
    (UnsupportedMedia, 415),
    (RateLimited, 429),
    (Invalid, 400),
)
_MOST = 1000


def _answers(form: Form) -> dict[int, DocumentedAnswer]:
    """Document the answers common to every route. A body has the shape that the mem0 client reads."""
    return {
        200: DocumentedAnswer(body=form),
        **{status: DocumentedAnswer(kind.code, shapes.Fault) for kind, status in _STATUS},
    }


class Whose(Struct, kw_only=True):
    """Owner of a memory."""

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    def names(self) -> dict[str, str]:
        """Those that are given."""
        return {f"{kind}_id": name for kind in KINDS if (name := getattr(self, f"{kind}_id"))}


class Message(Struct):
    role: str = "user"
    content: str | list[dict[str, Any]] | None = None


class AddIn(Whose, kw_only=True):
    schema_prefix: ClassVar[str] = "Mem0"
    messages: list[Message]
    metadata: dict[str, Any] | None = None
    timestamp: int | None = None
    expiration_date: str | None = None


class ListIn(Whose, kw_only=True):
    schema_prefix: ClassVar[str] = "Mem0"
    filters: dict[str, Any] | None = None


class SearchIn(ListIn, kw_only=True):
    schema_prefix: ClassVar[str] = "Mem0"
    query: Annotated[str, Meta(min_length=1)]
    top_k: Annotated[int, Meta(ge=1, le=_MOST)] | None = None
    limit: Annotated[int, Meta(ge=1, le=_MOST)] | None = None
    threshold: float | None = None


class UpdateIn(Struct):
    schema_prefix: ClassVar[str] = "Mem0"
    text: str | None = None
    metadata: dict[str, Any] | None = None


class Paging(Struct):
    page: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int, Meta(ge=1, le=_MOST)] = 100


class BatchRow(Struct):
    memory_id: str
    text: str | None = None
    metadata: dict[str, Any] | None = None


class BatchIn(Struct):
    schema_prefix: ClassVar[str] = "Mem0"
    memories: Annotated[list[BatchRow], Meta(max_length=_MOST)] = field(default_factory=list)


@router.get("/v1/ping/", id="mem0_ping", summary="Owner of the key", answers=_answers(shapes.Ping))
def ping(call: Call) -> Response:
    call.actor.require(Right.READ)
    tenant = call.actor.tenant
    return Reply({"status": "ok", "org_id": tenant, "project_id": tenant, "user_email": None})


@router.post("/v3/memories/add/", id="mem0_add", summary="Store messages as memories", answers=_answers(shapes.Added))
@needs(Right.WRITE)
def add(call: Call, body: AddIn) -> Response:
    texts = [(message.role, text) for message in body.messages if (text := _text(message))]
    if not texts:
        raise Invalid("There is no text in the messages.", pointer="/messages")
    call.charge(len(texts))
    results = _memories(call).add(
        texts,
        body.names(),
        metadata=body.metadata or {},
        created_at=None if body.timestamp is None else body.timestamp * 1000,
        expires_at=_day(body.expiration_date),
    )
    return Reply({"results": results})


@router.post(
    "/v3/memories/",
    id="mem0_get_all",
    summary="List memories by filter, a page at a time",
    answers=_answers(shapes.Page),
)
@needs(Right.READ)
def get_all(call: Call, body: ListIn, paging: Annotated[Paging, Query()]) -> Response:
    start = (paging.page - 1) * paging.page_size
    count, shown = _memories(call).page(_filters(body), start=start, size=paging.page_size)
    here = f"{PREFIX}/v3/memories/?page_size={paging.page_size}&page="
    return Reply(
        {
            "count": count,
            "next": f"{here}{paging.page + 1}" if start + len(shown) < count else None,
            "previous": f"{here}{paging.page - 1}" if paging.page > 1 else None,
            "results": shown,
        }
    )


@router.post("/v3/memories/search/", id="mem0_search", summary="Search memories", answers=_answers(shapes.Found))
@needs(Right.READ)
def search(call: Call, body: SearchIn) -> Response:
    limit = body.top_k or body.limit or 10
    found = _memories(call).search(body.query, _filters(body), limit=limit, threshold=body.threshold or 0.0)
    return Reply({"results": found})


@router.get("/v1/memories/{memory_id}/", id="mem0_get", summary="One memory", answers=_answers(shapes.Memory))
def get(call: Call, memory_id: Segment) -> Response:
    return Reply(_memories(call).get(memory_id))


@router.put("/v1/memories/{memory_id}/", id="mem0_update", summary="Change a memory", answers=_answers(shapes.Memory))
@needs(Right.WRITE)
def update(call: Call, memory_id: Segment, body: UpdateIn) -> Response:
    call.charge(1)
    memories = _memories(call)
    memories.update([(memory_id, body.text, body.metadata)])
    return Reply(memories.get(memory_id))


@router.delete(
    "/v1/memories/{memory_id}/", id="mem0_delete", summary="Delete a memory", answers=_answers(shapes.Message)
)
@needs(Right.WRITE)
def delete(call: Call, memory_id: Segment) -> Response:
    _memories(call).delete([memory_id])
    return Reply({"message": "Memory deleted successfully!"})


@router.get(
    "/v1/memories/{memory_id}/history/",
    id="mem0_history",
    summary="Versions of a memory",
    answers=_answers(shapes.HISTORY),
)
def history(call: Call, memory_id: Segment) -> Response:
    return Reply(_memories(call).history(memory_id))


@router.delete(
    "/v1/memories/",
    id="mem0_delete_all",
    summary="Delete all memories of a user, agent, app or run",
    answers=_answers(shapes.Message),
)
@needs(Right.WRITE)
def delete_all(call: Call, whose: Annotated[Whose, Query()]) -> Response:
    if not whose.names():
        raise Invalid("Name whose memories: user_id, agent_id, app_id or run_id.", pointer="/user_id")
    _memories(call).delete_all(whose.names())
    return Reply({"message": "Memories deleted successfully!"})


@router.get(
    "/v1/entities/",
    id="mem0_entities",
    summary="List users, agents, apps and runs that have memories",
    answers=_answers(shapes.Entities),
)
def entities(call: Call) -> Response:
    found = _memories(call).entities()
    return Reply({"count": len(found), "next": None, "previous": None, "results": found})


@router.delete(
    "/v2/entities/{kind}/{name}/",
    id="mem0_delete_entity",
    summary="Delete a user, agent, app or run with its memories",
    answers=_answers(shapes.Message),
)
@needs(Right.WRITE)
def delete_entity(call: Call, kind: Segment, name: Segment) -> Response:
    if kind not in KINDS:
        raise NotFound("There are users, agents, apps and runs.")
    _memories(call).delete_all({f"{kind}_id": {"eq": name}})  # a name is no wildcard
    return Reply({"message": "Entity deleted successfully!"})


@router.put("/v1/batch/", id="mem0_update_batch", summary="Change several memories", answers=_answers(shapes.Message))
@needs(Right.WRITE)
def update_batch(call: Call, body: BatchIn) -> Response:
    call.charge(len(body.memories))
    _memories(call).update([(row.memory_id, row.text, row.metadata) for row in body.memories])
    return Reply({"message": f"Successfully updated {len(body.memories)} memories"})


@router.delete(
    "/v1/batch/", id="mem0_delete_batch", summary="Delete several memories", answers=_answers(shapes.Message)
)
@needs(Right.WRITE)
def delete_batch(call: Call, body: BatchIn) -> Response:
    _memories(call).delete(row.memory_id for row in body.memories)
    return Reply({"message": f"Successfully deleted {len(body.memories)} memories"})


def _memories(call: Call) -> Memories:
    return Memories(call.host, call.actor)


def _filters(body: ListIn) -> Mapping[str, Any]:
    return {**body.names(), **(body.filters or {})}


def _text(message: Message) -> str:
    content = message.content
    if isinstance(content, list):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part.get("text"), str))
    return (content or "").strip()


def _day(date: str | None) -> int | None:
    """The end of a day."""
    return (
        None if date is None else from_iso(f"{date}T23:59:59Z" if len(date) == 10 else date, pointer="/expiration_date")
    )
