"""A round of a conversation as a sequence of steps, without I/O.

`Engine.turn` is a generator: it yields what is to be done next (`Send` a request, `Keep` something durable) and is
sent back the outcome. Awaiting and blocking drivers and the proxy run the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from reverie.core.errors import Conflict, ReverieError
from reverie.window.compaction import pressure, trigger_tokens
from reverie.window.items import Item, Json, json_object
from reverie.window.messages import is_mixed
from reverie.window.passes import Diagnostics
from reverie.window.recovery import Recovery
from reverie.window.state import WindowState
from reverie.window.steps import Keep, Keeper, RequestOutcome, Send, Steps
from reverie.window.turn import InputIs, Turn

__all__ = ["BackgroundPending", "Diagnostics", "Engine"]

_UNFINISHED = frozenset({"queued", "in_progress"})


class BackgroundPending(Conflict):
    """An answer of this conversation is still to come. Fetch it with `retrieve`, or cancel it, before the next turn."""

    code = "background_pending"

    def __init__(self, response_id: str) -> None:
        message = f"Response {response_id} is not finished. Fetch it with retrieve, or cancel it, before the next turn."
        super().__init__(message, details={"responseId": response_id})


class Engine(Recovery):
    """The rounds of one window."""

    def __init__(self, keeper: Keeper, state: WindowState, *, clock: Callable[[], int]) -> None:
        super().__init__(keeper, state, clock=clock)
        self.foreign: list[Item] | None = None
        """The caller's input in a turn that is not part of the window."""
        self._kept: WindowState | None = None
        """The window before the current turn; None once that turn is stored."""
        self.local: list[tuple[int, int]] = []
        """Local projections of items since the last round; the next round leaves them alone."""

    def current(self) -> WindowState:
        """The window as stored. Reads the store; a turn without an answer leaves no trace."""
        self._undo()
        self.state = self.keeper.refresh(self.state)
        return self.state

    def _undo(self) -> None:
        """Undo the drops of a turn that was not answered: no provider has accepted it."""
        kept, self._kept = self._kept, None
        if kept is not None and len(self.state.resets) > len(kept.resets):
            kept.take_server_faults(self.state)
            kept.round = self.state.round
            self.state = kept

    def restored(self) -> WindowState:
        """The window as stored; after a drop, rebuilt from the ledger. Reads the store."""
        state = self.current()
        if state.resets and state.empty:
            self._seed(())
        return self.state

    def counted(self, given: Any, params: Json) -> Json:
        """The request for the exact tokens of a turn with these new items. Changes nothing. Reads the store."""
        if self.state.dialect.foreign((), params) is not None:
            return params if given is None else {**params, "input": given}
        state = copy(self.restored())
        state.resets = list(state.resets)
        body, _ = state.plan(given, input_is="items", **params)
        return params | {name: body[name] for name in ("input", "previous_response_id") if name in body}

    # a turn

    def turn(self, given: Any, input_is: InputIs, params: Json, *, stream: bool = False) -> Steps:
        """One round. Returns the outcome for the caller; with `stream` an open stream, whose answer is kept later."""
        answer: RequestOutcome = yield from self._open(given, input_is, params, stream=stream)
        if stream:
            return answer
        while answer.ok and self.foreign is None and self.state.dialect.paused(answer.text):
            answer = yield from self.resumed(answer.text)
        if answer.ok:
            yield from self.finish(answer.text)
        return answer

    def resumed(self, text: str, *, stream: bool = False) -> Steps:
        """Keep a compaction after which the provider paused, and ask it to go on."""
        assert self.given is not None
        yield from self.keep(text)
        _, found = self.state.plan([], input_is="items", **self.given[2])
        self._continue(found)
        return (yield self._send(stream))

    def _open(self, given: Any, input_is: InputIs, params: Json, *, stream: bool) -> Steps:
        self.diagnostics = Diagnostics()
        self.given = (given, input_is, params)
        self._refused = self._least_refused = self.foreign = None
        self._rebuilds = 0
        yield Keep(self.current)
        while self.state.background is not None:  # after one, another that a different process asked
            unsettled: RequestOutcome | None = yield from self._settle()
            if unsettled is not None:
                return unsettled
        foreign = self.state.dialect.foreign(self.state.dialect.items(given), params)
        if foreign is not None:
            return (yield from self._open_foreign(foreign, stream))
        if is_mixed(self.state):  # the two kinds of compaction never stand in one window
            self.state.reset("semantic_rebuild")
        self.state.begin_round()
        self._kept = copy(self.state)
        self._kept.resets = list(self.state.resets)
        while self.local:
            self.state.note_local(*self.local.pop())
        yield from self._plan()
        yield from self._maybe_pass()
        if self._to_be_shortened():
            yield from self._drop_to_checkpoint(reason="semantic_rebuild")
        answer: RequestOutcome = yield self._send(stream)
        tried: set[str] = set()
        while not answer.ok:
            refusal = self.state.dialect.refusal(answer.status, answer.text)
            again = yield from self._recover(refusal, answer, tried)
            if not again:
                break
            answer = yield self._send(stream)
        if answer.ok:
            self.state.server_faults = 0
        else:
            self._undo()
        return answer

    def _open_foreign(self, reason: str, stream: bool) -> Steps:
        """A turn of a conversation that the caller keeps at the provider or compacts itself: the request is sent as it
        is, and only the ledger records it."""
        assert self.given is not None
        given, _, params = self.given
        dialect = self.state.dialect
        items = dialect.items(given)
        self.foreign = items if dialect.mixes else items[-1:]  # a message list is the whole history every time
        results = {"status": "fallback_full_request", "fallback_reason": reason}
        results["request_lowering_mode"] = "full_request"
        self.diagnostics["incremental_continuation"] = self.diagnostics["continuation"] = results
        said = given if isinstance(given, str) else [item.value for item in items]
        name = "input" if dialect.mixes else "messages"
        body = params if given is None else {**params, name: said}
        return (yield Send(dialect.create, body, stream=stream))

    def _note_turn(self, text: str, items: list[Item] | None) -> Steps:
        foreign, self.foreign = self.foreign, None
        try:
            read = self.state.dialect.read(text, items)
        except (ValueError, RecursionError):
            return False
        if read is not None:
            said = [*(foreign or []), *read.output]
            try:
                yield Keep(lambda: self.keeper.note(self.state, said))
            except ReverieError as fault:
                self.diagnostics["store_error"] = fault.reason
        return False

    # a pending answer

    def _settle(self) -> Steps:
        """Fetch the pending answer. Returns the outcome of this turn when it cannot go on before that answer."""
        assert self.state.background is not None
        waiting = str(self.state.background["response_id"])
        answer: RequestOutcome = yield Send(f"/responses/{waiting}", {}, method="GET")
        if answer.status == 404:
            yield from self._dismiss()
            return None
        if not answer.ok:
            return answer
        yield from self.resolved(waiting, answer.text)
        if self.state.background is None or self.state.background["response_id"] != waiting:
            return None
        self.diagnostics["background_pending"] = waiting
        return RequestOutcome(409, error=BackgroundPending(waiting))

    def resolved(self, response_id: str, text: str, items: list[Item] | None = None) -> Steps:
        """Take a pending answer that was fetched, in any process, once. A text that cannot be read changes nothing.
        Returns whether this is a stable boundary."""
        yield Keep(self.current)
        waiting = self.state.background
        status = _status(text)
        if waiting is None or waiting["response_id"] != response_id or not status or status in _UNFINISHED:
            return False
        if status in ("completed", "incomplete"):
            self.state.resume()
            return (yield from self.keep(text, items))
        yield from self._dismiss()
        return False

    def _dismiss(self) -> Steps:
        """End a pending turn without an answer. Its words stay in the ledger."""
        assert self.state.background is not None
        ended = str(self.state.background["response_id"])
        self.state.background = None
        self.state = yield Keep(lambda: self.keeper.save_question(self.state, None, ended=ended))

    def opened(self, text: str) -> Steps:
        """Note the start of a stream whose answer continues without a reader. Returns whether the question is kept."""
        pending = self.state.pending
        if pending is None or not pending.background or self.state.background is not None:
            return False
        yield from self._defer(text)
        return True

    def _defer(self, text: str) -> Steps:
        state = self.state
        turn = state.defer(text, since=self.clock())
        assert state.background is not None
        self.diagnostics["background_pending"] = state.background["response_id"]
        try:
            self.state = yield Keep(lambda: self.keeper.save_question(state, turn))
        except ReverieError as fault:  # the caller still gets the id of its answer
            self.diagnostics["store_error"] = fault.reason
        self._kept = None
        return False

    # an answer

    def finish(self, text: str, items: list[Item] | None = None) -> Steps:
        """Take a response, keep it, then make a pass if one is due."""
        completed = yield from self.keep(text, items)
        if completed:
            yield from self._maybe_pass()

    def after_turn(self) -> Steps:
        """Make a pass if one is due, at the stable boundary after a completed response."""
        yield from self._maybe_pass()

    def keep(self, text: str, items: list[Item] | None = None) -> Steps:
        """Take a response and keep it. Returns whether this is a stable boundary."""
        state = self.state
        if self.foreign is not None:
            return (yield from self._note_turn(text, items))
        if state.pending is not None and state.pending.background and _status(text) in _UNFINISHED:
            return (yield from self._defer(text))
        try:
            turn = state.accept(text, items=items)
        except (ValueError, RecursionError):  # an unreadable answer changes nothing
            return False
        self._learn(turn)
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
            self._overdue_reported = False
        return turn.completed

    def _learn(self, turn: Turn) -> None:
        """Learn the length that the provider refuses: the smallest refused one, unless a longer one was accepted."""
        state = self.state
        refused = self._least_refused or self._refused
        if refused is not None:
            state.refused_at_tokens = min(refused, state.refused_at_tokens or refused)
        accepted = (turn.usage or {}).get("input_tokens")
        if isinstance(accepted, int) and accepted >= (state.refused_at_tokens or accepted + 1):
            state.refused_at_tokens = None

    # passes

    def compact(self) -> Steps:
        """Make a pass at the caller's request. Returns its diagnostics."""
        self.diagnostics = Diagnostics()
        yield Keep(self.current)
        self.state.begin_round()
        self.state.pending = None
        return (yield from self._pass("manual"))

    def compact_if_due(self, more: Sequence[Item] = ()) -> Steps:
        """Make a pass if a request with `more` items would call for one. Returns its diagnostics, None without one."""
        self.diagnostics = Diagnostics()
        state = self.state
        state.begin_round()
        state.pending = None
        reason = state.due()
        if reason is None and pressure(state, list(more))[0] >= trigger_tokens(state):
            reason = "estimated_window_pressure"
        report = yield from self._pass(reason)
        if reason is not None and self._to_be_shortened(more):
            yield from self._shorten_now()
        return report


def _status(text: str) -> str:
    """The status of a response; empty when it cannot be read."""
    body = json_object(text)
    return str(body.get("status", "completed")) if body else ""
