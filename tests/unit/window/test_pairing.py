"""Safe boundaries: no pair is ever torn apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.window import safe_boundary
from reverie.window.items import CALLS
from reverie.window.pairing import boundaries, pair

USER = {"type": "message", "role": "user", "content": "x"}
REASON = {"type": "reasoning", "summary": [], "encrypted_content": "e"}


def a_call(kind: str, number: int) -> dict[str, Any]:
    if kind == "mcp_approval_request":
        return {"type": kind, "id": f"c{number}"}
    return {"type": kind, "id": f"i{number}", "call_id": f"c{number}"}


def an_output(kind: str, number: int) -> dict[str, Any]:
    output = CALLS.get(kind, f"{kind}_output")
    if kind == "mcp_approval_request":
        return {"type": output, "approval_request_id": f"c{number}", "approve": True}
    if kind == "local_shell_call":
        return {"type": output, "id": f"c{number}", "output": "x"}
    return {"type": output, "call_id": f"c{number}", "output": "x"}


KINDS = [*CALLS, "mystery_call"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_is_whole_or_not_cut(kind: str) -> None:
    one, two = a_call(kind, 1), an_output(kind, 1)
    assert safe_boundary([USER, one, two]) == 3
    assert boundaries([USER, one, two]) == [1, 3]
    assert safe_boundary([USER, one]) == 1
    assert safe_boundary([one]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_without_its_call_makes_the_window_invalid(kind: str) -> None:
    assert safe_boundary([USER, an_output(kind, 1)]) == 0
    assert safe_boundary([USER, an_output(kind, 1), a_call(kind, 1)]) == 0
    assert pair([USER, an_output(kind, 1)]).orphans == [1]


def test_kinds_do_not_mix() -> None:
    items = [a_call("function_call", 1), an_output("custom_tool_call", 1)]
    assert pair(items).orphans == [1]
    assert pair(items).open == [0]


def test_hosted_calls_are_complete_in_themselves() -> None:
    for kind in ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"):
        assert safe_boundary([{"type": kind, "id": "x"}]) == 1
    assert safe_boundary([{"type": "mcp_list_tools", "id": "x"}]) == 1


def test_reasoning_belongs_to_what_follows() -> None:
    assert safe_boundary([USER, REASON]) == 1
    assert safe_boundary([REASON]) == 0
    assert safe_boundary([USER, REASON, a_call("function_call", 1)]) == 1


def test_one_huge_message_is_a_legal_prefix() -> None:
    assert safe_boundary([USER]) == 1
    assert safe_boundary([]) == 0


def test_tool_searches_pair_by_order_and_the_servers_need_no_output() -> None:
    search = {"type": "tool_search_call", "execution": "client"}
    assert safe_boundary([search, {"type": "tool_search_output", "tools": []}]) == 2
    assert safe_boundary([USER, search]) == 1
    assert safe_boundary([{"type": "tool_search_call", "execution": "server", "call_id": None}]) == 1


def test_the_calls_of_a_program_belong_inside_it() -> None:
    program = {"type": "program", "id": "p", "call_id": "p1"}
    inner = {"type": "function_call", "call_id": "f", "name": "f", "caller": {"type": "program", "caller_id": "p1"}}
    done = {"type": "function_call_output", "call_id": "f", "output": "x"}
    end = {"type": "program_output", "call_id": "p1", "result": "x"}
    assert boundaries([USER, program, inner, done, end]) == [1, 5]
    assert boundaries([USER, program, end, inner, done]) == [1, 5]


def test_a_call_that_is_answered_again_later_is_not_cut() -> None:
    one, two = a_call("function_call", 1), an_output("function_call", 1)
    assert boundaries([one, two, USER, two]) == [4]


MOVES = st.lists(st.tuples(st.sampled_from(["user", "call", "output", "reason"]), st.integers(0, 3)), max_size=14)


@given(MOVES)
def test_the_boundary_is_the_latest_safe_one(moves: list[tuple[str, int]]) -> None:
    items = [
        USER
        if move == "user"
        else REASON
        if move == "reason"
        else a_call("function_call", n)
        if move == "call"
        else an_output("function_call", n)
        for move, n in moves
    ]
    found = safe_boundary(items)
    orphan = bool(pair(items).orphans)
    if orphan:
        assert found == 0
        return

    def safe(k: int) -> bool:
        """The definition, word for word."""
        calls = [i["call_id"] for i in items[:k] if i["type"] == "function_call"]
        outputs = [i["call_id"] for i in items[:k] if i["type"] == "function_call_output"]
        later = {i["call_id"] for i in items[k:] if i["type"] == "function_call_output"}
        fresh = {i["call_id"] for i in items[k:] if i["type"] == "function_call"}
        if any(calls.count(c) > outputs.count(c) for c in calls) or items[k - 1]["type"] == "reasoning":
            return False
        return not ((set(calls) & later) - fresh)

    if len({i["call_id"] for i in items if i["type"] == "function_call"}) == sum(
        i["type"] == "function_call" for i in items
    ):
        assert found == max((k for k in range(1, len(items) + 1) if safe(k)), default=0)
