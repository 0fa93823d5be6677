"""Items of a Responses conversation: their JSON text as received, and copies for reading.

The text of an item is never rewritten. Everything that compares, counts or sends works on parsed copies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

Json = dict[str, Any]

CALLS: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "local_shell_call": "local_shell_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
    "mcp_approval_request": "mcp_approval_response",
}
"""Every kind of call with the kind of item that answers it. Kinds do not mix."""

OUTPUTS: Mapping[str, str] = {output: call for call, output in CALLS.items()}

HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
    }
)
"""Calls that the provider carries out itself: no output answers them."""

COMPACTIONS = frozenset({"compaction", "compaction_summary"})
"""The type of a compaction item, and its name on older servers."""

KNOWN_TYPES = (
    frozenset(CALLS)
    | frozenset(OUTPUTS)
    | HOSTED
    | COMPACTIONS
    | {"message", "reasoning", "item_reference", "additional_tools", "configuration_update"}
)

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ROLES = frozenset({"user", "assistant", "system", "developer"})


class Item:
    """One item: its JSON text, and a copy parsed on first use. `value` is never modified."""

    __slots__ = ("_hash", "_value", "sizes", "text")

    def __init__(self, text: str, value: Any = None) -> None:
        self.text = text
        self._value = value
        self._hash: str | None = None
        self.sizes: dict[int | None, tuple[int, str | None]] = {}
        """Cache of `estimate`, by the flat price of a low-detail picture."""

    @classmethod
    def of(cls, given: Any) -> Item:
        """Make an item from a caller's input: an Item, a mapping, or a typed object of the SDK."""
        if isinstance(given, Item):
            return given
        return cls(compact(plain(given)))

    @property
    def value(self) -> Any:
        """The parsed item."""
        if self._value is None:
            self._value = json.loads(self.text)
        return self._value

    @property
    def type(self) -> str:
        """The item's type; a message may leave it out."""
        return item_type(self.value)

    @property
    def is_compaction(self) -> bool:
        """Whether it stands for compacted items: as an item of its own, or as a block of a message."""
        return self.type in COMPACTIONS or bool(compaction_blocks(self.value))

    @property
    def hash(self) -> str:
        """SHA-256 of the text as received."""
        if self._hash is None:
            self._hash = hashlib.sha256(encode(self.text)).hexdigest()
        return self._hash

    def __repr__(self) -> str:
        return f"<Item {self.type}, {len(self.text)} characters>"


class _Envelope(msgspec.Struct):
    output: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    item: msgspec.Raw = msgspec.Raw(b"null")


def plain(given: Any) -> Any:
    """Convert a mapping or a typed object of the SDK into plain JSON."""
    dump = getattr(given, "to_dict", None)
    if callable(dump):
        return dump()
    if isinstance(given, Mapping):
        return {key: plain(value) for key, value in given.items()}
    if isinstance(given, list | tuple):
        return [plain(value) for value in given]
    return given


def input_items(given: Any) -> list[Item]:
    """The `input` of a request as items; a text is one user message."""
    if given is None:
        return []
    if isinstance(given, str):
        return [Item.of({"type": "message", "role": "user", "content": given})]
    return [Item.of(item) for item in given]


def output_items(text: str | bytes) -> tuple[Any, list[Item] | None]:
    """A response body parsed, and the items of its `output` with their text as received; None without an output list.

    Raises ValueError when the body is not JSON.
    """
    data = encode(text) if isinstance(text, str) else text
    body = json.loads(data)
    output = body.get("output") if isinstance(body, dict) else None
    if not isinstance(output, list):
        return body, None
    try:
        raws = msgspec.json.decode(data, type=_Envelope).output
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raws = None
    if raws is None or len(raws) != len(output):
        return body, [Item(compact(value), value) for value in output]
    return body, [Item(bytes(raw).decode(), value) for raw, value in zip(raws, output, strict=True)]


def event_item(data: str | bytes) -> Item | None:
    """The item of a `response.output_item.done` event, with its text as received."""
    try:
        text = bytes(msgspec.json.decode(data, type=_Event).item).decode()
        return None if text == "null" else Item(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        value = json.loads(data).get("item")
        return None if value is None else Item(compact(value), value)


def json_object(text: str | bytes) -> Json:
    """Parse a JSON object; empty when the text is not one."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def item_type(value: Any) -> str:
    """The type of a parsed item: a message may leave it out, and so may a reference."""
    if not isinstance(value, dict):
        return kind_of(value)
    named = value.get("type")
    if isinstance(named, str):
        return named
    if named is None and isinstance(value.get("role"), str):
        return "message"
    if named is None and set(value) <= {"id", "type"} and "id" in value:
        return "item_reference"
    return "object"


def by_id(items: Iterable[Item]) -> dict[str, Item]:
    """The items that have an id, keyed by it."""
    named = ((item.value.get("id"), item) for item in items if isinstance(item.value, dict))
    return {name: item for name, item in named if isinstance(name, str)}


def kind_of(value: Any) -> str:
    """The JSON kind of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def well_formed(value: Any) -> bool:
    """Whether a parsed item has a known shape."""
    if not isinstance(value, dict) or item_type(value) not in KNOWN_TYPES:
        return False
    if item_type(value) != "message":
        return True
    content = value.get("content")
    parts = isinstance(content, str) or (isinstance(content, list) and all(isinstance(p, dict) for p in content))
    role = value.get("role")
    return isinstance(role, str) and role in _ROLES and parts


def compact(value: Any) -> str:
    """JSON without whitespace, keys in their order."""
    return _COMPACT.encode(value)


def encode(text: str) -> bytes:
    """UTF-8 bytes of a text; lone surrogates are kept, so that no text is refused."""
    return text.encode("utf-8", "surrogatepass")


def prefix_hash(items: Sequence[Item]) -> str:
    """One hash over the texts of items, in order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(item.hash.encode())
    return digest.hexdigest()


def payloads(items: Iterable[Item]) -> list[str]:
    """Return the provider's payloads in compaction items and blocks, in order."""
    made = (part for item in items if item.is_compaction for part in compaction_blocks(item.value) or [item.value])
    found = (part.get("encrypted_content") or part.get("content") for part in made)
    return [text for text in found if isinstance(text, str)]


def compaction_blocks(value: Any) -> list[Json]:
    """The compaction blocks of a message of the Messages API, without failed ones, which have no content."""
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list):
        return []
    return [
        part
        for part in content
        if isinstance(part, dict)
        and part.get("type") == "compaction"
        and (part.get("content") or part.get("encrypted_content"))
    ]


def payload_hash(text: str) -> str:
    """SHA-256 hex of an encrypted string."""
    return hashlib.sha256(encode(text)).hexdigest()


def developer_note(text: str) -> Item:
    """Build a developer message that informs the model about items it no longer sees."""
    return Item.of({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]})
