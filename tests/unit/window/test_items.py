"""Estimates, what is stripped, what may replace a prefix, and what an error means."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.window import (
    Base,
    Item,
    WindowPolicy,
    WindowState,
    build_checkpoint,
    classify_error,
    default_trigger,
    estimate,
    strip_for_compact,
    validate_replacement,
)
from reverie.window.errors import refuses_trigger
from reverie.window.items import event_item, output_items, payload_hash
from reverie.window.replacement import retained_messages
from reverie.window.strip import without_message_ids
from reverie.window.transcript import turn_drafts

CMP = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAA", "created_by": "x"}
USER = {"type": "message", "id": "msg_1", "status": "completed", "role": "user", "content": "hello"}


def size(value: Any) -> int:
    return math.ceil(len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) / 4)


# estimates


@given(st.text(max_size=40))
def test_an_item_counts_a_quarter_of_its_bytes_without_decoration(text: str) -> None:
    bare = {"type": "message", "role": "user", "content": text}
    assert estimate([{**bare, "id": "msg_x", "status": "completed"}]) == size(bare)
    assert estimate([bare, bare]) == 2 * size(bare)


def test_payloads_count_what_they_stand_for() -> None:
    rest = {key: value for key, value in CMP.items() if key not in ("id", "encrypted_content")}
    assert estimate([CMP]) == size(rest) + 2000
    assert estimate([CMP], payload_tokens={payload_hash("gAAAA"): 50}) == size(rest) + 50
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "x" * 81}
    assert estimate([reasoning]) == size({"type": "reasoning", "summary": []}) + 11


def test_the_default_trigger_leaves_room_for_the_answer() -> None:
    assert default_trigger(None) == 80_000
    assert default_trigger(128_000) == 80_000
    assert default_trigger(400_000) == 280_000
    assert default_trigger(128_000, 4_000) == 89_600
    assert default_trigger(400_000, 128_000) == 256_000


# stripping


def test_ids_are_stripped_only_when_the_provider_keeps_nothing() -> None:
    assert strip_for_compact([USER], True) == [USER]
    assert strip_for_compact([USER], False) == [{"type": "message", "role": "user", "content": "hello"}]


@pytest.mark.parametrize("kind", ["mcp_approval_request", "local_shell_call_output", "program", "program_output"])
def test_an_id_that_joins_a_pair_stays(kind: str) -> None:
    (sent,) = strip_for_compact([{"type": kind, "id": "x", "status": "completed"}], False)
    assert sent["id"] == "x"
    assert ("status" in sent) is (kind == "program_output")


@pytest.mark.parametrize(
    ("kind", "status", "kept"),
    [
        ("apply_patch_call", "completed", True),
        ("apply_patch_call_output", "failed", True),
        ("computer_call", "completed", True),
        ("web_search_call", "completed", True),
        ("function_call_output", "incomplete", True),
        ("function_call_output", "completed", False),
        ("function_call", "completed", False),
        ("message", "completed", False),
        ("some_later_call", "completed", True),
    ],
)
def test_a_status_stays_where_the_type_requires_it_or_where_it_says_something(
    kind: str, status: str, kept: bool
) -> None:
    (sent,) = strip_for_compact([{"type": kind, "id": "x", "call_id": "c", "status": status}], False)
    assert ("status" in sent) is kept


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
def test_an_id_that_stands_for_the_call_id_becomes_it(kind: str) -> None:
    assert strip_for_compact([{"type": kind, "id": "x", "name": "f"}], False) == [
        {"type": kind, "name": "f", "call_id": "x"}
    ]
    kept = strip_for_compact([{"type": kind, "id": "x", "call_id": "c"}], False)
    assert kept == [{"type": kind, "call_id": "c"}]


def test_a_compaction_item_is_not_touched_but_for_its_older_name() -> None:
    for store in (True, False):
        assert strip_for_compact([CMP], store) == [CMP]
        older = {**CMP, "type": "compaction_summary", "status": "completed"}
        assert strip_for_compact([older], store) == [CMP]


def test_what_only_a_provider_that_keeps_can_resolve_is_not_sent() -> None:
    reference = {"type": "item_reference", "id": "msg_1"}
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert strip_for_compact([bare], False) == []
    assert strip_for_compact([bare], True) == [bare]
    assert len(strip_for_compact([USER, reference], False)) == 1
    assert strip_for_compact([reference], False, known={"msg_1": Item.of(USER)})[0]["content"] == "hello"


@given(st.lists(st.sampled_from([USER, CMP, {"type": "reasoning", "id": "r", "summary": []}]), max_size=5))
def test_stripping_copies_and_does_it_once(items: list[dict[str, Any]]) -> None:
    before = json.dumps(items)
    once = strip_for_compact(items, False)
    assert json.dumps(items) == before
    assert strip_for_compact(once, False) == once


def test_assistant_ids_go_when_their_reasoning_is_gone() -> None:
    said = {"type": "message", "id": "msg_2", "role": "assistant", "content": []}
    assert "id" not in without_message_ids([said, CMP])[0]
    assert "id" in without_message_ids([{"type": "reasoning", "id": "r"}, said, CMP])[1]
    assert without_message_ids([USER])[0]["id"] == "msg_1"


# replacements

CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("output", "method", "status"),
    [
        ("{broken", "standalone", "rejected_invalid_output"),
        ('{"id": "x"}', "standalone", "rejected_invalid_output"),
        ('{"output": null}', "standalone", "rejected_invalid_output"),
        ([], "standalone", "rejected_empty_output"),
        ([USER], "standalone", "rejected_missing_compaction_item"),
        ([USER], "trigger", "rejected_missing_compaction_item"),
        ([USER, {"type": "compaction"}], "standalone", "rejected_invalid_output"),
        ([{**CMP, "encrypted_content": ""}], "standalone", "rejected_invalid_output"),
        ([{**CMP, "encrypted_content": 3}], "standalone", "rejected_invalid_output"),
        ([CALL, CMP], "standalone", "rejected_invalid_output"),
        ([{"type": "function_call_output", "call_id": "c", "output": ""}, CMP], "standalone", "rejected_invalid_output"),
        ([{"type": "mystery"}, CMP], "standalone", "rejected_invalid_output"),
        (["text", CMP], "standalone", "rejected_invalid_output"),
        ([CMP, CMP], "trigger", "rejected_invalid_output"),
        ([CALL, CMP], "trigger", "rejected_invalid_output"),
        ([CMP, CMP], "standalone", None),
        ([USER, CMP], "standalone", None),
        ([CMP], "trigger", None),
        ([{"type": "compaction_summary", "status": "completed", "encrypted_content": "x"}], "standalone", None),
    ],
)  # fmt: skip
def test_what_may_replace_a_prefix(output: Any, method: str, status: str | None) -> None:
    assert validate_replacement(output, method) == status
    if isinstance(output, list):
        assert validate_replacement(json.dumps({"output": output}), method) == status


def test_a_replacement_that_frees_nothing_is_refused() -> None:
    huge = {"type": "message", "role": "user", "content": "x" * 40_000}
    assert validate_replacement([huge, CMP], "standalone", prefix_tokens=estimate([huge])) == "rejected_no_reduction"
    assert validate_replacement([CMP], "standalone", prefix_tokens=10_000) is None


@given(st.lists(st.integers(1, 400), max_size=8), st.integers(20, 400))
def test_the_newest_user_messages_are_retained_within_the_limit(sizes: list[int], most: int) -> None:
    items = [Item.of({"type": "message", "role": "user", "content": f"{n} " + "x" * s}) for n, s in enumerate(sizes)]
    items += [Item.of({"type": "message", "role": "assistant", "content": "no"})]
    kept = retained_messages(items, most)
    assert estimate(kept) <= most
    whole = [item for item in kept if item in items]
    if whole:
        assert whole == items[len(items) - 1 - len(whole) : -1]
    if len(whole) < len(kept):
        text = kept[0].value["content"][0]["text"]
        assert items[len(items) - 1 - len(kept)].value["content"].startswith(text)


# what is received


def test_items_keep_their_text_to_the_byte() -> None:
    raw = '{"type" : "compaction", "encrypted_content":"a\\u00e9\\/ é", "x": 1.0e3 }'
    body, items = output_items('{"output": [ ' + raw + ' , {}], "usage": {}}')
    assert items is not None
    assert items[0].text == raw
    assert items[0].value["encrypted_content"] == "aé/ é"
    assert body["usage"] == {}


# errors

NOT_KEPT = "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."


def error(message: str = "", code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "pass_status"),
    [
        (404, error(NOT_KEPT, None, "input"), "item_not_persisted", "invalid_non_persisted_item_id"),
        (404, error("The model does not exist", "model_not_found"), "invalid_model", "invalid_model"),
        (404, error("Previous response not found", "previous_response_not_found"), "chain_lost", "failed"),
        (404, error("Project not found", "project_not_found"), "other", "failed"),
        (404, {"detail": "Not Found"}, "endpoint_missing", "unsupported_endpoint"),
        (404, {"detail": "Conversation is gone"}, "other", "failed"),
        (404, error("Invalid URL (POST /v1/responses/compact)"), "endpoint_missing", "unsupported_endpoint"),
        (404, "<html>", "endpoint_missing", "unsupported_endpoint"),
        (404, "", "endpoint_missing", "unsupported_endpoint"),
        (405, error(), "endpoint_missing", "unsupported_endpoint"),
        (410, "gone", "endpoint_missing", "unsupported_endpoint"),
        (501, {}, "endpoint_missing", "unsupported_endpoint"),
        (400, error("", "previous_response_not_found", "previous_response_id"), "chain_lost", "failed"),
        (400, error("", "context_length_exceeded"), "context_window", "failed_context_window"),
        (400, error("", "invalid_encrypted_content"), "encrypted_content", "invalid_encrypted_content"),
        (400, error("No tool output found for function call c.", None, "input"), "unpaired_call", "invalid_input"),
        (400, error("", "unknown_parameter", "tools"), "malformed", "invalid_input"),
        (401, error(), "credentials", "failed"),
        (403, error(), "credentials", "failed"),
        (408, error(), "transient", "failed"),
        (409, error(), "transient", "failed"),
        (429, error("", "rate_limit"), "transient", "failed"),
        (429, error("", "insufficient_quota"), "quota", "failed"),
        (500, "oops", "transient", "failed"),
        (503, "", "transient", "failed"),
        (None, None, "transient", "failed"),
        (200, "{broken", "transient", "failed"),
    ],
)
def test_what_an_error_means(status: int | None, body: Any, kind: str, pass_status: str) -> None:
    for given_body in (body, json.dumps(body).encode() if isinstance(body, dict) else body):
        found = classify_error(status, given_body)
        assert found.kind == kind
        assert found.pass_status == pass_status
        assert found.negative_cache == (kind == "endpoint_missing")


def test_a_failed_stream_is_read_like_a_refusal() -> None:
    event = {
        "type": "response.failed",
        "response": {"status": "failed", **error("too long", "context_length_exceeded")},
    }
    assert classify_error(200, event).kind == "context_window"


def test_what_is_told_of_an_error_holds_none_of_its_text() -> None:
    found = classify_error(400, error("your key sk-abc is wrong", "Some text with sk-abc"))
    assert str(found) == "400"
    assert "sk-abc" not in repr(found)


def test_a_server_that_does_not_know_the_trigger_item() -> None:
    unknown = error(
        "Invalid value: 'compaction_trigger'. Supported values are: 'message'.", "invalid_value", "input[4]"
    )
    assert refuses_trigger(classify_error(400, unknown), unknown)
    misplaced = error("The 'compaction_trigger' item must be the final input item.", "invalid_value", "input")
    assert not refuses_trigger(classify_error(400, misplaced), misplaced)
    other = error("Invalid value: 'x'.", "invalid_value", "tools")
    assert not refuses_trigger(classify_error(400, other), other)


def test_the_item_of_an_event_keeps_its_text() -> None:
    item = event_item('{"type":"response.output_item.done","item":{"a": 1.0,  "b":"\\u00e9"}}')
    assert item is not None
    assert item.text == '{"a": 1.0,  "b":"\\u00e9"}'
    assert event_item('{"type":"response.output_item.done"}') is None


NULLABLE = {"type": "object", "properties": {"unit": {"type": ["string", "null"]}, "of": {"type": {"a": 1}}}}


@pytest.mark.parametrize(
    ("base", "item"),
    [
        ("api", {"type": "mcp_list_tools", "server_label": "m", "tools": [{"name": "f", "input_schema": NULLABLE}]}),
        ("api", {"type": "message", "role": "user", "content": [{"type": ["input_text"], "text": "x"}]}),
        ("api", {"type": "item_reference", "id": ["msg_1"]}),
        ("api", {"type": "function_call_output", "call_id": {"id": "c"}, "output": "x"}),
        ("api", {"type": "reasoning", "summary": 5, "encrypted_content": "gAAAA"}),
        ("api", {"type": "function_call", "call_id": "\ud800", "name": "f", "arguments": "{}"}),
        (
            "messages",
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": NULLABLE}]},
        ),
        ("messages", {"role": "user", "content": [{"type": ["text"], "text": "x"}]}),
        ("messages", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": ["t"], "content": "x"}]}),
    ],
)
def test_fields_of_another_type_than_usual_are_taken(base: Any, item: dict[str, Any]) -> None:
    """Provider and caller decide what is valid; a schema of a tool says `type` in ways of its own."""
    state = WindowState("s", base=Base.of("https://provider.test", base), policy=WindowPolicy(trigger_input_tokens=1))
    answer = (
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
        if base == "messages"
        else {"id": "resp_1", "status": "completed", "output": []}
    )
    for _ in range(2):
        state.begin_round()
        state.plan([item], input_is="items", model="m")
        turn = state.accept(answer)
        state.compaction_request()
    assert estimate(state.items) > 0
    assert build_checkpoint(state.items, reason="manual", created_at="", covered=(0, 1)).text()
    drafts = turn_drafts(
        turn.appended, scope="s", turn="t", first_position=0, follows=None, subject=None, max_bytes=1000
    )
    assert all(json.dumps(draft.attributes, ensure_ascii=False).encode() for draft in drafts)


@pytest.mark.parametrize("name", ["tools", "context_management"])
def test_parameters_of_another_type_are_for_the_provider_to_refuse(name: str) -> None:
    policy = WindowPolicy(edits=[{"type": "clear_tool_uses_20250919"}])
    state = WindowState("s", base=Base.of("https://provider.test", "messages"), policy=policy)
    body, _ = state.plan([{"role": "user", "content": "x"}], input_is="items", model="m", **{name: 5})
    assert body["context_management"]["edits"] == [{"type": "clear_tool_uses_20250919"}]
