"""Calls and their outputs: where a conversation may be cut without separating a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reverie.window.items import CALLS, HOSTED, OUTPUTS, Item, item_type, plain


@dataclass(slots=True)
class _Call:
    at: int
    kind: str
    key: str | None
    last: int
    open: bool = True
    caller: str | None = None


@dataclass(slots=True)
class Pairing:
    """The calls of a conversation and their answers."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    """(first, last) index of items that belong together."""
    open: list[int] = field(default_factory=list)
    """Calls without an output."""
    orphans: list[int] = field(default_factory=list)
    """Outputs without a call before them."""

    @property
    def whole(self) -> bool:
        """Whether every call has its output and every output its call."""
        return not self.open and not self.orphans


def pair(items: Sequence[Any]) -> Pairing:
    """Find the output of every call. Kinds do not mix; an output comes after its call."""
    calls: list[_Call] = []
    by_key: dict[tuple[str, str | None], list[_Call]] = {}
    result = Pairing()
    for at, value in enumerate(items):
        item = value.value if isinstance(value, Item) else plain(value)
        if not isinstance(item, dict):
            continue
        kind = item_type(item)
        if kind in CALLS or (kind.endswith("_call") and kind not in HOSTED):
            call = _Call(at, kind, _call_key(kind, item), at, caller=_caller(item))
            call.open = not (kind == "tool_search_call" and item.get("execution") == "server")
            calls.append(call)
            by_key.setdefault((kind, call.key), []).append(call)
        elif kind in OUTPUTS or kind.endswith("_output"):
            match = _matching_call(kind, item, by_key)
            if match is not None:
                match.open = False
                match.last = at
            elif _needs_call(kind, item):
                result.orphans.append(at)
    _extend_programs(calls)
    result.spans = [(call.at, call.last) for call in calls if call.last > call.at]
    result.open = [call.at for call in calls if call.open]
    return result


def _caller(item: dict[str, Any]) -> str | None:
    """The program that made a call."""
    caller = item.get("caller")
    name = caller.get("caller_id") if isinstance(caller, dict) else None
    return name if isinstance(name, str) else None


def _extend_programs(calls: Sequence[_Call]) -> None:
    """Extend each program to the last output of the calls that it made."""
    programs = {call.key: call for call in calls if call.kind == "program" and call.key is not None}
    for call in calls:
        program = programs.get(call.caller) if call.caller is not None else None
        if program is not None and program.at < call.at:
            program.last = max(program.last, call.last)


def _needs_call(kind: str, item: dict[str, Any]) -> bool:
    if kind == "tool_search_output" and item.get("execution") == "server":
        return False
    return kind in OUTPUTS or kind.endswith("_call_output") or bool(item.get("call_id"))


def _call_key(kind: str, item: dict[str, Any]) -> str | None:
    key = item.get("id") if kind == "mcp_approval_request" else item.get("call_id") or item.get("id")
    if kind == "tool_search_call" and not item.get("call_id"):
        return None
    return key if isinstance(key, str) else None


def _matching_call(kind: str, item: dict[str, Any], by_key: dict[tuple[str, str | None], list[_Call]]) -> _Call | None:
    if kind == "local_shell_call_output":
        key = item.get("id") or item.get("call_id")
    elif kind == "mcp_approval_response":
        key = item.get("approval_request_id")
    else:
        key = item.get("call_id")
    key = key if isinstance(key, str) else None
    names = (
        [OUTPUTS[kind]] if kind in OUTPUTS else [kind.removesuffix("_output"), f"{kind.removesuffix('_output')}_call"]
    )
    for name in names:
        # by order when a tool search names no call
        candidates = by_key.get((name, key)) or (by_key.get((name, None)) if name == "tool_search_call" else None)
        if candidates:
            return next((call for call in candidates if call.last == call.at), candidates[-1])
    return None


def boundaries(items: Sequence[Any]) -> list[int]:
    """Every safe boundary above 0, in order; none when an output has no call."""
    found = pair(items)
    if found.orphans:
        return []
    safe = [True] * (len(items) + 1)
    for first, last in found.spans:
        for k in range(first + 1, last + 1):
            safe[k] = False
    limit = min(found.open, default=len(items))
    kinds = [item.type if isinstance(item, Item) else item_type(plain(item)) for item in items]
    return [k for k in range(1, limit + 1) if safe[k] and kinds[k - 1] != "reasoning"]


def safe_boundary(items: Sequence[Any]) -> int:
    """The latest k such that `items[:k]` may be compacted: every call in it has its output in it, none of its calls
    is answered after it, and it does not end in a reasoning item. 0 when there is none."""
    found = boundaries(items)
    return found[-1] if found else 0


def adjusted_cut(items: Sequence[Item], cut: int) -> int:
    """`cut`, moved back so that no output is sent without its call, nor a call without its reasoning."""
    spans = pair(items).spans
    moved = True
    while moved and cut > 0:
        moved = False
        for first, last in spans:
            if first < cut <= last:
                cut, moved = first, True
        while moved and cut > 0 and items[cut - 1].type == "reasoning":
            cut -= 1
    return cut
