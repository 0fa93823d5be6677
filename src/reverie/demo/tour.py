"""The tour of a memory: store, dream, trace, undo, dream again, verify."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import reverie
from reverie.core.dream import DreamReport
from reverie.core.entry import Entry
from reverie.core.errors import Invalid, ReverieError
from reverie.core.query import Filter
from reverie.demo.corpus import entries, fakes
from reverie.distil.dates import day_of, spell

TENANT = "default"
REF = "tidebook"
Progress = Callable[[str, int, int], None]
_QUESTIONS = (
    ("When does the launch take place?", ("13 October",)),
    ("How many boats does the free plan allow?", ("5 boats",)),
    ("Which database do we use?", ("PostgreSQL 16",)),
    ("Until when can a booking be cancelled?", ("two hours before",)),
    ("When must we not deploy?", ("Fridays after noon",)),
    ("Who has to confirm a booking of a junior?", ("parent",)),
    ("How long are backups kept?", ("30 days",)),
    ("What does the paid plan cost?", ("35 euros",)),
)


class Amount(Struct, frozen=True):
    """Size of the memory."""

    memories: int
    tokens: int
    bytes: int


class Traced(Struct, frozen=True):
    """A line of the dream and the original words behind it."""

    line: str
    sources: Sequence[str]


class Tour(Struct, frozen=True):
    """Every figure the tour shows."""

    data: str
    dream: str
    entry: str
    before: Amount
    after: Amount
    redacted: dict[str, int]
    secrets_planted: int
    secrets_on_disk: int
    """Planted values found in any file of the data folder: none, or the tour fails."""
    must_keep: dict[str, int]
    budget: int
    tokens_used: int
    sources: dict[str, int]
    text: str
    contradiction: Traced
    answered: int
    questions: int
    checksum: str
    undone: bool
    """Whether undo gave back every memory exactly."""
    repeated: bool
    """Whether dreaming again gave the same bytes."""
    events: int
    audit: bool
    dream_seconds: float
    seconds: float


def take(data: Path, *, progress: Progress | None = None) -> Tour:
    """Take the tour in a data folder. The last dream stays, for inspection."""
    started = time.perf_counter()
    with reverie.open(data, tenant=TENANT, actor="demo") as memory:
        notes = memory.ref(REF)
        if notes.list(limit=1).items:
            raise Invalid(f"{data} has a tour in it already. Choose a new folder.")
        receipts = notes.put_many(entries())
        redacted: Counter[str] = Counter()
        for receipt in receipts:
            redacted.update(receipt.findings)
        stored = _all(notes)
        asked = _answered(notes)
        began = time.perf_counter()
        first = _dreamt(notes, progress)
        dream_seconds = time.perf_counter() - began
        memory.dreams.undo(first.id)
        back = _all(notes)
        report = _dreamt(notes, progress)
        text = notes.get(str(report.output_id)).content
        verdict = memory.verify()
        remaining = _all(notes)
        tour = Tour(
            data=str(data),
            dream=report.id,
            entry=str(report.output_id),
            before=_amount(stored, report.hot_before),
            after=_amount(remaining, report.hot_after),
            redacted=dict(sorted(redacted.items())),
            secrets_planted=len(fakes()),
            secrets_on_disk=0,
            must_keep=dict(report.gates["must_keep"]),
            budget=report.budget,
            tokens_used=report.tokens_used,
            sources=_fates(report),
            text=text,
            contradiction=_contradiction(memory, report, text),
            answered=_answered(notes),
            questions=asked,
            checksum=str(report.checksum),
            undone=[_comparable(entry) for entry in back] == [_comparable(entry) for entry in stored],
            repeated=report.checksum == first.checksum,
            events=verdict.events,
            audit=verdict.ok,
            dream_seconds=round(dream_seconds, 3),
            seconds=0.0,
        )
    on_disk = _on_disk(data)
    return replace(tour, secrets_on_disk=on_disk, seconds=round(time.perf_counter() - started, 3))


def _dreamt(notes: reverie.Ref, progress: Progress | None) -> DreamReport:
    report = notes.dream(budget=8000, progress=progress)
    if report is None:
        raise ReverieError("There was nothing to dream.")
    return report


def _all(notes: reverie.Ref) -> list[Entry]:
    return list(notes.list(Filter(), limit=1000).items)


def _comparable(entry: Entry) -> tuple[Any, ...]:
    return entry.id, entry.kind, entry.content, entry.tags, entry.subject, entry.state, entry.pinned, entry.created_at


def _amount(found: Sequence[Entry], tokens: int) -> Amount:
    """Entries, the bytes of their text, and the tokens that the report of the dream and the console show for them."""
    return Amount(len(found), tokens, sum(entry.byte_size for entry in found))


def _fates(report: DreamReport) -> dict[str, int]:
    fates = Counter(source.fate for source in report.sources)
    named = ("kept", "shortened", "merged", "rolled", "outdated", "chatter", "retired")
    return {fate: fates[fate] for fate in named if fates[fate]}


def _contradiction(memory: reverie.Memory, report: DreamReport, text: str) -> Traced:
    """A line with a current statement and the earlier one that it replaced, and the words it was made from."""
    lines = text.split("\n")
    originals = memory.dreams.diff(report.id).texts
    for statement in report.statements:
        shown = lines[statement.line]
        if statement.how == "merged" and "(earlier" in shown and "plan" in shown:
            said = [_original_words(memory, report.ref, source, originals) for source in statement.sources]
            return Traced(shown, said)
    raise ReverieError("The dream shows no contradiction.")


def _original_words(memory: reverie.Memory, ref: str, entry_id: str, originals: dict[str, str]) -> str:
    entry = memory.ref(ref).get(entry_id, cold=True)
    return f"{spell(day_of(entry.created_at))}, {entry.source.actor}: {originals[entry_id]}"


def _answered(notes: reverie.Ref) -> int:
    """Count the questions that readable memory still answers."""
    answered = 0
    for question, answers in _QUESTIONS:
        found = " ".join(hit.text for hit in notes.search(question, limit=3))
        answered += all(answer in found for answer in answers)
    return answered


def _on_disk(data: Path) -> int:
    """Count the planted secrets that occur in any file of the data folder."""
    stored = b"".join(path.read_bytes() for path in sorted(data.iterdir()) if path.is_file())
    return sum(fake.encode() in stored for fake in fakes().values())
