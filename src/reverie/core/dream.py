"""The types of a dream: plan, selector, estimate, report and errors.

One engine turns many entries into fewer. Every protocol's compaction is a DreamPlan given to it. The report is stored
with the dream, and every door shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from reverie.core.clock import to_datetime
from reverie.core.entry import READABLE, EntryState
from reverie.core.errors import Conflict, Unprocessable


class After(StrEnum):
    """The fate of the sources after a dream: cold storage, archive or purge."""

    COLD = "cold"
    """Left out of lists, reads and prompts; can be found and restored until the tenant's retention ends."""
    ARCHIVE = "archive"
    """Kept, but no longer recalled."""
    PURGE = "purge"
    """Destroyed at once. Cannot be undone."""


class Selector(Struct, frozen=True):
    """Selects the entries of a memory that a dream takes; never pinned, held or too recent ones."""

    kinds: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    states: frozenset[EntryState] = READABLE
    session: str | None = None
    older_than_ms: int = 0
    """Only entries at least this old."""
    older_than_epochs: int | None = None
    """Only entries written more than this many epochs ago."""
    dreams: bool = True
    """Whether earlier dreams are taken too: their originals while these are in cold storage, else their text."""


class SourceText(Struct, frozen=True):
    """A text to distil that is not a stored entry."""

    content: str
    id: str


class DreamPlan(Struct, frozen=True):
    """The parameters of a dream."""

    ref: str
    selector: Selector | None = Selector()
    """None: no stored entry is taken, only the texts in `given`."""
    given: tuple[SourceText, ...] = ()
    """Texts that are not stored entries, distilled together with the selected entries."""
    budget: int | None = None
    """Tokens for input and output together; None: the tenant's maximum."""
    distiller: str | None = None
    """`extractive`, `llm`, or `none` (sources are only archived or purged). None: the tenant's policy decides."""
    after: After = After.COLD
    fit: bool = False
    """Take the oldest coherent part that fits the budget instead of failing; the next run takes the following part. A
    plan without a budget does the same when not everything fits.
    """
    least_entries: int = 2
    trigger: str = "host-managed"
    operation: str = "DREAM"
    run: str | None = None
    """Run whose known secrets apply in addition to the tenant's."""
    index: bool = True
    """Whether MEMORY-INDEX.json is written."""
    reason: str | None = None
    most_entries: int | None = None
    """Take at most this many, the oldest first."""
    most_bytes: int | None = None
    """Compaction without a token budget or an archive: the sources become one text of at most this many bytes."""
    originals: bool = True
    """Whether an earlier dream is distilled from its originals; if not, from its own text."""
    strict: bool = True
    """Whether an entry stays as it is when one of its must-keep statements has no place in the text. If not, every
    source leaves, so the budget must hold all must-keep statements. A model's text must pass the gates either way."""
    may_grow: bool = False
    """Whether the text may have more tokens than the entries that leave; then it is made of everything selected."""
    as_of: int | None = None
    """Only entries born at or before this log position."""
    instructions: str | None = None
    """The caller's instructions to a model: content to keep, drop or reword. The model-free distiller ignores them."""


class Leaving(Struct, frozen=True):
    """A statement that a dream would not carry over."""

    id: str
    """The entry of the statement."""
    text: str
    reason: str
    """`chatter`, or `retired`: one of the least valuable statements above the target."""


class Estimate(Struct, frozen=True):
    """The expected result of a plan. Nothing is changed to compute it."""

    ref: str
    position: int
    sources: int
    collapsed: int
    input_tokens: int
    output_tokens: int
    """The limit of the output."""
    budget: int
    minimum_required: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of entries left out, by reason: pinned, held, recent, contested ..."""
    left_for_later: int = 0
    """Entries that a `fit` run leaves to the next run."""
    distiller: str = ""
    feasible: bool = True
    fates: Mapping[str, int] = field(default_factory=dict)
    """Number of sources by fate: kept, shortened, merged, rolled, outdated, chatter, retired."""
    leaving: Sequence[Leaving] = ()
    """Statements that would leave hot memory without a line of their own; at most a few hundred."""
    hot_before: int = 0
    hot_after: int = 0
    """Hot tokens of the memory, now and after the dream."""


class Nothing(StrEnum):
    """Reason why a dream has nothing to do. This is not an error."""

    TOO_FEW = "too_few"
    """Fewer than two entries can be taken."""
    CANNOT_BE_SMALLER = "cannot_be_smaller"
    """Everything must be kept, or the text would be no smaller than its sources."""

    @property
    def sentence(self) -> str:
        """The reason as a sentence."""
        if self is Nothing.TOO_FEW:
            return "Nothing to do: fewer than two entries can be taken."
        return "Nothing to do: this memory cannot be made smaller without losing what must be kept."


class StatementTrace(Struct, frozen=True):
    """A line of the distilled text, and the sources of its words."""

    line: int
    sources: tuple[str, ...]
    how: str
    count: int = 1


class SourceTrace(Struct, frozen=True):
    """A source as it was when the dream took it: enough to restore it."""

    id: str
    version: int
    state: EntryState
    archived: bool
    fate: str
    """`kept` word for word, `shortened`, `merged` with others, `rolled` up with similar ones, `outdated`, `chatter`, or
    `retired` without a line of its own."""
    statements: Sequence[tuple[str, str]] = ()
    """The fate and the value class of every statement of the entry, in order."""


class ReplayAnswer(Struct, frozen=True):
    """An answer to a replayed question."""

    id: str
    """The entry."""
    line: int | None = None
    """The line of the text, when the entry is a dream."""
    cold: bool = False


class Replayed(Struct, frozen=True):
    """A recorded search, asked before a dream and again after it."""

    question: str
    outcome: str
    """Fate of the best answer from before the dream: `kept` among the first answers, or among them from `cold` storage,
    `deep` (found only by a search that always includes cold storage), `updated` by a newer statement, or `lost`.
    `unanswered`: no answer before or after; `answered`: an answer only after.
    """
    before: Sequence[ReplayAnswer] = ()
    """The first answers, best first; weak ones left out."""
    after: Sequence[ReplayAnswer] = ()
    place: int | None = None
    """Rank, after the dream, of the best answer from before; from 1."""


class Replay(Struct, frozen=True):
    """Recorded searches, replayed before and after a dream."""

    dream: str
    questions: Sequence[Replayed] = ()
    skipped: int = 0
    """Questions left out because the time was used up."""
    milliseconds: int = 0
    """Duration of both replays together."""

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of questions by outcome."""
        found = [one.outcome for one in self.questions]
        return {name: found.count(name) for name in OUTCOMES if name in found}


OUTCOMES = ("kept", "cold", "deep", "updated", "lost", "answered", "unanswered")


ABOVE_TARGET = {
    "later": "entries are left to the next run",
    "must_keep": "nearly all that is left must be kept",
    "share": "a target in per cent lets that share stay of what need not be kept",
}
"""Reasons why hot memory is above its target, in words."""

LEFT_OUT = {
    "pinned": "pinned",
    "held": "on hold",
    "state": "in another state",
    "recent": "too recent",
    "kind": "of another kind",
    "tags": "without the tags asked for",
    "session": "of another session",
    "members": "of sessions that only their members may read",
    "dream": "texts of dreams",
    "draft": "drafts",
    "file": "files of a memory store",
    "commitment": "commitments that have yet to fire",
    "trust": "of too little trust",
    "oversize": "larger than the budget",
    "must_keep": "as they are (a text would not make them smaller, or has no room for them)",
}
"""Reasons why a dream leaves entries out, in words that follow their number."""


class DreamReport(Struct, frozen=True):
    """The record of a finished dream: ids, counts and hashes. The text is in the entry and the archive."""

    id: str
    ref: str
    position: int
    seq: int
    """Log position of its commit."""
    created_at: int
    distiller: str
    fingerprint: str
    after: After
    trigger: str
    sources: Sequence[SourceTrace]
    output_id: str | None
    checksum: str | None
    """SHA-256 of the archive's canonical JSON."""
    budget: int
    input_tokens: int
    output_tokens: int
    tokens_before: int
    """Tokens of the sources before duplicates were collapsed."""
    bytes_before: int
    byte_size: int
    statements: Sequence[StatementTrace] = ()
    collapsed: Sequence[tuple[str, ...]] = ()
    """Groups of duplicates, each beginning with the one that was kept."""
    about: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Per source, the keyed hashes of its subjects: a forget finds its lines after the source is destroyed."""
    superseded: Sequence[str] = ()
    """Earlier dreams this one replaces."""
    gates: Mapping[str, Any] = field(default_factory=dict)
    spend: Mapping[str, Any] = field(default_factory=dict)
    fell_back: str | None = None
    """Reason why the model-free distiller replaced the requested model."""
    instructions_applied: bool | None = None
    """Whether a model read the instructions of the plan; None: there were none."""
    reused: bool = False
    """Whether the archive of an identical dream was used again."""
    changed_meanwhile: int = 0
    """Entries that changed while the dream ran and were left as they are."""
    left_for_later: int = 0
    output_limit: int = 0
    """The most tokens that the output was allowed. Under the same limit, the same sources give the same bytes."""
    stayed: Sequence[str] = ()
    """Entries left as they were: the text would only have repeated them, or one of their must-keep statements had no
    place in it."""
    hot_before: int = 0
    hot_after: int = 0
    """Tokens of the whole memory, before and after."""
    hot_target: int = 0
    """Target of the policy in tokens; 0 where there is none: a small memory, or a plan without a target."""
    above_target: str | None = None
    """Reason why hot memory is above the target: `later`, a further run takes more; `must_keep`, all that remains hot
    must be kept; `share`, a target in per cent lets that share of the other statements stay."""
    cold_tokens: int = 0
    """Tokens of the entries that went to cold storage."""
    probes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By kind of statement (decisions, artifacts, facts ...): the number that lines of the text answer, and the number
    that the sources answered. Found by their words, whatever the distiller reports; outdated statements are left out.
    """
    unanswered: Sequence[tuple[str, int, str]] = ()
    """The first statements that no line answers: entry, number of the statement, class. They are in cold storage."""
    reclaimed_bytes: int = 0
    given: int = 0
    """Number of distilled texts that are not entries."""
    outputs: Sequence[str] = ()
    """All entries of a dream that made or changed several; `output_id` is None then."""
    state: str = "done"
    """`done`, `undone`, `superseded` by a later dream, or `redone` after a forget."""
    replay: Replay | None = None
    """The recorded searches, replayed. Not stored; only in the report of a single dream, while searches are kept."""

    @property
    def share(self) -> int:
        """Limit of the output, per mille of the input; 300 for reports that do not hold a limit."""
        return min(1000, self.output_limit * 1000 // max(self.input_tokens, 1)) if self.output_limit else 300

    @property
    def taken_tokens(self) -> int:
        """Tokens of the entries that the text replaced.

        Reports that did not measure them give the distiller's input (`tokens_before`). That is larger: it has the date
        and the speaker of each line.
        """
        return self.cold_tokens or self.tokens_before

    @property
    def tokens_used(self) -> int:
        """Input plus output, as counted by the budget."""
        return self.input_tokens + self.output_tokens

    @property
    def created(self) -> datetime:
        """`created_at` as an aware datetime, UTC."""
        return to_datetime(self.created_at)

    def __repr__(self) -> str:
        size = f"{len(self.sources)} entries, {self.taken_tokens} to {self.output_tokens} tokens"
        return f"<DreamReport {self.id} of {self.ref}: {size}, {self.state}>"


class TokenBudgetExceeded(Unprocessable):
    """The memory cannot be distilled within the token budget. Raise it to `minimumRequired`, or use fit."""

    code = "token_budget_exceeded"


class RedactionFailed(Unprocessable):
    """The distiller kept producing a secret. Nothing was stored."""

    code = "compaction_redaction_failed"


class GateFailed(Unprocessable):
    """The distilled text did not pass the gates. Nothing was stored."""

    code = "dream_gate_failed"


class SpendExceeded(Unprocessable):
    """The tenant's spend limit for models is used up, and its policy does not allow the model-free distiller."""

    code = "spend_limit_exceeded"


class ModelFailed(Unprocessable):
    """The model did not give a usable answer, and the policy does not allow the model-free distiller."""

    code = "model_failed"


class NotUndoable(Conflict):
    """The dream cannot be undone: its sources were destroyed, or it was undone or replaced already."""

    code = "not_undoable"
