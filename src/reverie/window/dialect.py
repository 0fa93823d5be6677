"""Dialects of the APIs that a window talks to: requests, answers, passes and refusals. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from reverie.window.continuation import ExpectedItem
from reverie.window.errors import WindowRefusal
from reverie.window.items import Item, Json

if TYPE_CHECKING:
    from reverie.window.compaction import Attempt
    from reverie.window.state import WindowState
    from reverie.window.streaming import Reading


@dataclass(frozen=True, slots=True)
class Read:
    """An answer, as the window uses it."""

    completed: bool
    """Whether it is a stable boundary. Another answer is kept too, but no pass follows it."""
    output: list[Item]
    id: str | None = None
    usage: Mapping[str, Any] | None = None
    """`input_tokens` (cached ones included), `output_tokens`, `input_tokens_details.cached_tokens`."""
    reported: int | None = None
    """Tokens of the context, as the provider reports them."""
    reports_output: bool = False
    """Whether `reported` includes the answer."""
    after_compaction: bool = False
    """Whether `reported` was measured after a compaction that came with the answer."""
    word: dict[str, Any] | None = None
    """The provider's own diagnosis of its cache."""


@dataclass(frozen=True, slots=True)
class PassVerdict:
    """The verdict on the answer to a pass: the replacement of the prefix, or the reason why there is none."""

    status: str | None
    """The reason for a rejection; None when the answer may replace the prefix."""
    replacement: list[Item] = field(default_factory=list)
    made: list[Item] = field(default_factory=list)
    """The items of `replacement` that the provider made."""
    items: int = 0
    usage: Mapping[str, Any] | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens of a payload, by its hash."""
    code: str | None = None
    unsupported: bool = False
    """Whether the answer shows that the method does not exist here."""


class Dialect(Protocol):
    """One API."""

    create: str
    """The path of a request, below the base."""
    count: str
    server_kind: str
    """The `endpoint_kind` of a compaction that the provider makes by itself."""
    pass_mode: str
    """The mode that replaces server-side compaction when it fails."""
    mixes: bool
    """Whether a window may hold both results of our passes and the provider's own compactions."""
    retains: bool
    """Whether a pass keeps the user's messages."""

    def items(self, given: Any) -> list[Item]:
        """Convert a caller's input into items."""

    def forms(self, items: Iterable[Item]) -> list[Any]:
        """Items without what callers drop when they repeat them."""

    def matches(self, items: Iterable[Item], *, returned: bool) -> list[ExpectedItem]:
        """Return the items the caller is expected to repeat, of those that it sent or (`returned`) was given."""

    def boundaries(self, items: Sequence[Item]) -> list[int]:
        """Every safe boundary above 0, in order."""

    def broken(self, items: Sequence[Item]) -> bool:
        """Whether an output has no call."""

    def foreign(self, items: Sequence[Item], params: Mapping[str, Any]) -> str | None:
        """Return the reason why a request does not belong to the window, or None."""

    def body(self, state: WindowState, params: Mapping[str, Any]) -> Json:
        """The pending request."""

    def betas(self, state: WindowState, *, is_pass: bool = False) -> tuple[str, ...]:
        """Names of betas that the next request needs."""

    def read(self, text: str | bytes, items: Sequence[Item] | None = None) -> Read | None:
        """Read an answer; None when it failed. Raises ValueError when it cannot be parsed."""

    def paused(self, text: str) -> bool:
        """Whether an answer is a compaction after which the provider waits for a request to go on."""

    def reading(self) -> Reading:
        """A new reader of the events of a stream."""

    def count_body(self, state: WindowState, items: Sequence[Item]) -> Json:
        """The body that asks for the exact tokens of the pending request, or of `items` when none is pending."""

    def pass_body(self, state: WindowState, method: str, end: int) -> Json | str:
        """The body of a pass over `items[:end]`, or the status that says why there is none."""

    def judge(self, state: WindowState, attempt: Attempt, answer: str | bytes) -> PassVerdict:
        """Judge the answer to a pass."""

    def refusal(self, status: int | None, body: Any) -> WindowRefusal:
        """Classify an error answer."""

    def unsupported(self, method: str, refusal: WindowRefusal, body: Any) -> bool:
        """Whether a refused pass shows that the method does not exist here."""

    def note(self, text: str) -> Item:
        """Build a message to the model about items it no longer sees."""

    def readable(self, items: Sequence[Item]) -> list[Item]:
        """Convert items into those of the readable layer."""

    def restored(self, items: Sequence[Item]) -> list[Item]:
        """Convert items of the readable layer into items that can be sent."""
