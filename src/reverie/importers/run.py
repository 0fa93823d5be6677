"""Inspection of a source, import of its records, and undo.

Every record is stored through the ordinary write path under an id made from its source: storing it again is storing it
once. A record whose words changed replaces its earlier version; where its key is unique in its file alone, that of the
same file. What was forgotten or erased stays so.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from reverie.core.actor import Actor
from reverie.core.canonical import canonical
from reverie.core.clock import SystemClock
from reverie.core.entry import READABLE, Draft, Entry, EntryState, Link, Source
from reverie.core.errors import Conflict, Held, Invalid, NotFound, RateLimited, ReverieError
from reverie.core.ids import TimeIds
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter
from reverie.host import Host
from reverie.importers import load
from reverie.importers.record import Item, Record, Skipped, digest
from reverie.memory.drafts import check_draft
from reverie.memory.policy import check_ref
from reverie.redact import load_redactor

Progress = Callable[[int, int], None]
DEFAULT_REF = "default"
_BATCH = 200
_BATCH_BYTES = 2 * 2**20
_EVENTS = 1000
"""Events that one read of the log gives at most."""
_SHOWN = 20
_MOST_ATTRIBUTES = 12_000
_LONGEST_WAIT = 120.0


class SourceSummary(Struct, frozen=True):
    """Summary of a source, made without storing anything."""

    format: str
    entries: int
    """Records that would be stored."""
    duplicates: int
    """Stored already, or repeated in the source."""
    restored: int
    """Taken back by an earlier undo; they would be readable again."""
    findings: Mapping[str, int]
    """Secrets by kind: they would be replaced."""
    skipped: Mapping[str, int]
    """Number of skipped items, by reason."""
    places: Sequence[tuple[str, str]]
    """Place and reason of the first of them."""
    refs: Mapping[str, int]
    """Records by memory."""


class ImportResult(Struct, frozen=True):
    """Result of an import."""

    id: str
    """For `reverie import undo`."""
    entries: int
    duplicates: int
    restored: int
    links: int
    findings: Mapping[str, int]
    replaced: int = 0
    """Earlier versions, of another import, that left readable memory."""


class Undone(Struct, frozen=True):
    """Result of an undo."""

    id: str
    entries: int
    refs: Sequence[str]
    restored: int = 0
    """Versions that the import had replaced; they are readable again."""


class Importer:
    """Imports one source, on an embedded host or a remote one."""

    def __init__(
        self,
        host: Host,
        actor: Actor,
        path: Path,
        *,
        format: str,  # noqa: A002
        ref: str | None = None,
        piped: bool = False,
    ) -> None:
        """`piped`: the path is a copy of what came through a pipe, so that it says nothing about the source."""
        self.id = TimeIds().new()
        """For `undo`, also of an import that was interrupted."""
        self._host = host
        self._actor = actor
        self._path = path
        self._format = format
        self._reader = load(format)
        self._ref = ref
        self._piped = piped
        self._former: dict[str, str] = {}
        """The marks that earlier releases gave records of files, by today's: they lack the folder of the file."""
        self._known = False
        """Whether most of the records that are named by their file are stored already: it was imported before."""
        self._there: dict[tuple[str, str], tuple[EntryState, int] | None] = {}
        self._total = self._kept = 0

    def look(self, *, progress: Progress | None = None) -> SourceSummary:
        """Read the source to its end. Raises Invalid when it is damaged or foreign, or an entry cannot be stored."""
        # the rules of a remote host are not known here
        redactor = self._host.parts.redactor if isinstance(self._host, Host) else load_redactor()
        findings: Counter[str] = Counter()
        skipped: Counter[str] = Counter()
        refs: Counter[str] = Counter()
        places: list[tuple[str, str]] = []
        new = duplicates = restored = count = known = unknown = 0
        seen: set[tuple[str, str]] = set()
        policy = self._host.rules.policy(self._actor)
        for items in _chunks(self._items(), _BATCH):
            drafts: list[tuple[str, Draft]] = []
            origins: list[str] = []
            for item in items:
                if isinstance(item, Skipped):
                    skipped[item.reason] += 1
                    if len(places) < _SHOWN:
                        places.append((item.place, item.reason))
                else:
                    drafts.append(self._draft(item, ""))
                    origins.append(item.place)
            spots = [_place(ref, draft) for ref, draft in drafts]
            states = self._states(spots)
            for place, origin, (ref, draft), stored in zip(spots, origins, drafts, states, strict=True):
                if draft.replaces in self._former:
                    known += stored is not None
                    unknown += stored is None
                if place in seen or (stored is not None and stored[0] is not EntryState.RETRACTED):
                    duplicates += 1
                elif stored is not None:
                    restored += 1
                else:
                    _check(ref, draft, policy, origin)
                    new += 1
                    refs[ref] += 1
                    findings.update(redactor.text(draft.content).findings)
                seen.add(place)
            count += len(items)
            if progress:
                progress(count, 0)
        if not count:
            raise Invalid(f"{self._path.name} has nothing in it. Nothing was stored.", code="import_damaged")
        self._total, self._known = new, known > unknown
        return SourceSummary(
            self._format, new, duplicates, restored, dict(findings), dict(skipped.most_common()), places, dict(refs)
        )

    def store(self, *, progress: Progress | None = None) -> ImportResult:
        """Store the records found by `look`, batch by batch. An interrupted import continues where it stopped when
        repeated.
        """
        findings: Counter[str] = Counter()
        stored = duplicates = restored = replaced = 0
        made: dict[str, int] = {}
        """The entries stored, with their log positions."""
        ids: dict[str, tuple[str, str]] = {}
        links: list[tuple[str, str, str]] = []
        for ref, drafts in _batches(self._drafts(self.id, ids, links)):
            new: list[Draft] = []
            back: list[tuple[str, int]] = []
            spots = [_place(ref, draft) for draft in drafts]
            for place, draft, there in zip(spots, drafts, self._states(spots), strict=True):
                if there is None:
                    new.append(draft)
                elif there[0] is EntryState.RETRACTED:
                    back.append((place[1], there[1]))
                else:
                    duplicates += 1
            if back:
                replaced += self._replace_again(ref, [entry_id for entry_id, _ in back])
                done = self._host.lifecycle.change_many(self._actor, ref, "restore", back).get("done", 0)
                restored += done
                duplicates += len(back) - done
            receipts = self._put(ref, self._claimed(ref, new))
            stored += len(receipts)
            self._kept = stored + restored
            duplicates += len(new) - len(receipts)
            for receipt in receipts:
                findings.update(receipt.findings)
                made[receipt.id] = receipt.seq
            if progress:
                progress(stored, max(self._total, stored))
        linked = self._link(ids, links) if stored else 0
        replaced += sum(old not in made for _, old in _replaced(self._host, self._actor, made))
        return ImportResult(self.id, stored, duplicates, restored, linked, dict(findings), replaced)

    def _replace_again(self, ref: str, back: Sequence[str]) -> int:
        """Delete the versions that entries about to be restored replaced, and that an undo had brought back."""
        older = [old for where, old in _replaced(self._host, self._actor, dict.fromkeys(back, 1)) if where == ref]
        there = self._host.reader.states(self._actor, ref, older[:_BATCH]) if older else {}
        readable = [old for old, (state, _) in there.items() if state in READABLE]
        for old in readable:
            with suppress(NotFound, Held):
                self._host.lifecycle.delete(self._actor, ref, old)
        return len(readable)

    def _claimed(self, ref: str, drafts: list[Draft]) -> list[Draft]:
        """The drafts of a source that was imported before, so that they replace versions with a former mark too."""
        former = {self._former[str(draft.replaces)] for draft in drafts if draft.replaces in self._former}
        if not former or not self._known:
            return drafts
        page = self._host.reader.page(self._actor, ref, Filter(any_tags=tuple(sorted(former))), limit=_EVENTS)
        there = former & {tag for entry in page.items for tag in entry.tags}
        claimed = []
        for draft in drafts:
            mark = self._former.get(str(draft.replaces))
            claimed.append(replace(draft, tags=(*draft.tags, mark), replaces=mark) if mark in there else draft)
        return claimed

    def _items(self) -> Iterator[Item]:
        """Yield the items of the source. Raises Invalid where it cannot be read."""
        try:
            yield from self._reader.read(self._path)
        except FileNotFoundError:
            raise Invalid(f"There is no file {self._path}.", pointer="/path") from None
        except IsADirectoryError:
            message = f"{self._path.name} is a folder; {self._format} is read from a file. Nothing was stored."
            raise Invalid(message, code="import_damaged") from None
        except PermissionError:
            raise Invalid(f"{self._path.name} may not be read. Nothing was stored.", pointer="/path") from None
        except Invalid as fault:
            if not self._kept:
                raise
            message = f"{fault.message.removesuffix('Nothing was stored.')}The file changed while it was imported;"
            undo_it = f"{self._kept} entries had been stored. Take them back: reverie import undo {self.id}"
            raise Invalid(f"{message} {undo_it}", code=fault.reason) from None

    def _drafts(
        self, import_id: str, ids: dict[str, tuple[str, str]], links: list[tuple[str, str, str]]
    ) -> Iterator[tuple[str, Draft]]:
        seen: set[tuple[str, str]] = set()
        for item in self._items():
            if isinstance(item, Skipped):
                continue
            ref, draft = self._draft(item, import_id)
            place = ids[item.key] = _place(ref, draft)
            links += [(item.key, target, note) for target, note in item.links]
            if place not in seen:
                seen.add(place)
                yield ref, draft

    def _put(self, ref: str, drafts: list[Draft]) -> list[Any]:
        if not drafts:
            return []
        try:
            return self._patiently(lambda: self._host.entries.put(self._actor, ref, drafts, operation="IMPORT"))
        except Conflict:  # an id that was taken meanwhile, or erased: one by one
            receipts: list[Any] = []
            for draft in drafts:
                try:
                    receipts += self._patiently(
                        lambda one=draft: self._host.entries.put(self._actor, ref, [one], operation="IMPORT")  # type: ignore[misc]
                    )
                except Conflict:
                    continue
            return receipts

    def _patiently(self, call: Callable[[], list[Any]]) -> list[Any]:
        """Repeat a call that the host's rate limit refused, after the wait it asks for."""
        while True:
            try:
                return call()
            except RateLimited as limited:
                wait = float(limited.details.get("retry_after_seconds") or 1)
                if wait > _LONGEST_WAIT:
                    raise
                time.sleep(wait)

    def _link(self, ids: Mapping[str, tuple[str, str]], wanted: Iterable[tuple[str, str, str]]) -> int:
        """Store the links between imported entries, as a bundle of links."""
        by_ref: dict[str, list[Link]] = {}
        for key, target, note in wanted:
            if key in ids and target in ids and ids[key][0] == ids[target][0]:
                by_ref.setdefault(ids[key][0], []).append(Link(ids[key][1], ids[target][1], "informs", note[:200]))
        for ref, links in by_ref.items():
            self._host.bundles.load(self._actor, _bundle(self._actor.tenant, ref, links))
        return sum(map(len, by_ref.values()))

    def _states(self, places: Sequence[tuple[str, str]]) -> list[tuple[EntryState, int] | None]:
        """State and version of the entries at these places (ref, id): one request for each memory."""
        unknown: dict[str, list[str]] = {}
        for ref, entry_id in places:
            if (ref, entry_id) not in self._there:
                unknown.setdefault(ref, []).append(entry_id)
        for ref, ids in unknown.items():
            found = self._host.reader.states(self._actor, ref, ids)
            self._there |= {(ref, entry_id): found.get(entry_id) for entry_id in ids}
        return [self._there[place] for place in places]

    def _draft(self, record: Record, import_id: str) -> tuple[str, Draft]:
        ref = self._ref or record.ref or DEFAULT_REF
        source = Source(
            actor=_label(record.actor) or "",
            role=_label(record.role),
            session=_label(record.session),
            run=f"import-{import_id}" if import_id else None,
        )
        if record.exact_id is not None:
            mark, entry_id, attributes = None, record.exact_id, dict(record.attributes)
        else:
            mark = f"~source:{digest(self._format, record.key)}"
            if record.mark and self._ref is None:
                mark = record.mark
            elif record.file and not self._piped:
                former, mark = mark, f"~source:{digest(self._format, record.file, _key_within(record))}"
                self._former[mark] = former
            entry_id = digest(self._format, record.key, record.content)
            origin = {"format": self._format, "place": _sound(record.place[:300])}
            attributes = {**_sound(record.attributes), "import": origin}
            if not _fits(attributes):
                attributes = {"import": {**origin, "left_out": "attributes that are too long"}}
        content = _sound(record.content).replace("\0", " ")
        tags = tuple(_sound(tag).replace("\0", " ") for tag in record.tags)
        return ref, Draft(
            content=content,
            kind=record.kind,
            tags=tags if mark is None else (*tags, mark),
            subject=_label(record.subject),
            attributes=attributes,
            id=entry_id,
            source=source,
            created_at=record.created_at,
            expires_at=record.expires_at,
            pinned=record.pinned,
            replaces=mark,
        )


def undo(host: Host, actor: Actor, import_id: str, *, progress: Progress | None = None) -> Undone:
    """Take the entries of an import out of readable memory, and bring the versions that they replaced back.

    Importing the same source again restores the entries. An undo that was cut off continues when it is repeated.
    """
    run = f"import-{import_id}"
    where = Filter(run=run)
    taken, restored, refs = 0, 0, list[str]()
    for ref, _ in host.reader.refs(actor):
        own = 0
        while page := host.reader.page(actor, ref, where, limit=_BATCH).items:
            seen = [(entry.id, entry.version) for entry in page]
            restored += _restore_replaced(host, actor, ref, page, run)
            done = host.lifecycle.change_many(actor, ref, "retract", seen).get("done", 0)
            if not done:  # their author is another; deleting needs no more than the right to write
                for entry in page:
                    with suppress(NotFound):  # another caller took it back, or forgot it, at the same time
                        host.lifecycle.delete(actor, ref, entry.id)
                        done += 1
            own += done
            if progress:
                progress(taken + own, 0)
        taken += own
        refs += [ref] if own else []
    if not taken:
        raise NotFound(f"Nothing that the import {import_id[:64]} stored is readable.")
    return Undone(import_id, taken, refs, restored)


def _restore_replaced(host: Host, actor: Actor, ref: str, page: Sequence[Entry], run: str) -> int:
    """Make the versions readable again that these entries of a run replaced, unless they are of the same run."""
    back: list[tuple[str, int]] = []
    for _, old in _replaced(host, actor, {entry.id: entry.born_seq for entry in page}):
        with suppress(NotFound):  # its text was destroyed
            entry = host.reader.get(actor, ref, old, cold=True)
            if entry.state is EntryState.DELETED and entry.source.run != run:
                back.append((entry.id, entry.version))
    return host.lifecycle.change_many(actor, ref, "restore", back).get("done", 0) if back else 0


def _replaced(host: Host, actor: Actor, by: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """(ref, id) of the entries that these replaced. `by`: log positions by id; the log is read from the first on."""
    after = min(by.values(), default=1) - 1
    while by and (events := host.reader.events(actor, after=after, types=("memory.superseded",))):
        for event in events:
            if event.entry_id is not None and event.data.get("by") in by:
                yield str(event.data["ref"]), event.entry_id
        if len(events) < _EVENTS:
            return
        after = events[-1].seq


def _key_within(record: Record) -> str:
    """The key without the name of the file, which is another when a folder above it or below is imported."""
    name, _, rest = record.key.partition("\0")
    return rest if record.file.endswith(f"/{name}") else record.key


def _place(ref: str, draft: Draft) -> tuple[str, str]:
    assert draft.id is not None
    return ref, draft.id


def _check(ref: str, draft: Draft, policy: TenantPolicy, origin: str) -> None:
    """Raise Invalid, with the place in the source, for a draft that the write path would refuse."""
    try:
        check_ref(ref)
        check_draft(draft, policy, now=SystemClock().now())
    except ReverieError as fault:
        raise Invalid(f"{origin}: {fault.message} Nothing was stored.", code="import_damaged") from None


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Items in lists of at most `size`."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def _batches(drafts: Iterable[tuple[str, Draft]]) -> Iterator[tuple[str, list[Draft]]]:
    """Drafts of one memory together, but never two versions of one memory: the second replaces the first."""
    waiting: dict[str, list[Draft]] = {}
    marks: dict[str, set[str]] = {}
    sizes: Counter[str] = Counter()
    for ref, draft in drafts:
        again = draft.replaces is not None and draft.replaces in marks.get(ref, ())
        if again or len(waiting.get(ref, ())) >= _BATCH or sizes[ref] >= _BATCH_BYTES:
            yield ref, waiting.pop(ref)
            marks.pop(ref, None)
            sizes[ref] = 0
        waiting.setdefault(ref, []).append(draft)
        sizes[ref] += len(draft.content)
        if draft.replaces is not None:
            marks.setdefault(ref, set()).add(draft.replaces)
    yield from waiting.items()


def _bundle(tenant: str, ref: str, links: Iterable[Link]) -> list[bytes]:
    import hashlib

    from reverie.memory.export import FORMAT

    lines = [orjson.dumps({"type": "manifest", "format": FORMAT, "tenant": tenant, "ref": ref}) + b"\n"]
    lines += [
        orjson.dumps(
            {
                "type": "link",
                "ref": ref,
                "from_id": link.from_id,
                "to_id": link.to_id,
                "link": link.type,
                "note": link.note,
            }
        )
        + b"\n"
        for link in links
    ]
    end: dict[str, Any] = {"type": "end", "entries": 0, "links": len(lines) - 1, "events": 0}
    end["sha256"] = hashlib.sha256(b"".join(lines)).hexdigest()
    return [*lines, orjson.dumps(end) + b"\n"]


def _label(text: str | None) -> str | None:
    return _sound(text).replace("\0", " ")[:256] if text else None


def _sound(value: Any) -> Any:
    """A value whose texts can be written as UTF-8: names of files may be in any encoding."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {_sound(key): _sound(one) for key, one in value.items()}
    return [_sound(one) for one in value] if isinstance(value, list | tuple) else value


def _fits(attributes: Mapping[str, Any]) -> bool:
    try:
        return len(canonical(dict(attributes))) <= _MOST_ATTRIBUTES
    except (Invalid, TypeError, ValueError):
        return False
