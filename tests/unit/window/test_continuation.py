"""Match form, shape hash and the diff of a continuation."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.window import Item, diff_continuation, match_form, shape_hash

TEXT = st.text(max_size=12)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}], **more}


def call(number: int, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "f"} | {
        "arguments": arguments,
        "status": "completed",
    }


def test_the_shape_is_hashed_as_sorted_compact_utf8() -> None:
    body = {"model": "m", "temperature": 0.5, "input": [1], "stream": True, "previous_response_id": "r"}
    body |= {"stream_options": {}, "instructions": "größer"}
    text = '{"instructions":"größer","model":"m","temperature":0.5}'
    assert shape_hash(body) == hashlib.sha256(text.encode()).hexdigest()


def test_numbers_in_a_shape_are_hashed_as_written() -> None:
    assert shape_hash('{"temperature": 1.0}') == hashlib.sha256(b'{"temperature":1.0}').hexdigest()
    assert shape_hash('{"temperature": 1e0}') == hashlib.sha256(b'{"temperature":1e0}').hexdigest()


@given(st.dictionaries(TEXT, JSON, max_size=4), st.randoms())
def test_the_order_of_keys_does_not_change_a_shape(body: dict[str, Any], random: Any) -> None:
    keys = list(body)
    random.shuffle(keys)
    assert shape_hash({key: body[key] for key in keys}) == shape_hash(body)
    assert shape_hash(json.dumps(body)) == shape_hash(body)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"role": "user", "content": "hi"}, user("hi", id="msg_1", status="completed")),
        (
            {"role": "assistant", "content": "hi"},
            {
                "type": "message",
                "id": "msg_2",
                "role": "assistant",
                "status": "completed",
                "phase": "final",
                "content": [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}],
            },
        ),
        (call(1, '{"b": 1, "a": 2}'), call(1, '{"a":2,"b":1}')),
        (call(1, ""), call(1, "{}")),
        (
            {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
            {"type": "compaction_summary", "status": "completed", "encrypted_content": "x"},
        ),
        (
            {"type": "function_call_output", "id": "o", "call_id": "c", "output": "1", "status": "completed"},
            {"type": "function_call_output", "call_id": "c", "output": "1"},
        ),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "reasoning", "summary": []}),
    ],
)
def test_decoration_is_left_out_of_the_match_form(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert match_form([one]) == match_form([other])


def test_what_is_said_stays_in_the_match_form() -> None:
    assert match_form([user("a")]) != match_form([user("b")])
    assert match_form([call(1, '{"a":1}')]) != match_form([call(1, '{"a":1.0}')])
    assert match_form([call(1, "{broken")])[0]["arguments"] == "{broken"
    image = {"type": "input_image", "image_url": "https://x/1.png", "detail": "low"}
    form = match_form([{"role": "user", "content": [image]}])[0]
    assert form["content"] == [{"type": "input_image", "image_url": "https://x/1.png"}]


@given(st.lists(st.builds(user, TEXT) | st.builds(call, st.integers(0, 9)), max_size=6))
def test_the_match_form_is_its_own_match_form(items: list[dict[str, Any]]) -> None:
    before = json.dumps(items)
    once = match_form(items)
    assert match_form(once) == once
    assert json.dumps(items) == before
    assert match_form([Item.of(item) for item in items]) == once


@given(st.lists(st.builds(user, TEXT), max_size=5), st.lists(st.builds(user, TEXT), min_size=1, max_size=3))
def test_an_append_is_a_hit(before: list[Any], more: list[Any]) -> None:
    found = diff_continuation(before, [*before, *more])
    assert found["status"] == "hit"
    assert found["incremental_input_items"] == len(more)
    assert found["expected_prefix_items"] == len(before)
    assert "mismatch_kind" not in found


def test_the_same_again_is_no_append() -> None:
    found = diff_continuation([user("a")], [user("a")])
    assert found["status"] == "fallback_full_request"
    assert found["fallback_reason"] == "conversation_not_strict_append_only"
    assert found["first_mismatch_index"] is None


def test_a_shorter_input_ends_at_its_length() -> None:
    found = diff_continuation([user("a"), user("b")], [user("a")])
    assert found["first_mismatch_index"] == 1
    assert found["mismatch_kind"] == "length_mismatch"
    assert found["previous_item_type"] == "message"
    assert found["current_item_type"] is None
    assert found["current_item_hash"] is None


def assistant(text: str, **part: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, **part}]
    return {"type": "message", "role": "assistant", "content": content}


@pytest.mark.parametrize(
    ("before", "now", "path", "kind"),
    [
        (user("a"), user("b"), "/0/content/0/text", "semantic_mismatch"),
        (user("a"), call(1), "/0/type", "semantic_mismatch"),
        (user("a", id="1"), user("a", id="2"), "/0/id", "provider_metadata_only"),
        (assistant("a", annotations=[1]), assistant("a", annotations=[2]), "/0/content/0/annotations/0", None),
        (assistant("a"), assistant("b"), "/0/content/0/text", "semantic_mismatch"),
        (assistant("a"), {**assistant("a"), "content": "a"}, "/0/content", "assistant_text_shape"),
        (call(1, "{}"), call(1, '{"a":1}'), "/0/arguments", "tool_call_shape"),
        (
            {"type": "function_call_output", "call_id": "c", "output": "1"},
            {"type": "function_call_output", "call_id": "c", "output": "2"},
            "/0/output",
            "tool_result_shape",
        ),
        ({"type": "other", "a/b": {"~": 1}}, {"type": "other", "a/b": {"~": 2}}, "/0/a~1b/~0", "semantic_mismatch"),
        ("text", 3, "/0", "semantic_mismatch"),
    ],
)
def test_where_two_items_part(before: Any, now: Any, path: str, kind: str | None) -> None:
    found = diff_continuation([before], [now, user("more")])
    assert found["first_mismatch_index"] == 0
    assert found["first_mismatch_path"] == path
    assert found["mismatch_kind"] == (kind or "provider_metadata_only")


def test_ids_and_types_of_the_items_that_differ() -> None:
    found = diff_continuation([call(1)], [{"role": "user", "content": "x"}])
    assert found["previous_item_id"] == "fc_1"
    assert found["current_item_id"] == "message:user"
    assert (found["previous_item_type"], found["current_item_type"]) == ("function_call", "message")
    form = json.dumps(call(1), sort_keys=True, separators=(",", ":"))
    assert found["previous_item_hash"] == hashlib.sha256(form.encode()).hexdigest()
    assert diff_continuation(["x"], [None])["current_item_type"] == "null"


def test_previews_are_off_and_short() -> None:
    assert "previous_preview" not in diff_continuation([user("a")], [user("b")])
    found = diff_continuation([user("a" * 500)], [user("b")], preview=lambda text: text.replace("a", "*"))
    assert found["previous_preview"] == "*" * 80


@given(st.lists(JSON, max_size=4), st.lists(JSON, max_size=4))
def test_any_two_lists_can_be_compared(before: list[Any], now: list[Any]) -> None:
    found = diff_continuation(before, now)
    assert (found["status"] == "hit") == (len(now) > len(before) and now[: len(before)] == before) or (
        # 1 and True, 1 and 1.0 are equal to Python and not to JSON
        json.dumps(now[: len(before)]) != json.dumps(before)
    )
