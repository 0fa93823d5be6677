"""The answers of the mem0 routes in the OpenAPI document, as the mem0 client reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType


class Shape(Struct, kw_only=True):
    schema_prefix: ClassVar[str] = "Mem0"


class Ping(Shape):
    status: Literal["ok"]
    org_id: str
    project_id: str
    user_email: None


class AddedRow(Shape):
    id: str
    memory: str
    event: Literal["ADD"]


class Added(Shape):
    results: list[AddedRow]


class Memory(Shape):
    id: str
    memory: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    hash: str
    metadata: dict[str, Any]
    categories: list[str]
    created_at: str
    updated_at: str
    expiration_date: str | None


class Hit(Memory):
    score: Annotated[float, Meta(ge=0, le=1)]


class Found(Shape):
    results: list[Hit]


class Page(Shape):
    count: int
    next: str | None
    previous: str | None
    results: list[Memory]


class Message(Shape):
    message: str


class Entity(Shape):
    id: str
    name: str
    type: Literal["user", "agent", "app", "run"]
    total_memories: int
    updated_at: str


class Entities(Shape):
    count: int
    next: None
    previous: None
    results: list[Entity]


class Fault(Shape):
    detail: str
    code: str
    details: dict[str, Any] | UnsetType = UNSET


HISTORY: Mapping[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["id", "memory_id", "old_memory", "new_memory", "event", "metadata", "user_id"],
        "properties": {
            "id": {"type": "string"},
            "memory_id": {"type": "string"},
            "old_memory": {"type": ["string", "null"]},
            "new_memory": {"type": "string"},
            "event": {"enum": ["ADD", "UPDATE"]},
            "metadata": {"type": "object"},
            "user_id": {"type": ["string", "null"]},
            "created_at": {"type": "string"},
            "updated_at": {"type": "string"},
        },
    },
}
"""The texts of a memory, oldest first."""
