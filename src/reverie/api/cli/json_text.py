"""Changes of a JSON text in place: entries are added, replaced or removed; every other byte stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(slots=True)
class _Node:
    """A value in a text, with its place and its members."""

    start: int
    end: int
    value: Any
    keys: list[tuple[int, str]] = field(default_factory=list)
    """For an object: the start and the name of each key."""
    below: list[_Node] = field(default_factory=list)


def rewritten(text: str, document: Mapping[str, Any]) -> str:
    """The text of a JSON object, edited so that it says `document`."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    style = (found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n")
    edits = list(_edits(_node(text, _past(text, 0)), document, style, 1))
    for start, end, new in sorted(edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _past(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _node(text: str, at: int) -> _Node:
    value, end = _DECODER.raw_decode(text, at)
    node = _Node(at, end, value)
    if not isinstance(value, dict | list) or not value:
        return node
    at = _past(text, at + 1)
    while True:
        if isinstance(value, dict):
            name, after = _DECODER.raw_decode(text, at)
            node.keys.append((at, name))
            at = _past(text, _past(text, after) + 1)
        child = _node(text, at)
        node.below.append(child)
        at = _past(text, child.end)
        if text[at] != ",":
            return node
        at = _past(text, at + 1)


def _edits(node: _Node, wanted: Any, style: tuple[str, str], depth: int) -> Iterator[tuple[int, int, str]]:
    if _same(node.value, wanted):
        return
    if isinstance(node.value, dict) and isinstance(wanted, dict):
        names = [name for _, name in node.keys]
        kept = [at for at, name in enumerate(names) if name in wanted]
        for at in kept:
            yield from _edits(node.below[at], wanted[names[at]], style, depth + 1)
        new = [f"{json.dumps(n, ensure_ascii=False)}: {_dump(v, style, depth)}" for n, v in _new(names, wanted)]
        starts = [start for start, _ in node.keys]
    elif isinstance(node.value, list) and isinstance(wanted, list) and (rest := _tail(node.value, wanted)) is not None:
        kept, tail = rest
        new = [_dump(value, style, depth) for value in tail]
        starts = [child.start for child in node.below]
    else:
        yield node.start, node.end, _dump(wanted, style, depth - 1)
        return
    yield from _members(node, starts, kept, new, style, depth)


def _new(names: list[str], wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in wanted.items() if name not in names)


def _members(
    node: _Node, starts: list[int], kept: list[int], new: list[str], style: tuple[str, str], depth: int
) -> Iterator[tuple[int, int, str]]:
    """Edits that remove the members not kept, each with one comma, and add the new ones after the last."""
    unit, line = style
    gap = line + unit * depth
    if not kept:
        inside = gap + f",{gap}".join(new) + line + unit * (depth - 1) if new else ""
        yield node.start + 1, node.end - 1, inside
        return
    if kept[0] > 0:
        yield starts[0], starts[kept[0]], ""
    for before, at in zip(kept, [*kept[1:], len(starts)], strict=True):
        if at > before + 1:
            yield node.below[before].end, node.below[at - 1].end, ""
    if new:
        end = node.below[-1].end
        yield end, end, "".join(f",{gap}{text}" for text in new)


def _tail(before: list[Any], wanted: list[Any]) -> tuple[list[int], list[Any]] | None:
    """(Indices of the elements that stay, in order; the new ones after them.) None when the order changed."""
    kept: list[int] = []
    left = list(wanted)
    for at, value in enumerate(before):
        if left and _same(left[0], value):
            kept.append(at)
            left.pop(0)
    return (kept, left) if not any(_same(value, old) for value in left for old in before) else None


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, where 1 is not true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _dump(value: Any, style: tuple[str, str], depth: int) -> str:
    unit, line = style
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", line + unit * depth)
