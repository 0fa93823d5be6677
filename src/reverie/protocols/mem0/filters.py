"""mem0's filters: fields, comparison operators, AND, OR, NOT and the wildcard `*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reverie.core.errors import Invalid

ENTITIES = ("user_id", "agent_id", "app_id", "run_id")
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
    _check_depth(depth)
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


def scoped(filters: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether the filters name a user, agent, app or run. A wildcard, and a name in NOT, do not count."""
    _check_depth(depth)
    if any(_values(filters.get(field)) for field in ENTITIES):
        return True
    parts = (part for name in ("AND", "OR") for part in _parts(filters.get(name)))
    return any(scoped(part, depth + 1) for part in parts)


def users(filters: Mapping[str, Any], depth: int = 0) -> frozenset[str] | None:
    """The users whose memories can match; None when the filters leave them open."""
    _check_depth(depth)
    limits = [_values(filters.get("user_id")), *(users(part, depth + 1) for part in _parts(filters.get("AND")))]
    choices = [users(part, depth + 1) for part in _parts(filters.get("OR"))]
    known = [choice for choice in choices if choice is not None]
    if known and len(known) == len(choices):
        limits.append(frozenset().union(*known))
    found = [limit for limit in limits if limit is not None]
    return frozenset.intersection(*found) if found else None


def _values(wanted: Any) -> frozenset[str] | None:
    """The values that a field may have; None when that is open."""
    if isinstance(wanted, Mapping):
        wanted = wanted["eq"] if "eq" in wanted else wanted.get("in")
        if isinstance(wanted, list):
            return frozenset(value for value in wanted if isinstance(value, str))
    return frozenset({wanted}) if isinstance(wanted, str) and wanted != "*" else None


def _parts(wanted: Any) -> list[Mapping[str, Any]]:
    """The filters that an operator joins. `holds` refuses what is none."""
    parts = wanted if isinstance(wanted, list) else [wanted]
    return [part if isinstance(part, Mapping) else {} for part in parts if part is not None]


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise Invalid("Filters are nested too deep.", pointer="/filters")
