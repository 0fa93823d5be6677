"""mem0's filters: fields, comparison operators, AND, OR, NOT and the wildcard `*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reverie.core.errors import Invalid

_DEEPEST = 20
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: value == other,
    "ne": lambda value, other: value != other,
    "in": lambda value, other: value in other,
    "gt": lambda value, other: value is not None and value > other,
    "gte": lambda value, other: value is not None and value >= other,
    "lt": lambda value, other: value is not None and value < other,
    "lte": lambda value, other: value is not None and value <= other,
    "contains": lambda value, other: value is not None and other in value,
    "icontains": lambda value, other: value is not None and str(other).casefold() in str(value).casefold(),
}


def holds(filters: Mapping[str, Any], memory: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a memory matches. Raises Invalid for an operator that is not known."""
    if depth > _DEEPEST:
        raise Invalid("Filters are nested too deep.", pointer="/filters")
    for name, wanted in filters.items():
        if name in ("AND", "OR", "NOT"):
            parts = wanted if isinstance(wanted, list) else [wanted]
            if not all(isinstance(part, Mapping) for part in parts):
                raise Invalid(f"{name} takes a list of filters.", pointer=f"/filters/{name}")
            held = [holds(part, memory, depth + 1) for part in parts]
            if not {"AND": all(held), "OR": any(held), "NOT": not any(held)}[name]:
                return False
        elif name == "metadata" and isinstance(wanted, Mapping):
            metadata = memory["metadata"]
            if not all(_compare(metadata.get(key), value) for key, value in wanted.items()):
                return False
        elif not _compare(memory[name] if name in memory else memory["metadata"].get(name), wanted):
            return False
    return True


def _compare(value: Any, wanted: Any) -> bool:
    if wanted == "*":
        return value is not None
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    for operator, other in wanted.items():
        if operator not in _COMPARE:
            raise Invalid(f"A filter has no operator of that name. Known: {', '.join(_COMPARE)}.", pointer="/filters")
        try:
            if not _COMPARE[operator](value, other):
                return False
        except TypeError:
            return False
    return True


def named(filters: Mapping[str, Any], field: str) -> str | None:
    """The one value that a field must have; None when the filters leave it open."""
    value = filters.get(field)
    if isinstance(value, str) and value != "*":
        return value
    parts = filters.get("AND")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, Mapping) and (found := named(part, field)) is not None:
            return found
    return None
