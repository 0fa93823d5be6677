"""Walks over JSON without recursion, so that no nesting is too deep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


def strings(value: JSON) -> Iterator[str]:
    """Every string in `value`, keys included."""
    pending: list[JSON] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, dict):
            yield from node
            pending.extend(node.values())


def rebuild(
    value: JSON,
    string: Callable[[str | None, str], str],
    names: Callable[[dict[str, JSON]], dict[str, str]] | None = None,
) -> JSON:
    """Copy `value` with each string `s` under key `k` (None in a list) replaced by `string(k, s)`.

    `names(object)` maps the keys of an object to new ones, in order and without repetition; without `names` keys stay.
    `string` is given the new key.
    """
    top: list[JSON] = [None]
    pending: list[tuple[JSON, list[JSON] | dict[str, JSON], int | str, str | None]] = [(value, top, 0, None)]
    while pending:
        node, parent, place, key = pending.pop()
        made: JSON = node
        if isinstance(node, str):
            made = string(key, node)
        elif isinstance(node, list):
            made = [None] * len(node)
            pending.extend((item, made, i, None) for i, item in enumerate(node))
        elif isinstance(node, dict):
            renamed = names(node) if names else dict(zip(node, node, strict=True))
            made = dict.fromkeys(renamed.values())
            pending.extend((item, made, renamed[old], renamed[old]) for old, item in node.items())
        parent[place] = made  # type: ignore[index]
    return top[0]
