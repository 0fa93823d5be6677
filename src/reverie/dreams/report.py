"""Builds the records stored with the text of a dream: the fields of its entry, and the report with its traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from reverie.core.dream import DreamPlan, DreamReport, Leaving, SourceTrace, StatementTrace
from reverie.core.entry import Draft, Entry, EntryState, Source
from reverie.core.errors import NotFound
from reverie.core.policy import TenantPolicy
from reverie.core.subject import SUBJECT_TAG, named_subjects, subject_hash
from reverie.distil.gates import GateReport
from reverie.distil.phrases import phrases_of
from reverie.distil.plan import DREAM_KIND, Work
from reverie.distil.request import DistilledText
from reverie.distil.sentences import split
from reverie.distil.source import CARRIED, FATES, Collapsed, Fate, Fates
from reverie.distil.source import Source as Distillable
from reverie.dreams.archive import DREAM_SPACE
from reverie.dreams.gates import Distilled
from reverie.memory.policy import Rules
from reverie.memory.read import ANYTHING
from reverie.store.contract import ReadTx, WriteTx


@dataclass(frozen=True, slots=True)
class Made:
    """A text that may be stored, and the data of its report."""

    id: str
    """Id of the dream."""
    sources: Sequence[Entry]
    """The entries and given texts that it was made from."""
    text: str
    answer: DistilledText = field(default_factory=lambda: DistilledText(""))
    collapsed: Sequence[Collapsed] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_before: int = 0
    budget: int = 0
    distiller: str = "extractive"
    fingerprint: str = "quoted/1"
    fell_back: str | None = None
    reused: bool = False
    limit: int = 0
    gates: Mapping[str, Any] = field(default_factory=dict)
    spend: Mapping[str, Any] = field(default_factory=dict)
    missed: frozenset[str] = frozenset()
    """Sources with a must-keep statement that is not in the text."""

    @classmethod
    def of(
        cls, dream_id: str, sources: Sequence[Entry], text: str, work: Work, done: Distilled, gates: GateReport
    ) -> Made:
        """Combine a distilled text with the report of its gates."""
        return cls(
            id=dream_id,
            sources=sources,
            text=text,
            answer=done.answer,
            collapsed=work.prepared.collapsed,
            input_tokens=work.input_tokens,
            output_tokens=gates.tokens,
            tokens_before=work.tokens_before,
            distiller=done.distiller.name,
            fingerprint=done.fingerprint,
            fell_back=done.fell_back,
            reused=done.reused,
            limit=done.limit,
            gates=gate_document(gates),
            missed=done.stay,
        )

    def draft(self, *, checksum: str | None = None, run: str | None = None) -> Draft:
        """Return the draft of its entry, to which a protocol may add fields."""
        return output_draft(self.text, self.sources, dream_id=self.id, checksum=checksum, run=run)


def report_of(
    tx: WriteTx,
    plan: DreamPlan,
    made: Made,
    output: Entry | None,
    *,
    retired: Sequence[Entry],
    position: int,
    seq: int,
) -> DreamReport:
    """Build the report of a dream, inside its transaction. `retired`: the entries that leave, as they were read."""
    statements = trace(output.content if output is not None else made.text, made.answer)
    return DreamReport(
        id=made.id,
        ref=plan.ref,
        position=position,
        seq=seq,
        created_at=tx.now,
        distiller=made.distiller,
        fingerprint=made.fingerprint,
        after=plan.after,
        trigger=plan.trigger,
        sources=source_traces(retired, statements, made.collapsed, made.answer.fates),
        output_id=output.id if output is not None else None,
        checksum=None,
        budget=made.budget,
        input_tokens=made.input_tokens,
        output_tokens=made.output_tokens,
        tokens_before=made.tokens_before,
        bytes_before=sum([entry.byte_size for entry in made.sources]),
        byte_size=output.byte_size if output is not None else 0,
        statements=statements,
        collapsed=[(group.kept, *group.merged) for group in made.collapsed],
        about=about(made.sources, tx.log_key()),
        gates=made.gates,
        fell_back=made.fell_back,
        reused=made.reused,
        output_limit=made.limit,
        spend=made.spend,
    )


def above_target(policy: TenantPolicy, report: DreamReport, must_keep: int) -> tuple[int, str | None]:
    """Return the target for hot memory (0 for none), and the reason why hot memory is above it, if it is.

    `must_keep`: tokens of a text with the must-keep statements only.
    """
    goal = policy.hot_goal(report.hot_before)
    if not report.hot_before or goal >= report.hot_before:
        return 0, None
    if report.hot_after <= goal:
        return goal, None
    if report.left_for_later:
        return goal, "later"
    spare = report.output_tokens - must_keep
    return goal, "share" if spare * 2 > report.hot_after - goal and policy.hot_rest(report.hot_before) else "must_keep"


def roomy(rules: Rules) -> Rules:
    """Return the rules with higher limits for size and tags: a dream may exceed those of other entries."""
    return replace(rules, policy=rules.policy.changed({"max_entry_bytes": 16 * 2**20, "max_tags": 100_000}))


def output_draft(
    text: str, sources: Sequence[Entry], *, dream_id: str, checksum: str | None, run: str | None = None
) -> Draft:
    """Return the draft of a dream's entry, with the trust of its least trusted source and all of their subjects."""
    subjects = {entry.subject for entry in sources}
    about = sorted({tag for entry in sources for tag in entry.tags if tag.startswith(SUBJECT_TAG)})
    about += [
        SUBJECT_TAG + subject for subject in sorted(s for s in subjects if s) if SUBJECT_TAG + subject not in about
    ]
    expiries = [entry.expires_at for entry in sources]
    sessions = {entry.source.session for entry in sources}
    return Draft(
        content=text,
        kind=DREAM_KIND,
        tags=(*about, f"compacted-from:{dream_id}", *([f"archive:{checksum}"] if checksum else ())),
        subject=next(iter(subjects)) if len(subjects) == 1 else None,
        attributes={"dream": dream_id, "sources": len(sources)},
        source=Source(
            session=next(iter(sessions)) if len(sessions) == 1 else None,
            run=run,
            trust=min(entry.source.trust for entry in sources),
        ),
        expires_at=max(e for e in expiries if e is not None) if all(e is not None for e in expiries) else None,
    )


def about(entries: Sequence[Entry], key: bytes) -> dict[str, list[str]]:
    """Map entries to the keyed hashes of their subjects."""
    subjects = [named_subjects(entry.subject, entry.tags) for entry in entries]
    return {
        entry.id: [subject_hash(key, subject) for subject in named]
        for entry, named in zip(entries, subjects, strict=True)
        if named
    }


def trace(text: str, answer: DistilledText) -> list[StatementTrace]:
    """Return the line of each statement in the final text; one that redaction changed gets that of the last one."""
    traces = []
    at = 0
    for statement in answer.statements:
        found = text.find(statement.text, at)
        if found >= 0:
            at = found
        line = text.count("\n", 0, at)
        traces.append(StatementTrace(line, statement.source_ids, statement.how, statement.count))
    return traces


_MOST_LEAVING = 500


def leaving(sources: Sequence[Distillable], fates: Fates) -> list[Leaving]:
    """Return the statements without a line in the text, each with the reason."""
    found = []
    for source, said in zip(sources, phrases_of(sources), strict=True):
        for phrase, (fate, kind) in zip(said, fates.get(source.id, ()), strict=False):
            if fate not in CARRIED:
                reason = (
                    "chatter" if fate == "chatter" else f"{kind}, of the least value among what is above the target"
                )
                found.append(Leaving(source.id, phrase.original, reason))
    return found[:_MOST_LEAVING]


def overall(fates: Sequence[Fate]) -> str:
    """Return the fate of an entry from those of its statements. It is kept only if all are, word for word."""
    found = {fate for fate, _ in fates}
    if not found & CARRIED:
        return "chatter" if found == {"chatter"} else "retired"
    if found <= CARRIED - {"shortened"}:
        return next(name for name in ("outdated", "rolled", "merged", "kept") if name in found)
    return "shortened"


def source_traces(
    entries: Sequence[Entry], statements: Sequence[StatementTrace], collapsed: Sequence[Collapsed], fates: Fates
) -> list[SourceTrace]:
    """Return the fate of each retired entry."""
    fate: dict[str, str] = {}
    quoted: Counter[str] = Counter()
    for statement in statements:
        for source_id in statement.sources:
            fate.setdefault(source_id, FATES[statement.how])
            quoted[source_id] += statement.how == "quoted"
    for entry in entries:
        if fate.get(entry.id) == "kept" and not fates.get(entry.id) and quoted[entry.id] < len(split(entry.content)):
            fate[entry.id] = "shortened"
    for group in collapsed:
        for merged in group.merged:
            fate[merged] = "merged"
    fate |= {entry.id: overall(own) for entry in entries if (own := fates.get(entry.id))}
    return [
        SourceTrace(e.id, e.version, e.state, e.archived, fate.get(e.id, "retired"), fates.get(e.id, ()))
        for e in entries
    ]


def gate_document(gates: GateReport) -> dict[str, Any]:
    """Return the stored form of the gates: verdicts, counts, and must-keep items by source and reason; no text."""
    states = [kept.state for kept in gates.must_keep]
    return {
        "passed": gates.passed,
        "must_keep": {name: states.count(name) for name in ("kept", "quoted", "missing")},
        "items": [
            {"source": kept.item.source_id, "why": kept.item.why, "required": kept.item.declared, "state": kept.state}
            for kept in gates.must_keep
        ],
        "invented": len(gates.invented),
        "negations_flipped": len(gates.flipped),
        "smaller": gates.smaller,
        "within_budget": gates.within_budget,
    }


def redone(report: DreamReport) -> DreamReport:
    """Reduce the report of a dream that a forget destroyed to counts and hashes, without its sources.

    The report of its replacement has the remaining sources. A memory under constant forgetting has many of these.
    """
    return msgspec.structs.replace(
        report,
        state="redone",
        sources=(),
        statements=(),
        collapsed=(),
        about={},
        superseded=(),
        gates={},
        stayed=(),
        probes={},
        unanswered=(),
        outputs=(),
    )


def save_report(tx: WriteTx, report: DreamReport, *, seq: int) -> None:
    """Store a report without its replay: questions are text, which is stored sealed elsewhere."""
    body = msgspec.json.encode(msgspec.structs.replace(report, replay=None))
    tx.save(DREAM_SPACE, report.id, body, seq=seq, meta={"ref": report.ref}, keep=1)


def load_report(tx: ReadTx, dream_id: str) -> DreamReport:
    """Return a stored report. Raises NotFound."""
    document = tx.load(DREAM_SPACE, dream_id)
    if document is None or document.body is None:
        raise NotFound("There is no dream with that id. `reverie dream list` shows them.")
    return msgspec.json.decode(document.body, type=DreamReport)


def find_report(tx: ReadTx, entry: Entry) -> DreamReport | None:
    """Return the report of the dream that made this entry of the transaction's ref; None if no dream did.

    The entry names the dream; after its text was destroyed, the event of its creation does. A caller may write any name
    into an entry, so the report must name the entry too.
    """
    named = entry.attributes.get("dream")
    if entry.state is EntryState.ERASED:
        birth = tx.read_log(after=entry.born_seq - 1, limit=1)
        named = birth[0].data.get("dream") if birth and birth[0].entry_id == entry.id else None
    document = tx.load(DREAM_SPACE, named) if isinstance(named, str) else None
    if document is None or document.body is None:
        return None
    report = msgspec.json.decode(document.body, type=DreamReport)
    return report if (report.output_id, report.ref) == (entry.id, entry.ref) else None


def mark(tx: WriteTx, output_id: str, state: str, *, seq: int) -> None:
    """Set the state of the dream that made an entry."""
    entry = tx.get(output_id, where=ANYTHING)
    report = find_report(tx, entry) if entry is not None else None
    if report is not None:
        save_report(tx, msgspec.structs.replace(report, state=state), seq=seq)
