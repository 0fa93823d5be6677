"""Requests of the protocol: bodies as structs, queries by name, and the faults of both in the protocol's words."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Struct
from starlette.datastructures import QueryParams

from reverie.core.clock import from_iso
from reverie.core.errors import Invalid

T = TypeVar("T", bound=Struct)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*?)`)?")
_AT = re.compile(r"(.*) - at `(?:key in )?\$(.*?)`", re.DOTALL)
MOST_ITEMS = 100
FULL_ITEMS = 20


class Closed(Struct, frozen=True, forbid_unknown_fields=True):
    """A body that takes the named fields and no others."""

    schema_prefix: ClassVar[str] = "Anthropic"


class WriteOptions(Closed, frozen=True):
    session: str | None = None


class ToolOptions(Closed, frozen=True):
    session: str | None = None
    on_exists: str = "error"
    view_limit: int | None = None


class StoreIn(Closed, frozen=True):
    name: str
    description: str | None = None
    metadata: dict[str, str] | None = None
    reverie: WriteOptions | None = None


class StorePatch(Closed, frozen=True):
    name: str | None = None
    description: str | None = None
    metadata: dict[str, str | None] | None = None
    reverie: WriteOptions | None = None


class MemoryIn(Closed, frozen=True):
    path: str
    content: str
    reverie: WriteOptions | None = None


class Precondition(Closed, frozen=True):
    type: Literal["content_sha256"]
    content_sha256: str


class MemoryPatch(Closed, frozen=True):
    content: str | None = None
    path: str | None = None
    precondition: Precondition | None = None
    reverie: WriteOptions | None = None


class SearchIn(Closed, frozen=True):
    query: str
    limit: int = 10


class ToolIn(Closed, frozen=True):
    command: str
    path: str | None = None
    view_range: list[int] | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None
    old_path: str | None = None
    new_path: str | None = None
    reverie: ToolOptions | None = None


class Empty(Closed, frozen=True):
    reverie: WriteOptions | None = None


def session_of(options: WriteOptions | ToolOptions | None) -> str | None:
    """The session that a write names."""
    session = options.session if options is not None else None
    if session is not None and not 0 < len(session) <= 256:
        raise Invalid("reverie.session: it has 1 to 256 characters.", pointer="/reverie/session")
    return session


def read_body(document: Any, kind: type[T]) -> T:
    """A parsed JSON body as a struct. Unknown fields and wrong types are refused, with the name of the field."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as fault:
        text = str(fault)
    unknown = _UNKNOWN.match(text)
    if unknown:
        name = _field((unknown[2] or "") + "." + unknown[1])
        raise Invalid(f"{name}: Extra inputs are not permitted", pointer=f"/{name}") from None
    placed = _AT.match(text)
    name, message = (_field(placed[2]), placed[1]) if placed else ("body", text)
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if missing:
        name = missing[1] if name in ("body", "") else f"{name}.{missing[1]}"
        message = "Field required"
    raise Invalid(f"{name}: {message}", pointer=f"/{name}") from None


def _field(path: str) -> str:
    return path.replace("[...]", "").strip(".")[:128] or "body"


class Query:
    """The query of a request."""

    def __init__(self, given: QueryParams) -> None:
        self._given = given

    def text(self, name: str) -> str | None:
        """One value; sent twice, it is refused."""
        sent = self._given.getlist(name)
        if len(sent) > 1:
            raise Invalid(f"{name}: it was sent twice.", pointer=f"/{name}")
        return sent[0] if sent else None

    def texts(self, name: str) -> list[str]:
        """A list, as `name[]=a&name[]=b` or `name=a&name=b`."""
        return [*self._given.getlist(f"{name}[]"), *self._given.getlist(name)]

    def choice(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str | None:
        """One of the allowed values."""
        value = self.text(name)
        if value is not None and value not in allowed:
            raise Invalid(f"{name}: it is one of {', '.join(allowed)}.", pointer=f"/{name}")
        return default if value is None else value

    def flag(self, name: str) -> bool:
        """`true` or `false`; false when absent."""
        return self.choice(name, ("true", "false")) == "true"

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number between two others."""
        value = self.text(name)
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise Invalid(f"{name}: it is a whole number from {least} to {most}.", pointer=f"/{name}")
        return int(value)

    def limit(self, *, full: bool = False) -> int:
        """Items of a page: 1 to 100, 20 by default; with their content never more than 20."""
        asked = self.number("limit", FULL_ITEMS, 1, MOST_ITEMS)
        return min(asked, FULL_ITEMS) if full else asked

    def instant(self, name: str) -> int | None:
        """An RFC 3339 instant in milliseconds."""
        value = self.text(name)
        try:
            return from_iso(value.replace(" ", "+")) if value is not None else None
        except Invalid:
            message = "it is an RFC 3339 time such as 2026-11-15T08:05:09Z."
            raise Invalid(f"{name}: {message}", pointer=f"/{name}") from None

    def full(self, default: str) -> bool:
        """Whether `view` asks for content."""
        return self.choice("view", ("basic", "full"), default) == "full"

    def question(self, *besides: str) -> bytes:
        """Everything a cursor is bound to: the filters, without the page and its size."""
        left_out = {"page", "limit", "beta", *besides}
        return msgspec.json.encode(sorted([*pair] for pair in self._given.multi_items() if pair[0] not in left_out))
