"""After a dream: report, undo, diff, verify, and the walk from a distilled entry to the originals."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct, field

from reverie.core.actor import Actor, Right
from reverie.core.dream import After, DreamReport, NotUndoable
from reverie.core.entry import Entry, EntryState, Scope, check_namespace, valid_ref
from reverie.core.errors import Invalid, NotFound, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.query import Page, each
from reverie.distil.archive import archive_bytes, archive_document, index_entry
from reverie.distil.leaks import clean
from reverie.distil.phrases import phrases_of
from reverie.distil.plan import DREAM_KIND, Share, to_sources, weigh
from reverie.distil.request import Extractive, Request
from reverie.dreams.archive import ARCHIVE_SPACE, DREAM_SPACE, Archives
from reverie.dreams.gates import fingerprint
from reverie.dreams.report import find_report, load_report, mark, save_report
from reverie.dreams.snapshot import DISTILLED_FROM
from reverie.memory.derivation import derived_from as derived_from
from reverie.memory.indexing import Indexed, terms_and_vectors
from reverie.memory.policy import RuleBook
from reverie.memory.read import ANYTHING
from reverie.memory.searches import RecordedSearches
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

_DEEPEST = 64
_MADE = ("memory.compacted", "memory_dream.changed")
"""Events of dreams that made a text."""


class Why(Struct, frozen=True):
    """An entry and its sources, down to the original words."""

    id: str
    kind: str
    state: str
    created_at: int
    actor: str
    trust: int
    content: str | None
    """None if its text was destroyed."""
    sources: Sequence[Why] = ()


class Verified(Struct, frozen=True):
    """The result of dreaming again from the same sources and comparing bytes."""

    ok: bool
    checksum: str | None
    recomputed: str | None
    reason: str


class StatementDiff(Struct, frozen=True):
    """The fate of one statement in a dream."""

    text: str
    fate: str
    why: str
    """The class the value model gave it."""
    cut: Sequence[str] = ()
    """For a shortened statement, the words that were left out."""


class Diff(Struct, frozen=True):
    """The fate of each source of a dream."""

    dream: str
    output: str | None
    kept: Sequence[str] = ()
    shortened: Sequence[str] = ()
    merged: Sequence[str] = ()
    rolled: Sequence[str] = ()
    outdated: Sequence[str] = ()
    chatter: Sequence[str] = ()
    retired: Sequence[str] = ()
    statements: Mapping[str, Sequence[StatementDiff]] = field(default_factory=dict)
    """The fate of every statement by entry, where the distiller knows it and the text still exists."""
    texts: dict[str, str] = field(default_factory=dict)
    """Original texts by id, as far as they are still in cold storage."""


class DreamFigures(Struct, frozen=True):
    """The figures of a report without its traces."""

    id: str
    ref: str
    seq: int
    created_at: int
    tokens_before: int
    output_tokens: int
    state: str = "done"
    hot_before: int = 0
    hot_after: int = 0
    """Tokens of the whole memory, before and after; 0 in reports without them."""
    cold_tokens: int = 0
    """Tokens of the entries that went to cold storage."""

    @property
    def taken(self) -> int:
        """Tokens of the entries that the text replaced; of its sources in reports without that figure."""
        return self.cold_tokens or self.tokens_before

    @property
    def saved(self) -> int:
        """Tokens by which this dream reduced hot memory."""
        return max(0, self.taken - self.output_tokens)


class Lineage:
    """Reads, undoes and verifies stored dreams."""

    def __init__(
        self,
        parts: Services,
        rules: RuleBook,
        archives: Archives,
        searches: RecordedSearches,
        undo_files: Callable[[Actor, str], object] | None = None,
    ) -> None:
        """`undo_files` undoes a dream that changed files, whose versions and paths belong to a protocol."""
        self._parts = parts
        self._undo_files = undo_files
        self._rules = rules
        self._archives = archives
        self._searches = searches
        self._extractive = Extractive()

    def report(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> DreamReport:
        """Return the stored report. Raises NotFound, also if the dream is not one of `ref`."""
        actor.require(Right.READ)
        check_namespace(ref)
        report = self._parts.store.read(Scope(actor.tenant), lambda tx: load_report(tx, dream_id))
        if ref is not None and report.ref != ref:
            raise NotFound("There is no dream with that id in this memory.")
        return msgspec.structs.replace(report, replay=self._searches.replay(actor.tenant, report.ref, dream_id))

    def reports(self, actor: Actor, *, ref: str | None = None, limit: int = 100) -> list[DreamReport]:
        """Return reports, newest first."""
        actor.require(Right.READ)
        check_namespace(ref)

        def body(tx: ReadTx) -> list[DreamReport]:
            found = [
                msgspec.json.decode(document.body, type=DreamReport)
                for document in each(lambda cursor: tx.documents(DREAM_SPACE, limit=500, cursor=cursor))
                if document.body is not None and (ref is None or document.meta.get("ref") == ref)
            ]
            return sorted(found, key=lambda report: (-report.seq, report.id))[:limit]

        return self._parts.store.read(Scope(actor.tenant), body)

    def ids(self, actor: Actor, prefix: str, *, ref: str | None = None, limit: int = 10) -> list[str]:
        """Return the ids of dreams that begin with `prefix`, in order."""
        actor.require(Right.READ)
        check_namespace(ref)

        def body(tx: ReadTx) -> list[str]:
            found = each(lambda cursor: tx.documents(DREAM_SPACE, prefix=prefix, limit=500, cursor=cursor))
            return list(islice((one.key for one in found if ref is None or one.meta.get("ref") == ref), limit))

        return self._parts.store.read(Scope(actor.tenant), body)

    def page(
        self, actor: Actor, *, ref: str | None = None, limit: int = 25, cursor: str | None = None
    ) -> Page[DreamReport]:
        """Return a page of reports, newest first; only these are read. The cursor is a log position."""
        actor.require(Right.READ)
        check_namespace(ref)
        if cursor is not None and not (cursor.isdecimal() and len(cursor) < 19):
            raise Invalid("The cursor is not one of this list. Start again without it.", pointer="/cursor")

        def body(tx: ReadTx) -> Page[DreamReport]:
            found: list[DreamReport] = []
            before = tx.head().seq + 1 if cursor is None else int(cursor)
            while events := tx.read_log(before=before, limit=limit + 1, types=_MADE):
                for event in events:
                    if len(found) == limit:
                        return Page(found, str(event.seq + 1))
                    before = event.seq
                    if ref is not None and event.data.get("ref") != ref:
                        continue
                    document = tx.load(DREAM_SPACE, str(event.data.get("dream", "")))
                    if document is None or document.body is None:
                        continue
                    report = msgspec.json.decode(document.body, type=DreamReport)
                    if report.seq == event.seq:  # a dream of files has an event for each of its steps
                        found.append(report)
            return Page(found)

        return self._parts.store.read(Scope(actor.tenant), body)

    def figures(self, actor: Actor, *, since: int, until: int, limit: int = 200) -> list[DreamFigures]:
        """Return the figures of the dreams between two log positions, newest first; `since` itself is excluded."""
        actor.require(Right.READ)

        def body(tx: ReadTx) -> list[DreamFigures]:
            found = []
            for event in tx.read_log(after=since, before=until + 1, limit=limit, types=_MADE):
                document = tx.load(DREAM_SPACE, str(event.data.get("dream", "")))
                if document is not None and document.body is not None:
                    found.append(msgspec.json.decode(document.body, type=DreamFigures))
            return found

        return self._parts.store.read(Scope(actor.tenant), body)

    def undo(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> DreamReport:
        """Restore the sources exactly and remove the dream, in one transaction. Raises NotUndoable."""
        actor.require(Right.DREAM)
        if self._parts.read_only:
            raise ReadOnly()
        report = self.report(actor, dream_id, ref=ref)
        if report.after is After.PURGE:
            raise NotUndoable("The sources of this dream were destroyed, as its plan asked.")
        if report.outputs and self._undo_files is not None:
            self._undo_files(actor, dream_id)
            return self.report(actor, dream_id, ref=ref)
        scope = Scope(actor.tenant, report.ref)
        index = self._parts.store.read(scope, lambda tx: self._indexed(tx, report))

        def body(tx: WriteTx) -> DreamReport:
            current = load_report(tx, dream_id)
            if current.state != "done":
                raise NotUndoable(f"This dream is {current.state} already.")
            data = {"ref": report.ref, "dream": dream_id, "sources": len(report.sources)}
            event = NewEvent("dream.undone", "UNDO", actor.id, entry_id=report.output_id, data=data)
            seq = tx.append(event)
            for source in report.sources:
                entry = tx.get(source.id, where=ANYTHING)
                if entry is None or entry.state is EntryState.ERASED:
                    raise NotUndoable("Some sources of this dream were destroyed meanwhile; nothing was changed.")
                if entry.gone_seq is None:
                    continue  # restored already
                others = derived_from(tx, [source.id]) - {report.output_id}
                if any(tx.get(other) is not None for other in others):
                    raise NotUndoable("Some sources of this dream are part of a newer one. Undo that one first.")
                tx.change(source.id, seq=seq, state=source.state, archived=source.archived)
                version, found = index.get(source.id, (0, None))
                if found is None or version != entry.version:  # its text was redacted again meanwhile
                    found = terms_and_vectors([entry], self._parts.embedder)[0]
                tx.index(source.id, seq=seq, terms=found[0], vector=found[1])
                if entry.kind == DREAM_KIND:
                    mark(tx, entry.id, "done", seq=seq)
            if report.output_id is not None:
                output = tx.get(report.output_id, where=ANYTHING)
                if output is not None and output.gone_seq is None:
                    tx.change(report.output_id, seq=seq, state=EntryState.DELETED)
                self._archives.reindex(tx, dream_id, add=_indexed_again(tx, report), remove=[report.output_id])
            undone = msgspec.structs.replace(current, state="undone")
            save_report(tx, undone, seq=seq)
            return undone

        return self._parts.store.write(scope, body)

    def _indexed(self, tx: ReadTx, report: DreamReport) -> dict[str, tuple[int, Indexed | None]]:
        """Compute words and vectors of the sources, with their versions, outside the transaction that restores them."""
        entries = [tx.get(source.id, where=ANYTHING) for source in report.sources]
        alive = [entry for entry in entries if entry is not None and entry.state is not EntryState.ERASED]
        found = terms_and_vectors(alive, self._parts.embedder)
        return {entry.id: (entry.version, own) for entry, own in zip(alive, found, strict=True)}

    def diff(self, actor: Actor, dream_id: str, *, ref: str | None = None, only: Collection[str] | None = None) -> Diff:
        """List the sources by fate: kept, merged, shortened, retired. With `only`, no other entry is read."""
        report = self.report(actor, dream_id, ref=ref)
        fates: dict[str, list[str]] = {name: [] for name in FATE_NAMES}
        for source in report.sources:
            fates[source.fate].append(source.id)

        def body(tx: ReadTx) -> tuple[list[Entry], str]:
            ids = [*(source.id for source in report.sources), *report.stayed]
            found = (tx.get(one, where=ANYTHING) for one in ids if only is None or one in only)
            output = tx.get(report.output_id, where=ANYTHING) if report.output_id else None
            alive = [entry for entry in found if entry is not None and entry.state is not EntryState.ERASED]
            return alive, output.content if output is not None else ""

        entries, text = self._parts.store.read(Scope(actor.tenant, report.ref), body)
        known = {source.id: source.statements for source in report.sources if source.statements}
        lines = _lines_of(report, text)
        statements = {
            entry.id: _statements(entry, known[entry.id], lines.get(entry.id, ""))
            for entry in entries
            if entry.id in known
        }
        texts = {entry.id: entry.content for entry in entries}
        return Diff(dream=dream_id, output=report.output_id, texts=texts, statements=statements, **fates)

    def why(self, actor: Actor, ref: str, entry_id: str) -> Why:
        """Return the tree from an entry down to its originals. Raises NotFound."""
        actor.require(Right.READ)
        check_namespace(entry_id)
        if not valid_ref(ref):
            raise NotFound("There is no entry with that id in this memory.")

        def walk(tx: ReadTx, target: str, depth: int, seen: frozenset[str]) -> Why | None:
            entry = tx.get(target, where=ANYTHING)
            if entry is None:
                return None
            below: list[Why] = []
            if depth < _DEEPEST and target not in seen:
                for link in tx.links(target, type=DISTILLED_FROM):
                    found = walk(tx, link.to_id, depth + 1, seen | {target})
                    if found is not None:
                        below.append(found)
            return _why(entry, below)

        tree = self._parts.store.read(Scope(actor.tenant, ref), lambda tx: walk(tx, entry_id, 0, frozenset()))
        if tree is None:
            raise NotFound("There is no entry with that id in this memory.")
        return tree

    def derived(self, actor: Actor, ref: str, entry_id: str) -> list[str]:
        """Return the ids of all entries made from this one, directly or through others. Raises NotFound."""
        actor.require(Right.READ)
        check_namespace(entry_id)

        def body(tx: ReadTx) -> list[str]:
            if tx.get(entry_id, where=ANYTHING) is None:
                raise NotFound("There is no entry with that id in this memory.")
            return sorted(derived_from(tx, [entry_id]))

        if not valid_ref(ref):
            raise NotFound("There is no entry with that id in this memory.")
        return self._parts.store.read(Scope(actor.tenant, ref), body)

    def verify(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> Verified:
        """Dream again from the sources in cold storage, and compare the bytes. Changes nothing."""
        report = self.report(actor, dream_id, ref=ref)
        if report.checksum is None or report.output_id is None:
            made = "changed files and has no archive" if report.outputs else "made no text"
            return Verified(True, None, None, f"this dream {made}")

        def body(tx: ReadTx) -> tuple[bytes | None, list[Entry | None]]:
            stored = tx.load(ARCHIVE_SPACE, str(report.checksum))
            links = tx.links(str(report.output_id), type=DISTILLED_FROM)
            return (stored.body if stored else None), [tx.get(link.to_id, where=ANYTHING) for link in links]

        stored, found = self._parts.store.read(Scope(actor.tenant, report.ref), body)
        if stored is None:
            return Verified(False, report.checksum, None, "the archive has outlived its retention")
        own = self._extractive.fingerprint  # without the redactor's version in reports of older releases
        if report.fingerprint not in (own, fingerprint(self._extractive, self._parts.redactor)):
            found_sum = hashlib.sha256(stored).hexdigest()
            whole = "are intact" if found_sum == report.checksum else "were changed"
            detail = f"made by a model or another version: its recorded bytes {whole}"
            return Verified(found_sum == report.checksum, report.checksum, found_sum, detail)
        sources = [entry for entry in found if entry is not None and entry.state is not EntryState.ERASED]
        if len(sources) < len(found):
            return Verified(False, report.checksum, None, "some sources were destroyed after their retention")
        again = self._again(actor, report, sources)
        if again == report.checksum:
            return Verified(True, report.checksum, again, "dreamt again to the same bytes")
        return Verified(False, report.checksum, again, "dreamt again to other bytes")

    def _again(self, actor: Actor, report: DreamReport, sources: Sequence[Entry]) -> str:
        tokens = self._parts.tokens
        if tokens is None:
            raise NotFound("This host has no tokenizer to dream with.")
        rules = self._rules.current(actor.tenant)
        distillable = sorted(to_sources(sources), key=lambda source: (source.created_at, source.id))
        work = weigh(distillable, self._extractive.engine, tokens.count)
        limit = report.output_limit or work.output_limit(report.budget, Share(report.share))
        text = self._extractive.distil(Request(work, limit, tokens.count, ())).text
        text = clean(text, self._parts.redactor, rules.known)
        document = archive_document(distillable, text, budget=report.budget, tokenizer=tokens.name)
        return archive_bytes(document)[1]


FATE_NAMES = ("kept", "shortened", "merged", "rolled", "outdated", "chatter", "retired")
_WORD = re.compile(r"\w[\w'’.:/-]*")


def _lines_of(report: DreamReport, text: str) -> dict[str, str]:
    """Map each source to the lines of the dream that represent it."""
    lines = text.split("\n")
    found: dict[str, str] = {}
    for statement in report.statements:
        if statement.line < len(lines):
            for source in statement.sources:
                found[source] = f"{found.get(source, '')} {lines[statement.line]}"
    return found


def _statements(entry: Entry, fates: Sequence[tuple[str, str]], lines: str) -> list[StatementDiff]:
    said = {word.casefold().strip(".") for word in _WORD.findall(lines)}
    out = []
    for phrase, (fate, why) in zip(phrases_of(to_sources([entry]))[0], fates, strict=False):
        words = _WORD.findall(phrase.original) if fate == "shortened" else []
        cut = [word for word in words if word.casefold().strip(".") not in said]
        out.append(StatementDiff(phrase.original, fate, why, cut))
    return out


def _indexed_again(tx: ReadTx, report: DreamReport) -> list[dict[str, Any]]:
    """Rebuild the index items of earlier dreams that an undo restores, as far as their archives exist."""
    found = []
    for output_id in report.superseded:
        entry = tx.get(output_id, where=ANYTHING)
        if entry is None or entry.state is EntryState.ERASED:
            continue
        earlier = find_report(tx, entry)
        if earlier is None:  # a caller may write an entry of this kind
            continue
        links = tx.links(output_id, type=DISTILLED_FROM)
        sources = [source for link in links if (source := tx.get(link.to_id, where=ANYTHING)) is not None]
        if not sources or earlier.checksum is None or tx.load(ARCHIVE_SPACE, earlier.checksum) is None:
            continue
        found.append(
            index_entry(
                ref=earlier.ref,
                output_id=output_id,
                checksum=earlier.checksum,
                sources=to_sources(sources),
                text=entry.content,
                byte_size=earlier.byte_size,
                budget=earlier.budget,
                tokens_used=earlier.tokens_used,
                output_tokens=earlier.output_tokens,
                created_at=earlier.created_at,
            )
        )
    return found


def _why(entry: Entry, sources: Sequence[Why]) -> Why:
    alive = entry.state is not EntryState.ERASED
    return Why(
        id=entry.id,
        kind=entry.kind,
        state=entry.state.value,
        created_at=entry.created_at,
        actor=entry.source.actor,
        trust=entry.source.trust,
        content=entry.content if alive else None,
        sources=sources,
    )
