"""The steps of a round: requests of an engine, and the outcomes it receives."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reverie.window.items import Item, Json
from reverie.window.state import WindowState
from reverie.window.transcript import Rebuild
from reverie.window.turn import Turn

Steps = Generator["Send | Keep", Any, Any]


@dataclass(frozen=True, slots=True)
class Send:
    """Post `body` to `path` of the base."""

    path: str
    body: Json
    method: str = "POST"
    stream: bool = False
    """Whether the caller gets the stream."""
    collect: bool = False
    """Whether to read the stream to its end and return the response it describes: the provider only streams."""
    is_pass: bool = False
    """Whether this is a compaction: it is not retried, and takes at most `timeout` seconds."""
    timeout: float | None = None
    betas: tuple[str, ...] = ()
    """Names of betas to be added to those of the caller."""
    silence: float | None = None
    """Seconds without an event after which a stream has stalled."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Run `call`, which touches the store, where blocking is allowed."""

    call: Callable[[], Any]


@dataclass(slots=True)
class RequestOutcome:
    """The outcome of a request."""

    status: int | None
    """None: no answer came."""
    text: str = ""
    """The body as received."""
    value: Any = None
    """Value returned to the caller: a response of the SDK, or a stream."""
    error: BaseException | None = None
    """Exception raised to the caller."""
    stalled: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is a response."""
        return self.status is not None and self.status < 300 and self.error is None


@dataclass(frozen=True, slots=True)
class Ticket:
    """A pass that was recorded before it began."""

    id: str
    holder: str
    checkpoint_ref: str | None
    brief: str


@dataclass(frozen=True, slots=True)
class Before:
    """A window that is about to be dropped, and why."""

    state: WindowState
    reason: str


class Keeper(Protocol):
    """The durable side of a window."""

    key: str

    def refresh(self, state: WindowState) -> WindowState:
        """The window as stored now."""

    def save_turn(self, state: WindowState, turn: Turn) -> WindowState:
        """Keep an answered turn, with the drops that it began with."""

    def save_question(self, state: WindowState, turn: Turn | None, *, ended: str | None = None) -> WindowState:
        """Keep a window whose answer is fetched later, with the words of the question (`turn`), or one whose response
        `ended` without an answer."""

    def note(self, state: WindowState, items: Sequence[Item]) -> None:
        """Record items in the ledger that are no part of the window."""

    def begin_pass(self, state: WindowState) -> Ticket | None:
        """Record a pass before it begins."""

    def end_pass(self, ticket: Ticket, report: Mapping[str, Any]) -> None:
        """Record a pass that changed nothing."""

    def abandon(self, ticket: Ticket) -> None:
        """Record a pass that no caller waited for."""

    def commit_pass(
        self, state: WindowState, ticket: Ticket, answer: str, *, http_status: int, duration_ms: int
    ) -> tuple[WindowState, dict[str, Any]]:
        """Judge and store the result of a pass. Returns the window and the diagnostics."""

    def readable(self, *, most_tokens: int, following: Sequence[Item] = (), before: Before | None = None) -> Rebuild:
        """A window from the readable layer. `before`: the window that it replaces, if that is known."""

    def tell(self, type_: str, data: Mapping[str, Any]) -> None:
        """Record an event."""
