"""The plan of a dream of a memory store: computed outside any transaction, without side effects."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.canonical import canonical
from reverie.core.entry import Entry, Scope
from reverie.core.errors import Invalid
from reverie.core.policy import TenantPolicy
from reverie.core.subject import SUBJECT_TAG, named_subjects
from reverie.distil.extractive import ExtractiveDistiller
from reverie.dreams.engine import DreamEngine
from reverie.dreams.report import Made
from reverie.memory.files import File
from reverie.memory.policy import RuleBook, Rules
from reverie.protocols.anthropic import stores as store_records
from reverie.protocols.anthropic.dream_records import DreamRecord
from reverie.protocols.anthropic.listing import Memory, all_files
from reverie.protocols.anthropic.reorganize import Reorganization, reorganize
from reverie.protocols.anthropic.stores import StoreRecord
from reverie.protocols.anthropic.transcripts import Sessions, Transcript, stand_ins
from reverie.services import Services
from reverie.store.contract import ReadTx

_LEAST_TO_CONDENSE = 5
_LEAST_FILE_BYTES = 64
INSIGHTS = "/insights/"
ARCHIVE_SCHEMA = "reverie.memory-dream/1"


class DreamTooLarge(Invalid):
    """The budget cannot hold the input of the dream."""

    code = "input_memory_store_too_large"


class FileWrite(Struct, frozen=True):
    """A text that a dream writes: where, from what, about whom."""

    path: str
    text: str | None
    """None: the file is deleted."""
    before: File | None
    made_from: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    """Stored entries of the store's memory whose words are in it, besides the version before."""


class PlannedWrites(Struct, frozen=True):
    """Everything a dream would write, and the cost of planning it."""

    store: StoreRecord
    seen: Mapping[str, str]
    """Version of every file by id, as read."""
    writes: tuple[FileWrite, ...]
    report: Mapping[str, Any]
    usage: Mapping[str, int]
    made: Made
    """The engine's report on it."""
    position: int
    """Of the log, when it was worked out."""
    said: Mapping[str, Mapping[int, int]]
    """Version of every entry of the sessions by memory and position, as read."""


class DreamPlanner:
    """Computes the writes of a dream."""

    def __init__(self, parts: Services, rules: RuleBook, dreams: DreamEngine) -> None:
        self._parts = parts
        self._rules = rules
        self.sessions = Sessions(parts, rules)
        self._dreams = dreams
        self._distiller = ExtractiveDistiller()

    def plan(self, actor: Actor, record: DreamRecord, store: StoreRecord, given: Sequence[Transcript]) -> PlannedWrites:
        """Everything the dream would write now. Raises TooLarge, SessionGone."""
        rules = self._rules.latest(actor.tenant)
        options, now = record.options, self._parts.clock.now()
        position = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.head().seq)
        memories = self.files(actor, store)
        free = [memory for memory in memories if not _is_excluded(memory, options.exclude)]
        said = self.sessions.words(actor, record.sessions) if record.sessions else []
        transcripts = [*said, *stand_ins(store.ref, given, now)]
        made = reorganize(free, transcripts, self._distiller)
        budget = _Budget(options.budget or rules.policy.dream_budget)
        writes = self._edits(store, free, made, {entry.id: entry for entry in transcripts})
        composed: list[Made] = []
        later = self._insights(actor, record, store, memories, made.left, rules, budget, writes, composed)
        if options.condense:
            later += self._condense(actor, record, store, free, rules, budget, writes, composed)
        changed = [write for write in writes.values() if _differs(write, memories)]
        digest = _digest(memories, transcripts, changed, budget.most)
        return PlannedWrites(
            store=store,
            seen={memory.file.id: memory.file.version for memory in memories},
            writes=tuple(changed),
            report=_report(record, memories, changed, made, composed, budget, later) | {"archive_sha256": digest},
            usage=_usage(composed),
            made=_combine(record, memories, changed, composed, budget),
            position=position,
            said=_versions(said),
        )

    def _edits(
        self, store: StoreRecord, memories: Sequence[Memory], made: Reorganization, said: Mapping[str, Entry]
    ) -> dict[str, FileWrite]:
        """Files that lose a line, or get a newer one in its place."""
        writes: dict[str, FileWrite] = {}
        for memory in memories:
            file = memory.file
            if file.id in made.texts:
                origins = made.sources.get(file.id, ())
                tags = tuple(sorted({tag for name in origins for tag in subject_tags(said.get(name))}))
                kept = _linkable(store, (said[name] for name in origins if name in said))
                writes[file.path] = FileWrite(file.path, made.texts[file.id], file, origins, tags, kept)
        return writes

    def _insights(
        self,
        actor: Actor,
        record: DreamRecord,
        store: StoreRecord,
        memories: Sequence[Memory],
        left: Sequence[Entry],
        rules: Rules,
        budget: _Budget,
        writes: dict[str, FileWrite],
        composed: list[Made],
    ) -> int:
        """Distil the transcripts into the files of the day; return the number of those left for later."""
        part, later = self._fitting(left, rules, budget, record)
        if not part:
            return later
        text = self._compose(actor, record, store, part, rules, budget, composed)
        lines: Sequence[str] = text.split("\n")
        tags = tuple(sorted({tag for entry in part for tag in subject_tags(entry)}))
        origins = tuple(dict.fromkeys(entry.id.partition("#")[0] for entry in part))
        linked = _linkable(store, part)
        files = {memory.file.path: memory for memory in memories}
        stem = _free_stem(rules.policy.local(self._parts.clock.now()).date().isoformat(), files)
        number = 0
        while lines:
            number += 1
            path = f"{stem}.md" if number == 1 else f"{stem}-{number}.md"
            there = files.get(path)
            if there is not None and _is_excluded(there, record.options.exclude):
                continue
            before = writes[path].text if path in writes else (there.content if there is not None else None)
            filled, lines = _filled(before or "", lines, rules.policy.max_memory_bytes)
            if filled is not None:
                writes[path] = FileWrite(path, filled, there.file if there else None, origins, tags, linked)
        return later

    def _fitting(
        self, left: Sequence[Entry], rules: Rules, budget: _Budget, record: DreamRecord
    ) -> tuple[list[Entry], int]:
        """The oldest transcripts that the budget holds, and how many it does not."""
        room = self._dreams.composer.room(_with(rules.policy, record, budget.left))
        part: list[Entry] = []
        used = 0
        for entry in left:
            size = self._tokens(entry)
            if used + size > room:
                break
            part.append(entry)
            used += size
        later = len(left) - len(part)
        if later and not record.options.fit:
            needed = sum(self._tokens(entry) for entry in left) * 2 + 200
            raise DreamTooLarge(
                f"A budget of {budget.most} tokens cannot hold these transcripts.",
                details={"minimum_required": needed},
            )
        return part, later

    def _condense(
        self,
        actor: Actor,
        record: DreamRecord,
        store: StoreRecord,
        memories: Sequence[Memory],
        rules: Rules,
        budget: _Budget,
        writes: dict[str, FileWrite],
        composed: list[Made],
    ) -> int:
        """Every file made shorter, as far as the budget goes; how many files it did not reach."""
        later = 0
        for memory in memories:
            path = memory.file.path
            text = writes[path].text if path in writes else memory.content
            given = Transcript(memory.file.version, text or "")
            lines = stand_ins(store.ref, [given], memory.file.updated_at)
            if len(lines) < _LEAST_TO_CONDENSE:
                continue
            if sum(self._tokens(line) for line in lines) > self._dreams.composer.room(
                _with(rules.policy, record, budget.left)
            ):
                later += 1
                continue
            shorter = self._compose(actor, record, store, lines, rules, budget, composed)
            if len(shorter) < len(text or ""):
                writes[path] = FileWrite(path, shorter + "\n", memory.file, (memory.file.version,))
        return later

    def _compose(
        self,
        actor: Actor,
        record: DreamRecord,
        store: StoreRecord,
        entries: Sequence[Entry],
        rules: Rules,
        budget: _Budget,
        composed: list[Made],
    ) -> str:
        limited = dataclasses.replace(rules, policy=_with(rules.policy, record, budget.left))
        made = self._dreams.compose(actor, store.ref, entries, limited, instructions=record.instructions)
        budget.used_in += sum(one.input_tokens for one in made)
        budget.used_out += sum(one.output_tokens for one in made)
        composed += made
        return "\n".join(one.text for one in made)

    def _tokens(self, entry: Entry) -> int:
        """Tokens of a budget that an entry takes."""
        return self._dreams.composer.count(entry.content) + 12

    def files(self, actor: Actor, store: StoreRecord) -> list[Memory]:
        """The files of a store with their texts."""

        def body(tx: ReadTx) -> list[Memory]:
            return all_files(tx, store_records.load(tx, store.id), "/")

        return self._parts.store.read(Scope(actor.tenant, store.ref), body)


class _Budget:
    """Tokens of input and output of one dream."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used_in = 0
        self.used_out = 0

    @property
    def left(self) -> int:
        return max(self.most - self.used_in - self.used_out, 1)


def _versions(said: Sequence[Entry]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for entry in said:
        found.setdefault(entry.ref, {})[entry.position] = entry.version
    return found


def _is_excluded(memory: Memory, exclude: Sequence[str]) -> bool:
    entry, path = memory.entry, memory.file.path
    if entry is not None and (entry.pinned or entry.held):
        return True
    return any(path == one or path.startswith(one.rstrip("/") + "/") for one in exclude)


def _free_stem(day: str, files: Mapping[str, Memory]) -> str:
    """A path without its `.md` that no folder or file is in the way of."""
    stem = f"{INSIGHTS}{day}"
    if INSIGHTS.rstrip("/") in files or any(other.startswith(f"{stem}.md/") for other in files):
        return f"/insights-{day}"
    return stem


def _filled(before: str, lines: Sequence[str], most: int) -> tuple[str | None, Sequence[str]]:
    """(a text with the lines that fit behind it, None when there are none; the other lines). A line that no file can
    hold is cut."""
    text = f"{before.rstrip()}\n" if before.strip() else ""
    room = max(most, _LEAST_FILE_BYTES) - len(text.encode())
    taken = 0
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        taken += 1
    if taken:
        return text + "".join(f"{line}\n" for line in lines[:taken]), lines[taken:]
    if text:
        return None, lines
    beginning = lines[0].encode()[: max(most, _LEAST_FILE_BYTES) - 1].decode("utf-8", "ignore")
    return f"{beginning}\n", [lines[0][len(beginning) :], *lines[1:]]


def _digest(memories: Sequence[Memory], said: Sequence[Entry], changed: Sequence[FileWrite], budget: int) -> str:
    """SHA-256 of the dream's canonical JSON: files and transcripts read, budget, files written; hashes, no texts."""
    document = {
        "schema": ARCHIVE_SCHEMA,
        "tokenBudget": budget,
        "sources": sorted([memory.file.path, memory.file.sha256] for memory in memories),
        "transcripts": sorted(hashlib.sha256(entry.content.encode()).hexdigest() for entry in said),
        "files": sorted(
            [write.path, None if write.text is None else hashlib.sha256(write.text.encode()).hexdigest()]
            for write in changed
        ),
    }
    return hashlib.sha256(canonical(document)).hexdigest()


def _differs(write: FileWrite, memories: Sequence[Memory]) -> bool:
    there = next((memory for memory in memories if memory.file.path == write.path), None)
    return write.text != (there.content if there is not None else None)


def _with(policy: TenantPolicy, record: DreamRecord, budget: int) -> TenantPolicy:
    return dataclasses.replace(policy, dream_distiller=record.distiller, dream_budget=budget)


def _instructions_used(record: DreamRecord, composed: Sequence[Made]) -> bool:
    """Whether a model read the instructions and its text was used: the model-free distiller reads none."""
    return bool(record.instructions) and any(one.distiller != "extractive" for one in composed)


def _report(
    record: DreamRecord,
    memories: Sequence[Memory],
    changed: Sequence[FileWrite],
    made: Reorganization,
    composed: Sequence[Made],
    budget: _Budget,
    later: int,
) -> dict[str, Any]:
    deleted = sum(write.text is None for write in changed)
    created = sum(write.before is None for write in changed)
    report: dict[str, Any] = {
        "distiller": composed[0].distiller if composed else record.distiller,
        "fell_back": next((one.fell_back for one in composed if one.fell_back), None),
        "instructions_applied": _instructions_used(record, composed),
        "tokens": {
            "input": budget.used_in,
            "output": budget.used_out,
            "before": sum(one.tokens_before for one in composed),
        },
        "budget": budget.most,
        "gates": dict(composed[0].gates) if composed else {},
        "statements": made.statements,
        "duplicates": made.duplicates,
        "outdated": made.outdated,
        "files": {
            "kept": len(memories) - (len(changed) - created),
            "modified": len(changed) - created - deleted,
            "deleted": deleted,
            "created": created,
        },
        "left_for_later": later,
    }
    if not changed:
        report["unchanged"] = True
    return report


def _combine(
    record: DreamRecord,
    memories: Sequence[Memory],
    changed: Sequence[FileWrite],
    composed: Sequence[Made],
    budget: _Budget,
) -> Made:
    """All texts of the dream as one, for its report."""
    former = {memory.file.version: memory.entry for memory in memories if memory.entry is not None}
    before = [former[write.before.version] for write in changed if write.before and write.before.version in former]
    others = {entry.id: entry for write in changed for entry in write.entries}
    first = composed[0] if composed else None
    return Made(
        id=record.id,
        sources=(*before, *others.values()),
        text="",
        input_tokens=budget.used_in,
        output_tokens=budget.used_out,
        tokens_before=sum(one.tokens_before for one in composed),
        budget=budget.most,
        distiller=first.distiller if first else "extractive",
        fingerprint=first.fingerprint if first else "reorganized/1",
        fell_back=next((one.fell_back for one in composed if one.fell_back), None),
        gates=first.gates if first else {},
        spend=first.spend if first else {},
    )


def _linkable(store: StoreRecord, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Those that are stored entries of the store's memory: only they can be linked."""
    return tuple({entry.id: entry for entry in entries if entry.ref == store.ref and entry.position}.values())


def _usage(composed: Sequence[Made]) -> dict[str, int]:
    """Sum the tokens billed by a model."""
    spent = [one.spend for one in composed]
    return {name: sum(int(one.get(name, 0)) for one in spent) for name in ("input_tokens", "output_tokens")}


def subject_tags(entry: Entry | None) -> tuple[str, ...]:
    """Tags that name the subjects of an entry: a forget finds by them what was made from it."""
    if entry is None:
        return ()
    return tuple(SUBJECT_TAG + name for name in named_subjects(entry.subject, entry.tags))


def fate_of(write: FileWrite, former: Entry | None) -> str:
    """Classify the outcome of a file: merged into others, shortened by some lines, or kept."""
    if write.text is None:
        return "merged"
    lines = set(write.text.split("\n"))
    lost = former is not None and any(line not in lines for line in former.content.split("\n") if line.strip())
    return "shortened" if lost else "kept"
