"""The passes of a round: whether one is made, its outcome, and its diagnostics."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from reverie.core.errors import ReverieError
from reverie.window.compaction import accept_count, count_request, exceeds_window
from reverie.window.estimate import MOST_TOKENS
from reverie.window.items import json_object
from reverie.window.state import WindowState
from reverie.window.steps import Keep, Keeper, RequestOutcome, Send, Steps, Ticket

_COUNT_SECONDS = 5.0


class Diagnostics(dict[str, Any]):
    """The last turn: `incremental_continuation` (also as `continuation`), `remote_compaction`, `cache`.

    A missing part reads as None.
    """

    def __missing__(self, key: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)


class Passes:
    """The passes of one window."""

    def __init__(self, keeper: Keeper, state: WindowState, *, clock: Callable[[], int]) -> None:
        self.keeper = keeper
        self.state = state
        self.clock = clock
        self.diagnostics = Diagnostics()
        self._overdue_reported = False
        self._counted_round = -1

    def _maybe_pass(self) -> Steps:
        state = self.state
        overdue = state.overdue()
        chained = state.response_id is not None or (state.pending is not None and state.pending.chained)
        if overdue and (chained or not state.dialect.mixes):
            self.diagnostics["server_side_overdue"] = True
            if not self._overdue_reported:
                self._overdue_reported = True
                yield Keep(lambda: self.keeper.tell("server_side_overdue", {"tokens": state.pressure()[0]}))
            return
        report = yield from self._pass(state.due(), overdue=overdue)
        if report and report.get("status") == "compacted" and self.state.pending is not None:
            self.state.rebuild_body()

    def _pass(
        self, reason: str | None, *, halvings: int = 0, overdue: bool = False, without: Collection[str] = ()
    ) -> Steps:
        """Make one pass, or report why there is none. A failure in it never fails the turn."""
        state = self.state
        if reason is None or state.background is not None or (state.resets and state.items):
            return None  # items are stored before a pass takes them
        now = self.clock()
        body = state.compaction_request(reason, now=now, overdue=overdue, halvings=halvings, without=without)
        if body is None and reason == "estimated_window_pressure" and exceeds_window(state) and self._may_count():
            yield from self._count_tokens()
            return (yield from self._pass(state.due(), overdue=overdue))
        if body is None:
            report = state.remote_compaction
            if report is not None:
                self._report(report)
                if report["status"] == "skipped_unsupported_endpoint":
                    yield from self._unavailable()
            return report
        if reason == "estimated_window_pressure" and not (yield from self._count_tokens()):
            self._report(state.remote_compaction or {})
            return state.remote_compaction
        attempt = state.attempt
        assert attempt is not None
        try:
            ticket: Ticket | None = yield Keep(lambda: self.keeper.begin_pass(state))
        except ReverieError as fault:  # no pass without its checkpoint
            state.attempt = None
            report = {**attempt.base, "status": "failed", "error": fault.reason}
            self._report(report)
            return report
        if ticket is None:  # another process is making one
            state.attempt = None
            return None
        began = time.monotonic()
        try:
            answer: RequestOutcome = yield Send(
                attempt.path,
                attempt.body,
                collect=attempt.stream,
                is_pass=True,
                timeout=state.policy.compact_timeout_seconds,
                betas=state.dialect.betas(state, is_pass=True),
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

    def _count_tokens(self) -> Steps:
        """Ask the provider for the exact tokens before a pass is bought on an estimate, once per round. False when
        they are below the trigger; a count that fails leaves the decision to the estimate."""
        state = self.state
        if not self._may_count():
            return True
        self._counted_round = state.round
        dialect = state.dialect
        answer: RequestOutcome = yield Send(
            dialect.count, count_request(state), is_pass=True, timeout=_COUNT_SECONDS, betas=dialect.betas(state)
        )
        if answer.status in (404, 405, 410, 501):
            state.negative.add(state.base, "count", answer.status)
        tokens = _count_in(answer)
        return True if tokens is None else accept_count(state, tokens)

    def _may_count(self) -> bool:
        state = self.state
        if state.policy.count_tokens == "off" or state.base.kind == "codex" or self._counted_round == state.round:
            return False
        return state.negative.status(state.base, "count") is None

    def _unavailable(self) -> Steps:
        if self.state.negative.first(self.state.base, self.keeper.key):
            data = {"compact_url_known": True}
            yield Keep(lambda: self.keeper.tell("remote_compaction_unavailable", data))

    def _report(self, report: Mapping[str, Any]) -> None:
        """Report a pass of this turn. A second one that was skipped does not hide the first."""
        known = self.diagnostics["remote_compaction"]
        idle = known is None or str(known.get("status", "")).startswith("skipped")
        if idle or not str(report.get("status", "")).startswith("skipped"):
            self.diagnostics["remote_compaction"] = dict(report)


def _count_in(answer: RequestOutcome) -> int | None:
    """The tokens that the provider counted; None when it gave no count."""
    if answer.status is None or answer.status >= 300:
        return None
    tokens = json_object(answer.text).get("input_tokens")
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 < tokens <= MOST_TOKENS else None
