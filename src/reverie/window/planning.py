"""The next request of a window: the new part of the caller's input, and the way it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reverie.window.compaction import trigger_tokens
from reverie.window.continuation import ABSENT, ExpectedItem, align, mismatch
from reverie.window.estimate import estimate
from reverie.window.items import Item, Json, by_id
from reverie.window.shape import changed_keys, shape, shape_hash, shape_keys
from reverie.window.transcript import fitting
from reverie.window.turn import InputIs, Pending

if TYPE_CHECKING:
    from reverie.window.state import WindowState

_REWRITTEN = "conversation_not_strict_append_only"


@dataclass(slots=True)
class _New:
    """The part of the input that the window does not have."""

    items: list[Item]
    diagnostics: dict[str, Any]
    whole: bool = True
    """Whether it is all of the input, so that nothing of the window is used."""
    known: list[int] = field(default_factory=list)
    """Positions of items that the scope already has."""


def plan(
    state: WindowState,
    input: Any,  # noqa: A002
    *,
    input_is: InputIs = "history",
    **params: Any,
) -> tuple[Json, dict[str, Any]]:
    """Plan the request for `input`: (body, diagnostics). Before `accept` only a reset changes the window.

    `history`: `input` is everything the caller knows, which is matched with the window; `items`: only what is
    new. `params` is the rest of the request.
    """
    given = _expand(state, state.dialect.items(input))
    form = shape(params)
    background = params.get("background") is True
    store = bool(params.get("store", state.policy.store or background)) and state.base.kind == "api"
    digest = shape_hash(form)
    changed = state.request_shape_hash is not None and digest != state.request_shape_hash
    diagnostics: dict[str, Any] = {"status": "hit", "request_shape_hash": digest}
    if state.request_shape_hash is not None:
        diagnostics["previous_request_shape_hash"] = state.request_shape_hash
    new = _new(state, given, input_is)
    diagnostics |= new.diagnostics
    increment = new.items
    repeats = state.dialect.matches(increment, returned=False)
    chained = not new.whole and store and state.response_id is not None and not changed
    diagnostics |= _lowering(state, diagnostics, whole=new.whole, chained=chained, changed=changed)
    state.pending = Pending(
        increment=increment,
        repeats=repeats,
        body={},
        shape=form,
        shape_hash=digest,
        store=store,
        chained=chained,
        history=input_is == "history",
        diagnostics=diagnostics,
        changed_keys=changed_keys(shape_keys(state.shape), shape_keys(form)) if changed else [],
        known=new.known,
        begins=new.whole,
        background=background,
    )
    state.pending.body = state.dialect.body(state, params)
    return state.pending.body, diagnostics


def _new(state: WindowState, given: list[Item], input_is: InputIs) -> _New:
    """Determine the new part of the input. A history that does not continue the window drops it."""
    if state.scope_id is None or state.empty:
        reason = "missing_continuation_scope" if state.scope_id is None else "not_applicable_initial_request"
        first = {"status": "fallback_full_request", "fallback_reason": reason, "full_input_items": len(given)}
        return _New(given, first)
    expected = sum(match.need != "omitted" for match in state.match)
    if input_is == "items":
        sizes = {"expected_prefix_items": expected, "full_input_items": expected + len(given)}
        return _New(given, sizes | {"incremental_input_items": len(given)}, whole=False)
    sizes = {"expected_prefix_items": expected, "full_input_items": len(given)}
    found = align(state.match, given, state.dialect.forms(given))
    if found.whole and len(given) > found.used:
        increment = given[found.used :]
        return _New(increment, sizes | {"incremental_input_items": len(increment)}, whole=False)
    dropped = sizes | _mismatch(state, given, found.used, found.mismatch)
    known = [state.positions[at] for at in found.at]
    state.reset("not_append_only")
    return _New(given, dropped | {"status": "reset", "fallback_reason": _REWRITTEN}, known=known)


def _lowering(
    state: WindowState, decided: Mapping[str, Any], *, whole: bool, chained: bool, changed: bool
) -> dict[str, Any]:
    """Describe how the request is sent, and why it is not the continuation it could have been."""
    said: dict[str, Any] = {}
    if changed and not whole:
        said = {"status": "fallback_provider_window_replay", "fallback_reason": "request_shape_changed"}
    if state.resets:
        reason = state.resets[-1].reason
        said |= {"status": "reset", "reset_reason": reason}
        if decided.get("fallback_reason") != _REWRITTEN:
            said["fallback_reason"] = reason
    if chained:
        mode = "server_side_chain" if state.mode == "server_side" else "incremental_continuation"
    elif whole:
        mode = "full_request"
    else:
        compacted = state.latest_compaction_index is not None
        mode = "provider_window_compacted" if compacted else "provider_window_replay"
        if state.replay_loss_reason is not None:
            said["server_side_context_may_be_lost"] = True
    return said | {"request_lowering_mode": mode}


def replan_unchained(state: WindowState) -> tuple[Json, dict[str, Any]] | None:
    """After a refused chain: the same request with the whole window in it. None when that would lose context."""
    pending = state.answerable()
    if not pending.chained or state.replay_loss_reason is not None:
        return None
    pending.chained = False
    state.response_id = None
    pending.diagnostics["status"] = "fallback_provider_window_replay"
    pending.diagnostics["fallback_reason"] = "previous_response_id_rejected"
    compacted = state.latest_compaction_index is not None
    pending.diagnostics["request_lowering_mode"] = (
        "provider_window_compacted" if compacted else "provider_window_replay"
    )
    return rebuild_body(state), pending.diagnostics


def rebuild_body(state: WindowState) -> Json:
    """The body of the pending request, rebuilt after a pass changed the window under it."""
    pending = state.answerable()
    if pending.chained and state.response_id is None:
        pending.chained = False
        pending.diagnostics["request_lowering_mode"] = "provider_window_compacted"
    elif pending.diagnostics["request_lowering_mode"] == "provider_window_replay" and (
        state.latest_compaction_index is not None
    ):
        pending.diagnostics["request_lowering_mode"] = "provider_window_compacted"
    pending.body = state.dialect.body(state, pending.body)
    return pending.body


def _expand(state: WindowState, given: list[Item]) -> list[Item]:
    if not any(item.type == "item_reference" for item in given):
        return given
    known = by_id(state.items)
    return [known.get(str(item.value.get("id")), item) if item.type == "item_reference" else item for item in given]


def _mismatch(state: WindowState, given: Sequence[Item], at: int, expected: ExpectedItem | None) -> dict[str, Any]:
    if expected is None:
        return {"first_mismatch_index": None, "mismatch_kind": "length_mismatch"}
    now = state.dialect.matches(given[at : at + 1], returned=False)
    preview = state.redact if state.policy.previews else None
    return mismatch(at, expected.form, now[0].form if now else ABSENT, preview=preview, known=expected)


def shorten(state: WindowState, input: Any, note: str, room: int | None = None) -> Json:  # noqa: A002
    """Shorten the pending request, which sends a whole history, to `room` tokens, by default half the trigger: `note`
    in place of the rest, the user's messages, and the newest whole turns."""
    pending = state.answerable()
    given = _expand(state, state.dialect.items(input))
    front = state.dialect.note(note)
    most = trigger_tokens(state) // 2 if room is None else room
    kept = fitting(given, most_tokens=most, reserved=estimate([front]), retained=state.policy.retained_message_tokens)
    if kept.cut:
        users = kept.users if state.dialect.retains else []
        known = len(pending.known)
        pending.noted = 1 + sum(at < known for at, _ in users) + max(0, known - kept.cut)
        pending.increment = [front, *(item for _, item in users), *given[kept.cut :]]
        pending.shortened = len(given) - len(pending.increment) + 1
        pending.diagnostics["shortened"] = True
    return rebuild_body(state)
