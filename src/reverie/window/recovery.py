"""Recovery of a request that cannot be sent as it is: drop the window, compact it, or rebuild it from readable text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from reverie.window.cache import options_of
from reverie.window.compaction import (
    HOSTED_IDS,
    KINDS,
    MOST_HALVINGS,
    context_window,
    exceeds_window,
    pressure,
    threshold_raised,
    trigger_below_shape,
    trigger_tokens,
)
from reverie.window.errors import WindowRefusal
from reverie.window.estimate import estimate
from reverie.window.items import Item, Json
from reverie.window.passes import Passes
from reverie.window.planning import shorten
from reverie.window.state import WindowState
from reverie.window.steps import Before, Keep, Keeper, RequestOutcome, Send, Steps
from reverie.window.turn import InputIs, Turn

_SERVER_FAULTS = 2
_MOST_REBUILDS = 3
"""Rebuilds to half, a quarter and an eighth of what was refused."""
_BARE_TOKENS = 400
"""Room of a last rebuild: little more than the checkpoint in front of the new items."""
_CHAIN_LOSS = frozenset({"chain_lost", "item_not_persisted", "malformed", "unpaired_call", "other"})


class Recovery(Passes):
    """The requests of one window, and what is done about those that are refused."""

    def __init__(self, keeper: Keeper, state: WindowState, *, clock: Callable[[], int]) -> None:
        super().__init__(keeper, state, clock=clock)
        self._raise_reported = False
        self._refused: int | None = None
        """The tokens of the request that was refused for length in this turn."""
        self._least_refused: int | None = None
        """The smallest of them, those of rebuilds included."""
        self._rebuilds = 0
        self.given: tuple[Any, InputIs, Json] | None = None

    def _send(self, stream: bool) -> Send:
        pending = self.state.pending
        assert pending is not None
        silence = self.state.policy.watchdog_seconds if self.state.mode == "server_side" else None
        dialect = self.state.dialect
        betas = dialect.betas(self.state)
        return Send(dialect.create, pending.body, stream=stream, silence=silence, betas=betas)

    def _plan(self) -> Steps:
        assert self.given is not None
        given, input_is, params = self.given
        state = self.state
        seed: Mapping[str, Any] = {}
        if state.resets and not state.match:
            if input_is == "history":
                state.items = []
                seed = {
                    "seeded_from": "caller",
                    "seeded_items": len(state.dialect.items(given)),
                    "seed_omitted_turns": 0,
                }
            elif state.empty:
                following = state.dialect.items(given)
                seed = yield Keep(lambda: self._seed(following))
        _, found = state.plan(given, input_is=input_is, **params)
        if state.resets and input_is == "history" and self._too_large():
            shorten(state, given, (yield Keep(self._note)))
        self._continue({**found, **seed})
        if not self._raise_reported and trigger_below_shape(state):
            self._raise_reported = self.diagnostics["trigger_below_shape"] = True
        if threshold_raised(state):
            self.diagnostics["server_threshold_raised"] = True

    def _continue(self, found: dict[str, Any]) -> None:
        self.diagnostics["incremental_continuation"] = self.diagnostics["continuation"] = found
        if self.state.pending is not None:
            self.state.pending.diagnostics = found

    def _too_large(self) -> bool:
        state = self.state
        limit = context_window(state) or trigger_tokens(state) * 2
        return state.pending is not None and estimate(state.pending.increment) > limit

    def _note(self) -> str:
        found = self.keeper.readable(most_tokens=1)
        self.state.read = found.read
        return f"Earlier parts of this conversation were left out.\n{found.note}"

    def _seed(self, following: Sequence[Item], room: int | None = None, before: Before | None = None) -> dict[str, Any]:
        """Fill a dropped window, when the caller sends only new items, with as much of the readable conversation as
        fits `room` tokens, by default half the trigger. Returns its diagnostics. Reads the store."""
        most = trigger_tokens(self.state) // 2 if room is None else room
        dialect = self.state.dialect
        made = self.keeper.readable(most_tokens=most, following=dialect.readable(following), before=before)
        self.state.items, self.state.read = dialect.restored(made.items), made.read
        results = {"seeded_items": len(self.state.items), "seed_omitted_turns": made.omitted_turns}
        return {"seeded_from": made.source, **results} if made.items else {}

    # when a request is refused

    def _recover(self, refusal: WindowRefusal, answer: RequestOutcome, tried: set[str]) -> Steps:
        """Remedy a refusal; each remedy is tried once per turn. Returns whether to send again."""
        state = self.state
        pending = state.pending
        assert pending is not None
        yield from self._server_fault(refusal, answer)
        if refusal.kind == "context_window":
            if refusal.limit is not None:
                state.negative.learn_window(state.base, _model_of(pending.shape), refusal.limit)
            return (yield from self._overflow())
        if refusal.kind == "encrypted_content" and "encrypted" not in tried:
            tried.add("encrypted")
            yield from self._drop("encrypted_content_rejected")
            return True
        if pending.chained and refusal.kind in _CHAIN_LOSS and "chain" not in tried:
            tried.add("chain")
            if state.replan_unchained() is not None:
                return True
            if pending.history:
                yield from self._drop("chain_lost")
                return True
            return False
        compared = options_of(pending.body).get("comparison_response_id")
        if refusal.code == "missing_required_parameter" and refusal.field == "id" and "ids" not in tried:
            tried.add("ids")
            state.negative.add(state.base, HOSTED_IDS, refusal.status or 400)
            state.rebuild_body()
            return True
        own = options_of(pending.shape).get("comparison_response_id")
        if refusal.kind == "malformed" and compared and not own and "compare" not in tried:
            tried.add("compare")
            state.negative.add(state.base, "comparison", refusal.status or 400)
            state.rebuild_body()
            return True
        return False

    def _drop(self, reason: str) -> Steps:
        self.state.reset(reason)
        yield from self._plan()

    def _server_fault(self, refusal: WindowRefusal, answer: RequestOutcome) -> Steps:
        state = self.state
        fault = answer.stalled or (refusal.status is not None and refusal.status >= 500)
        if state.mode != "server_side":
            return
        if not fault:
            return
        state.server_faults += 1
        if state.server_faults >= _SERVER_FAULTS:
            yield from self._disable_server_side()

    def stream_failed(self, *, stalled: bool) -> Steps:
        """A stream ended early; the window stays as it was."""
        status = None if stalled else 500
        yield from self._server_fault(WindowRefusal("transient", status, None), RequestOutcome(status, stalled=stalled))

    def overflowed(self, failure: WindowRefusal | None) -> bool:
        """Whether a stream failed because the context was too long."""
        return failure is not None and failure.kind == "context_window"

    def reopen(self) -> Steps:
        """Compact and send again, after a stream was refused for length before its first content."""
        while (yield from self._overflow()):
            answer: RequestOutcome = yield self._send(True)
            if answer.ok or self.state.dialect.refusal(answer.status, answer.text).kind != "context_window":
                return answer
        return None

    def _overflow(self) -> Steps:
        """Remedy a refusal for length: a pass over the items accepted before, or a rebuild smaller than the refused
        request. Returns whether to send again."""
        state = self.state
        pending = state.pending
        if pending is None or state.mode == "off":
            return False
        too_large = {"status": "skipped_item_exceeds_window", "trigger_reason": "context_window_error"}
        if exceeds_window(state) or (not state.items and len(pending.increment) == 1):
            self.diagnostics["remote_compaction"] = too_large
            return False
        if self._refused is None:
            self._refused = state.pressure()[0]
            yield from self._server_overflow()
            if (yield from self._overflow_pass()):
                return True
        own = not state.match and not state.items  # all of it is the caller's
        bare = self._rebuilds == _MOST_REBUILDS and self._room(_MOST_REBUILDS) > _BARE_TOKENS
        if (self._rebuilds >= _MOST_REBUILDS and not bare) or (own and not pending.history):
            self._refused = self._least_refused = None
            self.diagnostics["remote_compaction"] = too_large
            return False
        self._least_refused = min(state.pressure()[0], self._least_refused or self._refused)
        self._rebuilds += 1
        room = _BARE_TOKENS if bare else self._room(self._rebuilds)
        yield from self._shorten_history(room) if own else self._drop_to_checkpoint(room=room)
        return True

    def _room(self, times: int) -> int:
        """Tokens of a rebuild, by the number of rebuilds so far."""
        return min((self._refused or 0) >> times, trigger_tokens(self.state) // 2 >> (times - 1))

    def _shorten_history(self, room: int) -> Steps:
        """A history that begins a window was refused for length: send what of it fits `room` tokens."""
        assert self.given is not None
        shorten(self.state, self.given[0], (yield Keep(self._note)), room)

    def _server_overflow(self) -> Steps:
        """Count a refusal for length in server-side mode. The second one switches that mode off."""
        state = self.state
        if state.mode != "server_side":
            return
        state.server_overflows += 1
        if state.server_overflows >= _SERVER_FAULTS:
            yield from self._disable_server_side()

    def _disable_server_side(self) -> Steps:
        self.state.mode, self.state.server_disabled = self.state.dialect.pass_mode, True
        self.state.server_faults = self.state.server_overflows = 0
        self.diagnostics["server_side_disabled"] = True
        yield Keep(lambda: self.keeper.tell("server_side_disabled", {"faults": _SERVER_FAULTS}))

    def _overflow_pass(self) -> Steps:
        """Make one pass; its prefix is halved while it is too long, and another method follows one that fails. Returns
        whether the window became smaller."""
        halvings = 0
        failed: set[str] = set()
        while halvings <= MOST_HALVINGS:
            report = yield from self._pass("context_window_error", halvings=halvings, without=failed)
            status = report.get("status") if report else None
            if report is None or status is None or status.startswith("skipped"):
                return False
            if status == "compacted":
                self.state.rebuild_body()
                return True
            if status == "failed_context_window":
                halvings += 1
                continue
            failed |= {method for method, kind in KINDS.items() if kind == report.get("endpoint_kind")}
            if not self.state.methods_left(failed):
                return False
        return False

    def _to_be_shortened(self, more: Sequence[Item] | None = None) -> bool:
        """Whether the window has to be rebuilt from readable text: the trigger is reached, no method of compaction is
        left, and a rebuild would be smaller."""
        state = self.state
        if state.mode == "off" or state.methods_left() or not state.policy.ledger or state.resets:
            return False
        if state.mode == "server_side" and not (state.dialect.mixes and state.response_id is None and state.overdue()):
            return False
        limit = trigger_tokens(state)
        held = estimate(state.items, payload_tokens=state.payload_tokens)
        # half the trigger is what a rebuild leaves
        return held > limit // 2 + limit // 4 and pressure(state, None if more is None else list(more))[0] >= limit

    def _shorten_now(self) -> Steps:
        """Rebuild the window from readable text between turns, when it grows by items that no response brought."""
        state = self.state
        known, positions, before = state.match, state.positions, self._before("semantic_rebuild")
        state.reset("semantic_rebuild")
        yield Keep(lambda: self._seed((), before=before))
        state.match, state.positions = known, positions
        self.state = yield Keep(lambda: self.keeper.save_turn(state, Turn(completed=True, stored=True)))

    def _before(self, reason: str) -> Before:
        """Return the state that a rebuild takes over from the dropped window."""
        return Before(copy(self.state), reason)

    def _drop_to_checkpoint(self, *, room: int | None = None, reason: str = "overflow_rebuild") -> Steps:
        """Drop a window that could not be compacted, and rebuild it from readable text."""
        assert self.given is not None
        given, input_is, params = self.given
        state = self.state
        pending = state.pending
        new = pending.increment if pending is not None else []
        known, positions, before = state.match, state.positions, self._before(reason)
        state.reset(reason)
        seed: Mapping[str, Any] = yield Keep(lambda: self._seed(new, room, before))
        if input_is == "history":
            state.match, state.positions = known, positions
        _, found = state.plan(new if input_is == "items" else given, input_is=input_is, **params)
        self._continue({**found, **seed})


def _model_of(form: Mapping[str, Any]) -> str | None:
    named = form.get("model")
    return named if isinstance(named, str) else None
