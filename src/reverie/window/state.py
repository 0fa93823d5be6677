"""One provider window: the next request, the last answer, and the effect of a compaction. No I/O.

state = WindowState("agent-1/task-7")
body, diagnostics = state.plan(history, model="gpt-5.6-sol", tools=[...])
state.accept(post("/responses", body))                       # the response as JSON text
request = state.compaction_request()                         # None: nothing to do
if request is not None:
    diagnostics = state.accept_compaction(post(state.attempt.path, request))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reverie.window import answers, compaction, planning
from reverie.window.cache import LastTurn
from reverie.window.compaction import Attempt
from reverie.window.continuation import ExpectedItem
from reverie.window.dialect import Dialect
from reverie.window.items import Item, Json
from reverie.window.messages import Messages
from reverie.window.pairing import adjusted_cut
from reverie.window.policy import Base, NegativeCache, WindowPolicy
from reverie.window.responses import Responses
from reverie.window.strip import strip_for_compact, without_message_ids
from reverie.window.turn import Pending, Reset

_RESPONSES, _MESSAGES = Responses(), Messages()


@dataclass(slots=True)
class WindowState:
    """The window of one scope. `items` is always the complete replayable window, regardless of what was sent."""

    scope_id: str | None = None
    base: Base = field(default_factory=lambda: Base.of("https://api.openai.com/v1"))
    policy: WindowPolicy = field(default_factory=WindowPolicy)
    provider: str = "openai"
    account_fingerprint: str = ""
    negative: NegativeCache = field(default_factory=NegativeCache, repr=False)
    mode: str = ""
    """The mode in force; server-side may be switched off after faults."""
    model: str | None = None
    generation: int = 0
    epoch: int = 0
    """Number of times the window was dropped: work begun before a drop never completes after it."""
    items: list[Item] = field(default_factory=list)
    match: list[ExpectedItem] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """The position of each item of `match` in the scope's sequence."""
    prune_from: int | None = None
    response_id: str | None = None
    last_response_id: str | None = None
    all_stored: bool = True
    """Whether the provider keeps every answer in the window; else none of their ids is sent."""
    shape: Json = field(default_factory=dict)
    request_shape_hash: str | None = None
    reported_input_tokens: int | None = None
    reported_at_items: int = 0
    counted_input_tokens: int | None = None
    """The provider's count since the last report; `reported_input_tokens` remains the reported figure."""
    counted_at_items: int = 0
    carried: float = 0.0
    """Cost of repeating the history since the last pass (`cost.py`)."""
    replay_loss_reason: str | None = None
    refused_at_tokens: int | None = None
    """The smallest request that this model refused for its length."""
    tokens_after_pass: int | None = None
    """The estimate of the window that the last pass made, until a response reports usage."""
    cooldown_until_tokens: int | None = None
    cooldown_until_ms: int | None = None
    failures: int = 0
    awaiting_usage: bool = False
    replaced: int = 0
    """Number of items at the front that the last pass produced."""
    payload_tokens: dict[str, int] = field(default_factory=dict)
    next_position: int = 0
    epoch_position: int = 0
    last: LastTurn | None = None
    compacted_since: bool = False
    reset_since: bool = False
    suspected_loss: bool = False
    compare_with: str | None = None
    """The response before a loss that was seen afterwards; the next turn asks about it."""
    server_disabled: bool = False
    """Whether server-side compaction was switched off after faults."""
    server_faults: int = 0
    server_overflows: int = 0
    """Turns on this model that were refused for length although server-side compaction is on."""
    version: int = 0
    """The stored version this is a copy of; 0 before the first."""
    background: Json | None = None
    """`response_id`, `since` and the request, while an answer is still to be fetched."""
    pending: Pending | None = None
    attempt: Attempt | None = None
    resets: list[Reset] = field(default_factory=list)
    """Drops that are not stored yet: the next answered turn stores them."""
    read: Mapping[int, int] = field(default_factory=dict, repr=False)
    """Version by position of the entries that a window was made from, until it is stored."""
    redact: Callable[[str], str] = field(default=lambda _: "", repr=False)
    """Redacts previews; the default leaves nothing of them."""
    round: int = 0
    local_ranges: list[tuple[int, int]] = field(default_factory=list)
    passed_round: int | None = None
    remote_compaction: dict[str, Any] | None = None
    """The diagnostics of the last pass considered in this round."""

    def __post_init__(self) -> None:
        self.mode = self.mode or self.policy.mode_for(self.base.kind)

    @property
    def dialect(self) -> Dialect:
        """The API that the window talks to."""
        return _MESSAGES if self.base.kind == "messages" else _RESPONSES

    @property
    def match_items(self) -> list[Any]:
        """Items that the caller is expected to repeat, in match form (None where only the hash is known)."""
        return [match.form for match in self.match if match.need != "omitted"]

    @property
    def latest_compaction_index(self) -> int | None:
        """The index of the last compaction item, or None."""
        return next((i for i in range(len(self.items) - 1, -1, -1) if self.items[i].is_compaction), None)

    @property
    def empty(self) -> bool:
        """Whether nothing was answered yet."""
        return not self.items and not self.match

    # continuing

    plan = planning.plan
    replan_unchained = planning.replan_unchained
    rebuild_body = planning.rebuild_body
    accept = answers.accept
    defer = answers.defer

    def sendable(self, items: Sequence[Item], store: bool, *, cut: bool = False) -> list[Any]:
        """Items as they are sent. With `cut`, `items` is the whole window, and the items that the server compacted
        itself are left out."""
        first = adjusted_cut(items, self.prune_from) if cut and self.prune_from is not None else 0
        sent = strip_for_compact(items[first:], store, hosted_ids=compaction.sends_hosted_ids(self))
        if store and first == 0 and cut and self.replaced:
            sent = [*without_message_ids(sent[: self.replaced]), *sent[self.replaced :]]
        return sent

    def resume(self) -> None:
        """Take up the request whose answer was fetched."""
        if self.background is not None:
            self.pending = Pending.from_document(self.background["pending"])

    def append(
        self, items: Sequence[Item], repeats: Sequence[ExpectedItem], positions: Sequence[int] | None = None
    ) -> None:
        """Grow the window."""
        first = self.next_position
        self.items = [*self.items, *items]
        self.match = [*self.match, *repeats]
        self.positions = [*self.positions, *(positions or range(first, first + len(repeats)))]
        self.next_position += len(items)
        self.generation += 1

    def reset(self, reason: str, items: Sequence[Item] = ()) -> Reset:
        """Drop the window and start a new generation, from `items` or from what comes next."""
        made = Reset(
            reason=reason,
            generation_before=self.generation,
            generation_after=self.generation + 1,
            compaction_items_dropped=sum(item.is_compaction for item in self.items),
            covered_first=self.epoch_position,
            covered_last=self.next_position - 1,
        )
        self.generation += 1
        self.epoch += 1
        self.items = list(items)
        self.match = []
        self.positions = []
        self.epoch_position = self.next_position
        self.prune_from = self.response_id = self.reported_input_tokens = self.replay_loss_reason = None
        self.cooldown_until_tokens = self.cooldown_until_ms = None
        self.reported_at_items = self.replaced = self.failures = 0
        self.counted_input_tokens, self.counted_at_items, self.carried = None, 0, 0.0
        self.awaiting_usage = False
        self.payload_tokens = {}
        self.reset_since = self.all_stored = True
        self.attempt = None
        self.read = {}
        self.resets.append(made)
        return made

    def rebind(self, *, provider: str, base: Base, account_fingerprint: str) -> bool:
        """Bind the window to a provider, base and account. Returns True when it was made elsewhere, and dropped."""
        same = (self.provider, self.base.url, self.account_fingerprint) == (provider, base.url, account_fingerprint)
        self.provider, self.base, self.account_fingerprint = provider, base, account_fingerprint
        if same or self.empty:
            return False
        self.reset("provider_changed")
        return True

    def take_server_faults(self, other: WindowState) -> None:
        """Copy the faults of server-side compaction from another copy of the window: they are not stored until a turn
        is answered."""
        self.mode, self.server_disabled = other.mode, other.server_disabled
        self.server_faults, self.server_overflows = other.server_faults, other.server_overflows

    def pop(self) -> Item | None:
        """Remove and return the newest item; None when only the result of a pass is left. The caller then restores an
        earlier generation first."""
        if len(self.items) <= self.replaced:
            return None
        item = self.items[-1]
        self.items = self.items[:-1]
        self.match, self.positions = self.match[:-1], self.positions[:-1]
        self.next_position -= 1
        self.generation += 1
        self.response_id = self.counted_input_tokens = None
        self.reported_at_items = min(self.reported_at_items, len(self.items))
        if self.prune_from is not None and self.prune_from >= len(self.items):
            self.prune_from = self.latest_compaction_index
        return item

    # compacting

    pressure = compaction.pressure
    due = compaction.due
    overdue = compaction.overdue
    begin_round = compaction.begin_round
    note_local = compaction.note_local
    compaction_request = compaction.compaction_request
    accept_compaction = compaction.accept_compaction
    fail_compaction = compaction.fail_compaction
    methods_left = compaction.methods_left

    # inside

    def answerable(self) -> Pending:
        """The pending request. Raises ValueError when there is none."""
        if self.pending is None:
            raise ValueError("There is no planned request. Call plan first.")
        return self.pending
