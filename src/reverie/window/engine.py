"""A round of a conversation as a sequence of steps, without doing any of them.

`Engine.turn` is a generator: it yields what is to be done next (`Send` a request, `Keep` something durable) and is
sent back how that went. A driver that awaits and one that blocks run the same rounds; so does a proxy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

from reverie.core.errors import ReverieError
from reverie.window.compaction import MOST_HALVINGS, pressure, trigger_tokens
from reverie.window.errors import Refusal, classify_error
from reverie.window.estimate import estimate
from reverie.window.items import Item, Json, input_items
from reverie.window.state import WindowState
from reverie.window.steps import Answer, Keep, Keeper, Send, Steps, Ticket
from reverie.window.turn import InputIs

_SERVER_FAULTS = 2
_CHAIN_LOSS = frozenset({"chain_lost", "item_not_persisted", "malformed", "unpaired_call", "other"})


class Diagnostics(dict[str, Any]):
    """The last turn: `incremental_continuation` (also as `continuation`), `remote_compaction`, `cache`.

    A part that is not there reads as None.
    """

    def __missing__(self, key: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)


class Engine:
    """The rounds of one window."""

    def __init__(self, keeper: Keeper, state: WindowState, *, clock: Callable[[], int]) -> None:
        self.keeper = keeper
        self.state = state
        self.clock = clock
        self.diagnostics = Diagnostics()
        self._overdue_told = False
        self._kept: WindowState | None = None
        """The window as the turn under way found it; None when that turn was kept."""
        self.given: tuple[Any, InputIs, Json] | None = None
        self.local: list[tuple[int, int]] = []
        """Local projections of items since the last round; the next round leaves them alone."""

    def current(self) -> WindowState:
        """The window as it is kept. Reads the store; a turn that got no answer has left nothing."""
        self._undo()
        self.state = self.keeper.refresh(self.state)
        return self.state

    def _undo(self) -> None:
        """Take back the drops of a turn that was not answered: no upstream has accepted it."""
        kept, self._kept = self._kept, None
        if kept is not None and len(self.state.resets) > len(kept.resets):
            kept.mode, kept.server_faults, kept.round = self.state.mode, self.state.server_faults, self.state.round
            self.state = kept

    # a turn

    def turn(self, given: Any, input_is: InputIs, params: Json, *, stream: bool = False) -> Steps:
        """One round. Returns the Answer the caller gets; with `stream`, an open stream to be `finish`ed."""
        answer: Answer = yield from self._open(given, input_is, params, stream=stream)
        if not answer.ok or stream:
            return answer
        yield from self.finish(answer.text)
        return answer

    def _open(self, given: Any, input_is: InputIs, params: Json, *, stream: bool) -> Steps:
        self.diagnostics = Diagnostics()
        self.given = (given, input_is, params)
        yield Keep(self.current)
        self.state.begin_round()
        self._kept = copy(self.state)
        self._kept.resets = list(self.state.resets)
        while self.local:
            self.state.note_local(*self.local.pop())
        yield from self._plan()
        yield from self._maybe_pass()
        answer: Answer = yield self._send(stream)
        tried: set[str] = set()
        while not answer.ok:
            refusal = classify_error(answer.status, answer.text)
            again = yield from self._recover(refusal, answer, tried)
            if not again:
                break
            answer = yield self._send(stream)
        if answer.ok:
            self.state.server_faults = 0
        else:
            self._undo()
        return answer

    def _send(self, stream: bool) -> Send:
        pending = self.state.pending
        assert pending is not None
        silence = self.state.policy.watchdog_seconds if self.state.mode == "server_side" else None
        return Send("/responses", pending.body, stream=stream, silence=silence)

    def _plan(self) -> Steps:
        assert self.given is not None
        given, input_is, params = self.given
        state = self.state
        seed: Mapping[str, Any] = {}
        if state.resets and not state.match:
            if input_is == "history":
                state.items = []
                seed = {"seeded_from": "caller", "seeded_items": len(input_items(given)), "seed_omitted_turns": 0}
            elif state.empty:
                seed = yield from self._seed(input_items(given))
        _, found = state.plan(given, input_is=input_is, **params)
        if state.resets and input_is == "history" and self._too_large():
            note = yield Keep(self._note)
            _, found = state.plan(given, input_is=input_is, note=note, **params)
            found["shortened"] = True
        self._continued({**found, **seed})

    def _continued(self, found: dict[str, Any]) -> None:
        self.diagnostics["incremental_continuation"] = self.diagnostics["continuation"] = found
        if self.state.pending is not None:
            self.state.pending.diagnostics = found

    def _too_large(self) -> bool:
        state = self.state
        limit = state.policy.context_window or state.policy.trigger() * 2
        return state.pending is not None and estimate(state.pending.increment) > limit

    def _note(self) -> str:
        found = self.keeper.readable(most_tokens=1)
        return f"Earlier parts of this conversation were left out.\n{found.note}"

    def _seed(self, following: Sequence[Item], *, room: int | None = None) -> Steps:
        """After a drop, when the caller gives only what is new: what can be read of the conversation so far, as much
        as fits into `room` tokens, by default half the trigger. Returns the diagnostics of it."""
        return (yield Keep(lambda: self._seeded(following, room)))

    def _seeded(self, following: Sequence[Item], room: int | None = None) -> dict[str, Any]:
        most = trigger_tokens(self.state) // 2 if room is None else room
        made = self.keeper.readable(most_tokens=most, following=following)
        self.state.items = made.items
        found = {"seeded_items": len(made.items), "seed_omitted_turns": made.omitted_turns}
        return {"seeded_from": made.source, **found} if made.items else {}

    def restored(self) -> WindowState:
        """The window as it is kept; after a drop, as it can be read from the ledger. Reads the store."""
        state = self.current()
        if state.resets and state.empty:
            self._seeded(())
        return self.state

    # when a request is refused

    def _recover(self, refusal: Refusal, answer: Answer, tried: set[str]) -> Steps:
        """Whether to send again, after doing what it takes. Each remedy is tried once per turn."""
        state = self.state
        pending = state.pending
        assert pending is not None
        yield from self._server_fault(refusal, answer)
        if refusal.kind == "context_window" and "overflow" not in tried:
            tried.add("overflow")
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
        compared = (pending.body.get("prompt_cache_options") or {}).get("comparison_response_id")
        if refusal.kind == "malformed" and compared and state.suspected_loss and "compare" not in tried:
            tried.add("compare")
            state.suspected_loss = False
            state.rebuild_body()
            return True
        return False

    def _drop(self, reason: str) -> Steps:
        self.state.reset(reason)
        yield from self._plan()

    def _server_fault(self, refusal: Refusal, answer: Answer) -> Steps:
        state = self.state
        fault = answer.stalled or (refusal.status is not None and refusal.status >= 500)
        if state.mode != "server_side":
            return
        if not fault:
            return
        state.server_faults += 1
        if state.server_faults >= _SERVER_FAULTS:
            state.mode = "standalone"
            state.server_faults = 0
            self.diagnostics["server_side_disabled"] = True
            yield Keep(lambda: self.keeper.tell("server_side_disabled", {"faults": _SERVER_FAULTS}))

    def stream_failed(self, *, stalled: bool) -> Steps:
        """A stream ended early; the window stays as it was."""
        status = None if stalled else 500
        yield from self._server_fault(Refusal("transient", status, None), Answer(status, stalled=stalled))

    def overflowed(self, failure: Refusal | None) -> bool:
        """Whether a stream failed because the context was too long."""
        return failure is not None and failure.kind == "context_window"

    def reopen(self) -> Steps:
        """After a stream failed for length before it said anything: compact and ask once more."""
        again = yield from self._overflow()
        if not again:
            return None
        return (yield self._send(True))

    def _overflow(self) -> Steps:
        """The provider refused for length: compact a prefix of what it accepted before, halving it when even that is
        too long. True when it is worth sending again."""
        state = self.state
        pending = state.pending
        assert pending is not None
        window = state.policy.context_window
        largest = max((estimate([item]) for item in pending.increment), default=0)
        if window is not None and largest > window:
            self._report({"status": "skipped_item_exceeds_window", "trigger_reason": "context_window_error"})
            return False
        if state.resets and state.items:  # rebuilt for this turn: nothing is kept that a pass could take
            yield from self._drop_to_checkpoint(room=trigger_tokens(state) // 4)
            return True
        for halvings in range(MOST_HALVINGS + 1):
            report = yield from self._pass("context_window_error", halvings=halvings)
            status = report.get("status") if report else None
            if status == "compacted":
                self.state.rebuild_body()
                return True
            if status == "unsupported_endpoint":
                report = yield from self._pass("context_window_error", halvings=halvings)
                if report and report.get("status") == "compacted":
                    self.state.rebuild_body()
                    return True
            if status != "failed_context_window":
                if status == "skipped_no_safe_boundary" and not state.items and len(pending.increment) == 1:
                    self._report({**(report or {}), "status": "skipped_item_exceeds_window"})
                return False
        report = self.state.remote_compaction
        yield from self._drop_to_checkpoint()
        if report is not None:
            self._report(report)
        return True

    def _drop_to_checkpoint(self, *, room: int | None = None) -> Steps:
        """Nothing of the window could be compacted: begin again from what can be read."""
        assert self.given is not None
        given, input_is, params = self.given
        state = self.state
        pending = state.pending
        new = pending.increment if pending is not None else []
        known, positions = state.match, state.positions
        state.reset("semantic_rebuild")
        seed: Mapping[str, Any] = yield from self._seed(new, room=room)
        if input_is == "history":
            state.match, state.positions = known, positions
        _, found = state.plan(new if input_is == "items" else given, input_is=input_is, **params)
        self._continued({**found, **seed})

    # an answer

    def finish(self, text: str, items: list[Item] | None = None) -> Steps:
        """Take a response, keep it, then look whether a pass is due."""
        completed = yield from self.keep(text, items)
        if completed:
            yield from self._maybe_pass()

    def after_turn(self) -> Steps:
        """Look whether a pass is due, at the stable boundary after a completed response."""
        yield from self._maybe_pass()

    def keep(self, text: str, items: list[Item] | None = None) -> Steps:
        """Take a response and keep it. Returns whether this is a stable boundary."""
        state = self.state
        try:
            turn = state.accept(text, items=items)
        except (ValueError, RecursionError):  # an unreadable answer changes nothing
            return False
        if turn.cache is not None:
            self.diagnostics["cache"] = turn.cache
        if not turn.stored:
            return False
        try:
            self.state = yield Keep(lambda: self.keeper.save_turn(state, turn))
        except ReverieError as fault:  # the caller still gets its answer; the next turn keeps both
            self.diagnostics["store_error"] = fault.reason
            self._kept = None
            return False
        self._kept = None
        if turn.checkpoint_ref is not None:
            self.diagnostics["continuation"]["checkpoint_ref"] = turn.checkpoint_ref
        if turn.server_items:
            self._overdue_told = False
        return turn.completed

    # passes

    def compact(self) -> Steps:
        """A pass because the caller asks for one. Returns its diagnostics."""
        self.diagnostics = Diagnostics()
        yield Keep(self.current)
        self.state.begin_round()
        self.state.pending = None
        return (yield from self._pass("manual"))

    def compact_if_due(self, more: Sequence[Item] = ()) -> Steps:
        """A pass, when a request with `more` items would call for one. Returns its diagnostics, if there was one."""
        self.diagnostics = Diagnostics()
        state = self.state
        state.begin_round()
        state.pending = None
        reason = state.due()
        if reason is None and pressure(state, list(more))[0] >= trigger_tokens(state):
            reason = "estimated_window_pressure"
        return (yield from self._pass(reason))

    def _maybe_pass(self) -> Steps:
        state = self.state
        overdue = state.overdue()
        if overdue and (state.response_id is not None or (state.pending is not None and state.pending.chained)):
            self.diagnostics["server_side_overdue"] = True
            if not self._overdue_told:
                self._overdue_told = True
                yield Keep(lambda: self.keeper.tell("server_side_overdue", {"tokens": state.pressure()[0]}))
            return
        report = yield from self._pass(state.due(), overdue=overdue)
        if report and report.get("status") == "compacted" and self.state.pending is not None:
            self.state.rebuild_body()

    def _pass(self, reason: str | None, *, halvings: int = 0, overdue: bool = False) -> Steps:
        """One pass, or why there is none. Whatever happens in it, the turn goes on."""
        state = self.state
        if reason is None or (state.resets and state.items):  # what a pass takes is kept first
            return None
        body = state.compaction_request(reason, now=self.clock(), overdue=overdue, halvings=halvings)
        if body is None:
            report = state.remote_compaction
            if report is not None:
                self._report(report)
                if report["status"] == "skipped_unsupported_endpoint":
                    yield from self._unavailable()
            return report
        attempt = state.attempt
        assert attempt is not None
        try:
            ticket: Ticket | None = yield Keep(lambda: self.keeper.begin_pass(state))
        except ReverieError as fault:  # no pass without its checkpoint
            state.attempt = None
            report = {**attempt.base, "status": "failed", "error": fault.reason}
            self._report(report)
            return report
        if ticket is None:  # somebody else is at it
            state.attempt = None
            return None
        began = time.monotonic()
        try:
            answer: Answer = yield Send(
                attempt.path,
                attempt.body,
                collect=attempt.stream,
                is_pass=True,
                timeout=state.policy.compact_timeout_seconds,
            )
        except BaseException:
            state.attempt = None
            self.keeper.abandon(ticket)
            raise
        took = int((time.monotonic() - began) * 1000)
        status = answer.status
        try:
            if status is not None and status < 300:
                self.state, report = yield Keep(
                    lambda: self.keeper.commit_pass(state, ticket, answer.text, http_status=status, duration_ms=took)
                )
            else:
                report = state.fail_compaction(status, answer.text, now=self.clock(), duration_ms=took)
                yield Keep(partial(self.keeper.end_pass, ticket, report))
        except ReverieError as fault:
            state.attempt = None
            report = {**attempt.base, "status": "failed", "error": fault.reason}
        self._report(report)
        if report["status"] == "unsupported_endpoint" and not self.state.methods_left():
            yield from self._unavailable()
        return report

    def _unavailable(self) -> Steps:
        if self.state.negative.first(self.state.base, self.keeper.key):
            data = {"compact_url_known": True}
            yield Keep(lambda: self.keeper.tell("remote_compaction_unavailable", data))

    def _report(self, report: Mapping[str, Any]) -> None:
        """The pass of this turn; why a second one was skipped does not hide the first."""
        known = self.diagnostics["remote_compaction"]
        idle = known is None or str(known.get("status", "")).startswith("skipped")
        if idle or not str(report.get("status", "")).startswith("skipped"):
            self.diagnostics["remote_compaction"] = dict(report)
