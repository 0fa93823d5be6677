"""The answer to a planned request: its items for the window, and its usage figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reverie.window.cache import LastTurn, attribute
from reverie.window.cost import carry_response
from reverie.window.estimate import MOST_TOKENS, estimate
from reverie.window.items import Item, compact, output_items
from reverie.window.strip import has_references
from reverie.window.turn import Pending, Turn

if TYPE_CHECKING:
    from reverie.window.state import WindowState


def accept(
    state: WindowState, response: str | bytes | Mapping[str, Any], *, items: Sequence[Item] | None = None
) -> Turn:
    """Take the answer to the pending request: the response as JSON text. `items`: its output, when a stream brought it
    item by item. A failed answer changes nothing; an incomplete one is stored but is no boundary."""
    pending = state.answerable()
    text = response if isinstance(response, str | bytes) else compact(dict(response))
    read = state.dialect.read(text, items)
    if read is None:
        return Turn(completed=False, stored=False)
    output, completed, usage = read.output, read.completed, read.usage
    sent = [item.hash for item in [*state.items, *pending.increment]]
    cache = attribute(
        usage,
        state.last,
        sent=sent,
        compacted=state.compacted_since,
        reset=state.reset_since,
        changed_keys=pending.changed_keys,
    )
    if read.word is not None:
        cache["prompt_cache_diagnostics"] = read.word
    turn = Turn(completed, True, [*pending.increment, *output], state.next_position, usage=usage, cache=cache)
    if state.background is not None:  # the question is in the ledger
        turn.answers, turn.known = str(state.background["response_id"]), len(pending.increment)
        state.background = None
    elif pending.begins:
        _begin(turn, pending)
    covered = len(state.items) + len(pending.increment)
    carry_response(state, usage, estimate(pending.increment))
    repeats = [*pending.repeats, *state.dialect.matches(output, returned=True)]
    state.append(turn.appended, repeats, _positions(state.next_position, pending, len(output)))
    turn.server_items = sum(item.is_compaction for item in output)
    if turn.server_items and not pending.store:
        state.prune_from = state.latest_compaction_index
    evicted = cache["cache_loss"] == "expired_or_evicted" and state.compare_with is None
    state.compare_with = state.last_response_id if evicted else None
    state.last_response_id = read.id
    state.response_id = read.id if pending.store and completed else None
    state.all_stored = state.all_stored and pending.store
    _note_loss(state, pending, output)
    _note_usage(state, read.reported, covered + (len(output) if read.reports_output else 0))
    if turn.server_items and not read.after_compaction:  # the figure is of the window as it was before
        state.reported_input_tokens, state.reported_at_items, state.awaiting_usage = None, 0, True
    _note_shape(state, pending)
    state.last = LastTurn([*sent, *(item.hash for item in output)], _tokens(usage), bool(turn.server_items))
    state.suspected_loss = state.compare_with is not None
    state.compacted_since = state.reset_since = False
    state.server_faults = 0
    state.pending = None
    return turn


def defer(state: WindowState, response: str, *, since: int) -> Turn:
    """Keep the pending request until its answer is fetched."""
    pending = state.answerable()
    identity = output_items(response)[0].get("id")
    state.background = {"response_id": str(identity), "since": since, "pending": pending.document()}
    turn = Turn(False, True, list(pending.increment), state.next_position)
    if pending.begins:
        _begin(turn, pending)
    state.pending = None
    return turn


def _positions(first: int, pending: Pending, output: int) -> list[int]:
    """Positions, in the scope's sequence, of the items that the caller repeats: its own, then the answer's."""
    left_out = pending.shortened - 1 if pending.shortened else 0
    new = range(len(pending.known), len(pending.repeats))
    answer = first + len(pending.increment)
    return [*pending.known, *(first + max(0, at - left_out) for at in new), *range(answer, answer + output)]


def _note_shape(state: WindowState, pending: Pending) -> None:
    """Record the request's shape; limits learnt from another model no longer count."""
    state.shape = pending.shape
    state.request_shape_hash = pending.shape_hash
    model = pending.shape.get("model")
    if isinstance(model, str) and model != state.model:
        state.model, state.refused_at_tokens, state.server_overflows = model, None, 0


def _note_loss(state: WindowState, pending: Pending, output: Sequence[Item]) -> None:
    if has_references(item.value for item in pending.increment):
        state.replay_loss_reason = "item_reference"
    elif any(item.type == "reasoning" and not item.value.get("encrypted_content") for item in output):
        state.replay_loss_reason = "reasoning_without_payload"


def _note_usage(state: WindowState, reported: int | None, covered: int) -> None:
    usable = reported is not None and 0 < reported <= MOST_TOKENS
    state.reported_input_tokens = reported if usable else None
    state.reported_at_items = covered if usable else 0
    state.counted_input_tokens, state.counted_at_items = None, 0
    state.awaiting_usage = False  # some providers never report: then the estimate decides
    if usable:
        state.tokens_after_pass = None


def _begin(turn: Turn, pending: Pending) -> None:
    """Mark the position at which a conversation is resumed, and the items kept already."""
    turn.follows = pending.known[-1] if pending.known else -1
    turn.known = pending.noted if pending.shortened else len(pending.known)


def _tokens(usage: Mapping[str, Any] | None) -> int | None:
    if not usage or not isinstance(usage.get("input_tokens"), int):
        return None
    spoken = usage.get("output_tokens")
    return int(usage["input_tokens"]) + (spoken if isinstance(spoken, int) else 0)
