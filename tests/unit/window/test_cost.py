"""When carrying a history has cost as much as a pass would."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.core.errors import Invalid
from reverie.window import WindowPolicy, WindowState, dump, load
from reverie.window.cost import of_pass, remains

MODEL = "gpt-5.6-sol"


def turn(state: WindowState, tokens: int, *, cached: int, words: int = 100) -> None:
    said = {"type": "message", "role": "user", "content": "go on"}
    state.plan([said], input_is="items", model=MODEL)
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "word " * words}]}
    usage = {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": words}
    state.accept({"id": "resp_1", "status": "completed", "output": [answer], "usage": usage})


def turns_until_due(**policy: Any) -> int:
    """Turns of 500 tokens each until a pass is due; a tenth of the price for what is repeated."""
    state = WindowState("s", policy=WindowPolicy(context_window=400_000, **policy))
    for number in range(1, 600):
        turn(state, 1000 + 500 * number, cached=500 + 500 * number, words=400)
        if state.due() is not None:
            return number
    raise AssertionError("no pass in 600 turns")


def test_a_pass_is_due_when_it_has_paid_for_itself() -> None:
    state = WindowState("s", policy=WindowPolicy(rule="cost", context_window=400_000))
    before = 0.0
    for number in range(1, 600):
        turn(state, 1000 + 500 * number, cached=500 + 500 * number, words=400)
        price = of_pass(state, state.pressure()[0], "trigger")
        assert (state.due() is not None) == (state.carried >= price)
        assert state.carried >= before
        if state.due() is not None:
            break
        before = state.carried
    assert state.due() == "token_budget_pressure"
    assert state.pressure()[0] < 280_000  # the default waits for 70 % of the window
    assert remains(state) < state.pressure()[0] // 2


def test_cost_compacts_earlier_without_a_cache_and_earlier_than_size() -> None:
    by_size, by_cost = turns_until_due(), turns_until_due(rule="cost")
    assert by_cost < by_size
    state = WindowState("s", policy=WindowPolicy(rule="cost", context_window=400_000))
    for number in range(1, by_cost):
        turn(state, 1000 + 500 * number, cached=0, words=400)
        if state.due() is not None:
            break
    assert number < by_cost - 1


def test_what_was_carried_is_kept_and_ends_with_a_reset() -> None:
    state = WindowState("s", policy=WindowPolicy(rule="cost"))
    for number in range(1, 6):
        turn(state, 1000 * number, cached=900 * number)
    assert state.carried > 0
    assert load(dump(state)).carried == state.carried
    state.reset("cleared")
    assert state.carried == 0


def test_a_rule_is_one_of_two() -> None:
    with pytest.raises(Invalid):
        WindowPolicy(rule="cheap")  # type: ignore[arg-type]
    assert WindowPolicy(rule="cost").mode_for("api") == "trigger"
    assert WindowPolicy(rule="cost", context_window=12_000).trigger() == 9_600
