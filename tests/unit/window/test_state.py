"""When a window continues, when it is compacted, what a pass may change, and what it says about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.core.errors import Invalid
from reverie.window import Base, CorruptWindow, WindowPolicy, WindowState, build_checkpoint, dump, load
from reverie.window.compaction import trigger_below_shape, trigger_tokens
from reverie.window.items import Item

API = Base.of("https://provider.test/v1/")


def make(trigger: int = 1000, *, base: Base = API, **policy: Any) -> WindowState:
    return WindowState("s", base=base, policy=WindowPolicy(trigger_input_tokens=trigger, **policy))


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def said(text: str, number: int = 1) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant", "content": [part]}


def calls(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": "f", "arguments": "{}"} for i in ids]


def output(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def answer(*items: dict[str, Any], tokens: int | None = 100, cached: int = 0, **more: Any) -> str:
    usage = {"input_tokens": tokens, "output_tokens": 5, "input_tokens_details": {"cached_tokens": cached}}
    body = {"id": "resp_1", "status": "completed", "output": list(items)} | ({"usage": usage} if tokens else {})
    return json.dumps(body | more)


def compacted(*before: dict[str, Any], payload: str = "gAAAA", tokens: int = 20) -> str:
    item = {"id": "cmp_1", "type": "compaction", "encrypted_content": payload}
    return json.dumps({"object": "response.compaction", "output": [*before, item], "usage": {"output_tokens": tokens}})


def turn(state: WindowState, *given: Any, reply: str | None = None, **params: Any) -> dict[str, Any]:
    """One round of a caller that gives only what is new."""
    state.begin_round()
    _, found = state.plan(list(given), input_is="items", **{"model": "m", **params})
    state.accept(reply or answer(said("ok")))
    return found


BIG = "x" * 8000


# continuing


def test_without_scope_or_window_everything_is_sent() -> None:
    _, found = WindowState().plan([user("a")], model="m")
    assert (found["status"], found["fallback_reason"]) == ("fallback_full_request", "missing_continuation_scope")
    body, found = make().plan([user("a")], model="m")
    assert found["fallback_reason"] == "not_applicable_initial_request"
    assert found["request_lowering_mode"] == "full_request"
    assert body["store"] is False
    assert "previous_response_id" not in body


def test_a_history_is_matched_whether_or_not_it_repeats_reasoning() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}
    for repeated in ([thought], [], [{"type": "reasoning", "summary": []}]):
        state = make()
        state.plan([user("a")], model="m")
        state.accept(answer(thought, said("b")))
        body, found = state.plan([user("a"), *repeated, said("b"), user("c")], model="m")
        assert found["status"] == "hit"
        assert found["incremental_input_items"] == 1
        assert found["expected_prefix_items"] == 2
        assert [item["type"] for item in body["input"]] == ["message", "reasoning", "message", "message"]
        assert body["input"][1] == {"type": "reasoning", "summary": [], "encrypted_content": "secret"}


def test_a_kept_response_is_chained_while_the_shape_is_the_same() -> None:
    state = make(store=True)
    turn(state, user("a"))
    body, found = state.plan([user("c")], input_is="items", model="m")
    assert body["previous_response_id"] == "resp_1"
    assert body["input"] == [user("c")]
    assert found["request_lowering_mode"] == "incremental_continuation"
    body, found = state.plan([user("c")], input_is="items", model="m", instructions="new")
    assert "previous_response_id" not in body
    assert len(body["input"]) == 3
    assert found["status"] == "fallback_provider_window_replay"
    assert found["fallback_reason"] == "request_shape_changed"


def test_a_lost_chain_is_replayed_unless_that_loses_context() -> None:
    state = make(store=True)
    turn(state, user("a"))
    state.plan([user("c")], input_is="items", model="m")
    replayed = state.replan_unchained()
    assert replayed is not None
    assert len(replayed[0]["input"]) == 3
    assert replayed[1]["fallback_reason"] == "previous_response_id_rejected"
    state = make(store=True)
    turn(state, user("a"), reply=answer({"type": "reasoning", "id": "rs_1", "summary": []}, said("b")))
    state.plan([user("c")], input_is="items", model="m")
    assert state.replay_loss_reason is not None
    assert state.replan_unchained() is None


def test_a_request_of_unknown_outcome_changes_nothing() -> None:
    state = make()
    turn(state, user("a"))
    before = dump(state)
    first = state.plan([user("b")], input_is="items", model="m")[0]
    again = state.plan([user("b")], input_is="items", model="m")[0]
    assert first == again
    state.accept(json.dumps({"id": "r", "status": "failed", "error": {"code": "x"}, "output": []}))
    assert dump(state) == before


def test_an_incomplete_answer_is_kept_without_its_torn_end() -> None:
    state = make()
    state.plan([user("a")], model="m")
    torn = {**calls("c")[0], "status": "incomplete"}
    done = state.accept(answer(said("half"), {"type": "reasoning", "id": "r"}, torn, status="incomplete"))
    assert not done.completed
    assert [item.type for item in state.items] == ["message", "message"]


def test_the_same_model_elsewhere_is_another_provider() -> None:
    state = make()
    turn(state, user("a"))
    assert not state.rebind(provider="openai", base=API, account_fingerprint="")
    assert state.rebind(provider="openai", base=Base.of("https://other.test/v1"), account_fingerprint="")
    assert state.resets[0].reason == "provider_changed"
    assert state.items == []


# bases


@pytest.mark.parametrize(
    ("url", "kind", "normal"),
    [
        ("https://api.openai.com/v1/", None, "https://api.openai.com/v1"),
        ("https://chatgpt.com/backend-api", None, "https://chatgpt.com/backend-api/codex"),
        ("https://chatgpt.com/backend-api/codex/", None, "https://chatgpt.com/backend-api/codex"),
        ("https://gateway.test/x", "codex", "https://gateway.test/x/codex"),
    ],
)
def test_a_base_is_normalised_once(url: str, kind: Any, normal: str) -> None:
    base = Base.of(url, kind)
    assert base.url == normal
    assert Base.of(base.url, base.kind) == base
    assert base.compact_url == f"{normal}/responses/compact"
    assert base.kind == ("api" if "api.openai" in url else "codex")


# when


def test_nothing_happens_below_the_trigger() -> None:
    state = make(100_000)
    for _ in range(50):
        turn(state, user("short"))
    assert state.compaction_request() is None
    assert state.remote_compaction is None


def test_the_reported_figure_alone_is_one_reason_and_an_estimate_another() -> None:
    state = make()
    turn(state, user("a"), reply=answer(said("b"), tokens=1000))
    assert state.due() == "token_budget_pressure"
    state = make()
    turn(state, user("a"), reply=answer(said("b"), tokens=900))
    state.plan([user("x" * 800)], input_is="items", model="m")
    assert state.due() == "estimated_window_pressure"
    state = make()
    turn(state, user(BIG), reply=answer(said("b"), tokens=None))
    assert state.due() == "estimated_window_pressure"


@pytest.mark.parametrize("mode", ["off", "server_side"])
def test_modes_that_never_compact_from_here(mode: Any) -> None:
    state = make(mode=mode)
    turn(state, user("a"), reply=answer(said("b"), tokens=5000))
    assert state.compaction_request() is None
    report = state.remote_compaction
    assert (report is None) if mode == "off" else (report or {})["status"] == "skipped_server_side_mode"


def full(**policy: Any) -> WindowState:
    """A window that is due."""
    state = make(**policy)
    turn(state, user(BIG), reply=answer(said("one")))
    turn(state, user("go"), reply=answer(*calls("a", "b"), tokens=2100))
    return state


def test_the_open_calls_stay_behind_verbatim() -> None:
    state = full()
    body = state.compaction_request()
    assert body is not None
    assert set(body) == {"model", "input"}
    assert [item["type"] for item in body["input"]] == ["message", "message", "message"]
    assert all("id" not in item for item in body["input"])
    tail = [item.text for item in state.items[3:]]
    report = state.accept_compaction(compacted(user("kept")))
    assert report["status"] == "compacted"
    assert report["retained_tail_items"] == 2
    assert [item.type for item in state.items] == ["message", "compaction", "function_call", "function_call"]
    assert [item.text for item in state.items[2:]] == tail
    assert len(report["encrypted_content_hashes"][0]) == 64
    assert report["encrypted_content_bytes"] == [5]


def test_a_pass_is_not_followed_by_another_before_usage_is_known() -> None:
    state = full()
    state.compaction_request()
    state.accept_compaction(compacted(user("y" * 6000), payload="p", tokens=10))
    state.begin_round()
    state.plan([output("a", BIG), output("b")], input_is="items", model="m")
    assert state.compaction_request() is None
    assert (state.remote_compaction or {})["status"] == "skipped_cooldown"
    assert state.compaction_request("context_window_error") is None  # only what the last pass made is safe
    assert (state.remote_compaction or {})["status"] == "skipped_no_safe_boundary"


def test_at_most_one_pass_in_a_round() -> None:
    state = full()
    assert state.compaction_request() is not None
    state.fail_compaction(500, "")
    assert state.compaction_request() is None
    state.begin_round()
    assert state.compaction_request() is not None


def test_a_local_projection_of_the_same_round_goes_first() -> None:
    state = full()
    state.begin_round()
    assert state.note_local(0, 2)
    assert state.compaction_request() is None
    assert (state.remote_compaction or {})["status"] == "skipped_local_compaction_same_round"
    state.begin_round()
    assert state.compaction_request() is not None
    assert not state.note_local(0, 1)


def test_an_orphan_output_is_never_compacted() -> None:
    state = make()
    turn(state, user(BIG), output("nobody"), reply=answer(said("b"), tokens=3000))
    assert state.compaction_request() is None
    assert (state.remote_compaction or {})["status"] == "skipped_unpaired_tool_call"


# what goes wrong


def test_two_transient_failures_wait_a_minute() -> None:
    state = full()
    for _ in range(2):
        state.begin_round()
        assert state.compaction_request(now=1000) is not None
        assert state.fail_compaction(503, "", now=1000)["status"] == "failed"
    state.begin_round()
    assert state.compaction_request(now=60_000) is None
    assert (state.remote_compaction or {})["status"] == "skipped_cooldown"
    assert state.compaction_request(now=61_001) is not None


def test_a_cooldown_ends_with_the_model() -> None:
    state = make()
    turn(state, user("Tell me all."), reply=answer(said(BIG), tokens=50))
    state.compaction_request()
    assert state.accept_compaction(compacted(user(BIG)))["status"] == "rejected_no_reduction"
    for model, passes in (("m", False), ("another", True)):
        state.begin_round()
        state.plan([user("Go on.")], input_is="items", model=model)
        assert (state.compaction_request() is not None) is passes


def test_a_default_trigger_that_the_tools_alone_would_reach_is_raised() -> None:
    state = WindowState("s", base=API, policy=WindowPolicy(context_window=8000))
    state.plan([user("hello")], input_is="items", model="m", instructions="Be brief.")
    assert trigger_tokens(state) == 4000
    assert not trigger_below_shape(state)
    state.plan([user("hello")], input_is="items", model="m", instructions="x" * 20_000)
    assert trigger_below_shape(state)
    assert trigger_tokens(state) > 5000 + 2000
    assert state.compaction_request() is None
    assert state.remote_compaction is None
    own = WindowState("s", base=API, policy=WindowPolicy(context_window=8000, trigger_input_tokens=100))
    own.plan([user("hello")], input_is="items", model="m", instructions="x" * 20_000)
    assert trigger_tokens(own) == 100  # what the policy names is left alone


def test_a_pass_that_frees_nothing_waits_for_growth() -> None:
    state = full()
    state.compaction_request()
    report = state.accept_compaction(compacted(user(BIG)))
    assert report["status"] == "rejected_no_reduction"
    assert state.latest_compaction_index is None
    state.begin_round()
    assert state.compaction_request() is None
    state.plan([output("a", "x" * 1200), output("b")], input_is="items", model="m")
    assert state.compaction_request() is None  # what is pending is in no prefix
    state.accept(answer(said("ok"), tokens=5000))
    state.begin_round()
    assert state.compaction_request() is not None


def test_a_missing_route_is_remembered_with_its_status() -> None:
    state = full(fallback_methods=[])
    state.compaction_request()
    report = state.fail_compaction(404, '{"detail":"Not Found"}')
    assert (report["status"], report["http_status"]) == ("unsupported_endpoint", 404)
    state.begin_round()
    assert state.compaction_request() is None
    report = state.remote_compaction or {}
    assert (report["status"], report["http_status"]) == ("skipped_unsupported_endpoint", 404)
    assert report["endpoint_kind"] == "responses_compact"
    assert report["input_items"] == 3


def test_an_innocent_404_is_not_remembered() -> None:
    state = full()
    state.compaction_request()
    body = {"error": {"message": "Item with id 'x' not found. Items are not", "param": "input", "code": None}}
    assert state.fail_compaction(404, body)["status"] == "invalid_non_persisted_item_id"
    state.begin_round()
    state.compaction_request()
    assert state.attempt is not None
    assert state.attempt.method == "standalone"


def test_an_ignored_trigger_item_is_not_supported_here() -> None:
    state = full(mode="trigger", fallback_methods=["trigger"])
    body = state.compaction_request()
    assert body is not None
    assert body["input"][-1] == {"type": "compaction_trigger"}
    before = [item.text for item in state.items]
    assert state.accept_compaction(answer(said("what?")))["status"] == "unsupported_endpoint"
    assert [item.text for item in state.items] == before
    state.begin_round()
    assert state.compaction_request() is None
    assert (state.remote_compaction or {})["status"] == "skipped_unsupported_endpoint"


def test_with_the_trigger_item_the_client_retains_the_users_words() -> None:
    state = full(mode="trigger", retained_message_tokens=200)
    state.compaction_request()
    item = {"id": "cmp_1", "type": "compaction", "encrypted_content": "p"}
    report = state.accept_compaction(answer(item, tokens=2000))
    assert report["status"] == "compacted"
    kinds = [item.type for item in state.items]
    assert kinds == ["message", "message", "compaction", "function_call", "function_call"]
    assert state.items[0].value["content"][0]["text"].startswith("xxx")
    assert state.items[1].value["content"] == "go"


def test_a_pass_that_was_overtaken_is_discarded() -> None:
    state = full()
    state.compaction_request()
    attempt = state.attempt
    state.reset("cleared")
    state.attempt = attempt
    assert state.accept_compaction(compacted())["status"] == "stale_generation"
    assert state.items == []


def test_items_that_came_meanwhile_are_kept() -> None:
    state = full()
    state.compaction_request()
    attempt = state.attempt
    state.plan([output("a"), output("b")], input_is="items", model="m")
    state.accept(answer(said("three", 3)))
    state.attempt = attempt
    assert state.accept_compaction(compacted())["status"] == "compacted"
    kinds = [item.type for item in state.items]
    assert kinds == ["compaction", *["function_call"] * 2, *["function_call_output"] * 2, "message"]


def test_what_the_caller_repeats_does_not_change_by_a_pass() -> None:
    state = make()
    state.plan([user(BIG)], model="m")
    state.accept(answer(said("b"), tokens=3000))
    state.begin_round()
    state.compaction_request()
    state.accept_compaction(compacted())
    body, found = state.plan([user(BIG), said("b"), user("c")], model="m")
    assert found["status"] == "hit"
    assert found["request_lowering_mode"] == "provider_window_compacted"
    assert [item["type"] for item in body["input"]] == ["compaction", "message"]


# server side


def test_what_the_server_compacted_is_left_out_but_stored() -> None:
    state = make(mode="server_side")
    turn(state, user("a"), reply=answer(*calls("c")))
    cmp = {"id": "cmp_1", "type": "compaction", "encrypted_content": "p"}
    turn(state, output("c"), user("b"), reply=answer(cmp, said("later"), *calls("d")))
    body, _ = state.plan([output("d")], input_is="items", model="m")
    assert [item["type"] for item in body["input"]] == [
        "compaction",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert len(state.items) == 7
    assert body["context_management"] == [{"type": "compaction", "compact_threshold": 1000}]


def test_the_cut_never_orphans_an_output() -> None:
    state = make(mode="server_side")
    thought = {"type": "reasoning", "id": "r", "encrypted_content": "e"}
    cmp = {"id": "cmp_1", "type": "compaction", "encrypted_content": "p"}
    turn(state, user("a"), reply=answer(thought, *calls("c"), cmp))
    body, _ = state.plan([output("c")], input_is="items", model="m")
    kinds = [item["type"] for item in body["input"]]
    assert kinds == ["reasoning", "function_call", "compaction", "function_call_output"]


# cache


@pytest.mark.parametrize(
    ("happening", "loss"),
    [("nothing", "expired_or_evicted"), ("compaction", "compaction"), ("shape", "shape_drift"), ("reset", "reset")],
)
def test_a_cache_loss_is_attributed(happening: str, loss: str) -> None:
    state = make()
    turn(state, user(BIG), reply=answer(said("b"), tokens=3000))
    params: dict[str, Any] = {"model": "m"}
    if happening == "compaction":
        state.begin_round()
        state.compaction_request()
        state.accept_compaction(compacted())
    elif happening == "shape":
        params["instructions"] = "other"
    elif happening == "reset":
        state.reset("cleared")
    state.plan([user("c")], input_is="items", **params)
    done = state.accept(answer(said("d"), tokens=3100, cached=0))
    assert done.cache is not None
    assert done.cache["cache_loss"] == loss
    if loss == "shape_drift":
        assert done.cache["changed_keys"] == ["instructions"]
    state.plan([user("e")], input_is="items", **params)
    done = state.accept(answer(said("f"), tokens=3200, cached=3000))
    assert done.cache is not None
    assert done.cache["cache_loss"] == "none"


def test_the_provider_is_asked_for_its_word_after_a_loss() -> None:
    state = make()
    turn(state, user("a"), reply=answer(said("b"), tokens=3000), model="gpt-5.6-sol")
    turn(state, user("a"), reply=answer(said("b"), tokens=3000), model="gpt-5.6-sol")
    body, _ = state.plan([user("c")], input_is="items", model="gpt-5.6-sol")
    assert body["prompt_cache_options"] == {"comparison_response_id": "resp_1"}
    word = {"type": "cache_miss", "reason": "input_changed", "more": "text"}
    done = state.accept(answer(said("d"), tokens=3000, cached=3000, prompt_cache_diagnostics=word))
    assert done.cache is not None
    assert done.cache["prompt_cache_diagnostics"] == {"type": "cache_miss", "reason": "input_changed"}
    body, _ = state.plan([user("e")], input_is="items", model="gpt-5.6-sol")
    assert "prompt_cache_options" not in body


# keeping


def test_a_window_comes_back_as_it_was() -> None:
    state = full()
    state.compaction_request()
    state.accept_compaction(compacted(user("ä")))
    again = load(dump(state), policy=state.policy)
    assert [item.text for item in again.items] == [item.text for item in state.items]
    assert dump(again) == dump(state)
    body = state.plan([output("a"), output("b")], input_is="items", model="m")[0]
    assert again.plan([output("a"), output("b")], input_is="items", model="m")[0] == body


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_window_is_never_used(data: Any) -> None:
    state = full()
    state.compaction_request()
    state.accept_compaction(compacted(user("kept")))
    whole = dump(state)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    try:
        again = load(damaged)
    except CorruptWindow:
        return
    assert [item.text for item in again.items] == [item.text for item in state.items]


# a random life


MOVES = st.lists(st.sampled_from(["turn", "tools", "pass", "fail", "stale", "reload", "pop"]), max_size=14)


@settings(max_examples=60)
@given(MOVES)
def test_whatever_happens_the_window_can_be_sent(moves: list[str]) -> None:
    from reverie.window.pairing import pair

    state, waiting = make(300), list[str]()
    for number, move in enumerate(moves):
        if move in ("turn", "tools"):
            given_items = [output(name, "y" * 400) for name in waiting] or [user(f"{number} " + "x" * 300)]
            made = [f"c{number}a", f"c{number}b"] if move == "tools" else []
            reply = answer(*calls(*made), tokens=400) if made else answer(said("ok", number), tokens=400)
            turn(state, *given_items, reply=reply)
            waiting = made
        elif move in ("pass", "fail", "stale"):
            state.begin_round()
            if state.compaction_request("manual") is not None:
                if move == "fail":
                    state.fail_compaction(500, "")
                else:
                    state.accept_compaction(compacted(payload=f"p{number}", tokens=10))
        elif move == "reload":
            state = load(dump(state), policy=state.policy)
        elif move == "pop" and not waiting and state.pop() is not None:
            found = pair(state.items)
            waiting = [state.items[at].value["call_id"] for at in found.open]
        found = pair([*state.items, *(Item.of(output(name)) for name in waiting)])
        assert not found.orphans
        assert not found.open
        assert state.latest_compaction_index is None or state.items[state.latest_compaction_index].is_compaction


# checkpoints


def test_a_checkpoint_has_every_field_and_invents_nothing() -> None:
    patch = {"type": "apply_patch_call", "call_id": "p", "operation": {"type": "update_file", "path": "src/a.py"}}
    shell = {"type": "shell_call", "call_id": "s", "action": {"commands": ["make test"]}}
    ran = {"type": "shell_call_output", "call_id": "s", "output": [{"outcome": {"type": "exit", "exit_code": 2}}]}
    items = [Item.of(item) for item in (user("Fix the tests."), patch, shell, ran, user("And hurry."))]
    told = {"next_action": "Run it again.", "unknown": 1}
    args: dict[str, Any] = {"reason": "manual", "created_at": "now", "covered": (0, 4), "work": told}
    record = build_checkpoint(items, **args)
    assert record.objective == "Fix the tests."
    assert record.files == ("src/a.py",)
    assert record.verification == ({"command": "make test", "outcome": "exit 2", "when": ""},)
    assert record.next_action == "Run it again."
    document = record.document()
    assert document["decisions"] == []
    assert document["work_item"] == {"id": "", "state": "", "revision": ""}
    assert "unknown" not in document
    assert build_checkpoint(items, **args) == record
    assert len(record.brief().encode()) <= 1600


def test_a_policy_that_cannot_be_meant_is_refused() -> None:
    for wrong in ({"mode": "x"}, {"server_compact_threshold": 999}, {"fallback_methods": ["x"]}, {"min_reduction": 1}):
        with pytest.raises(Invalid):
            WindowPolicy(**wrong)  # type: ignore[arg-type]
