"""What must hold after every step, whoever did what in which order.

The model is a dictionary: the values that were written, each by a word that occurs nowhere else, and what callers were
told of them. The store is read through its port and compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from tests.simulate.actors import EVERYTHING, Op
from tests.simulate.world import (
    DESK,
    FIELD,
    NOTES,
    OLD_SECRET,
    OLD_SECRET_ID,
    OTHER,
    SECRET,
    SECRET_ID,
    TENANT,
    Fact,
    World,
)

from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.event import genesis
from reverie.core.query import Filter
from reverie.dreams.archive import ARCHIVE_SPACE, DREAM_SPACE, WORK_SPACE
from reverie.memory.read import ANYTHING
from reverie.memory.searches import RecordedSearch
from reverie.protocols.akashik.conflicts import CONFLICTS, each_unresolved
from reverie.protocols.anthropic.dream_records import SPACE as ASKED_SPACE
from reverie.protocols.anthropic.dream_records import TEXT_SPACE
from reverie.store.contract import ReadTx

_DISTILLED = "distilled-from"
_ENOUGH = 1000
_SECRETS = {SECRET_ID: SECRET, OLD_SECRET_ID: OLD_SECRET}


class Broken(AssertionError):
    """A promise does not hold."""


@dataclass(frozen=True)
class State:
    """What one snapshot shows."""

    seq: int
    readable: Sequence[Entry]
    stored: Sequence[Entry]
    """Everything that has text, readable or cold."""
    origins: dict[str, frozenset[str]]
    """Ids of the originals behind every readable entry, by its id."""
    documents: Sequence[tuple[str, str, bytes, int]]


class Model:
    """The values of one run."""

    def __init__(self, world: World, ops: Sequence[Op]) -> None:
        self.world = world
        self.ops = ops
        self.facts: dict[str, Fact] = dict(world.template.facts)
        for op in ops:
            self.facts |= op.adds
        self.known = {name for name in world.template.facts if name not in world.template.gone}
        """Acknowledged."""
        self.gone: set[str] = set(world.template.gone)
        """Removed for certain: nothing may show them, unless an operation that restores them was begun."""
        self.births: dict[str, int] = {}
        """Where in the log each value was first stored."""
        self.certificates: list[tuple[str, int]] = []
        self.secrets: dict[str, int] = {}
        """Where in the log each secret was registered, by its value."""
        self.step = 0
        self.sweeps = False
        """Whether time may have destroyed cold text."""
        self.faulty = False
        """Whether something around the store failed, so that operations may."""
        self.quiet = False
        """Whether nobody is at work any more, so that nothing comes back."""
        self._seq, self._hash = 0, genesis(TENANT)
        self._other = self._fingerprint()
        self._last: State | None = None
        self._now: tuple[Any, ...] = ()
        self.check()

    # what callers are told

    def began(self, op: Op) -> None:
        """An operation takes its first step."""
        op.begun = self.step

    def ended(self, op: Op) -> None:
        """An operation was answered."""
        op.ended = self.step
        if op.error is not None:
            internal = op.doubtful and getattr(op.error, "code", "") != "UNAVAILABLE"
            if not (op.refused or op.doubtful) or (internal and not self.faulty):
                raise Broken(f"{op.label()} raised {op.error!r}") from op.error
            return
        self.known |= {name for name in op.adds if name not in self._skipped(op)}
        for name in op.removes(op.result):
            if not any(self._may_restore(other, name, since=op) for other in self.ops):
                self.gone.add(name)
            self.known.discard(name)
        if op.subject is not None and getattr(op.result, "certificate", None) is not None:
            self.certificates.append((op.subject, op.result.certificate))
        for name in op.may_restore:
            self.gone.discard(name)
            if op.name == "restore":
                self.known.add(name)

    def forgotten(self, subject: str) -> None:
        """Everything about a subject was forgotten while nobody else was at work."""
        for name, fact in self.facts.items():
            if fact.subject == subject and name in self.births:
                self.gone.add(name)
                self.known.discard(name)
        self.quiet = True

    def _skipped(self, op: Op) -> set[str]:
        """What an import left alone because its id was taken."""
        return set(op.adds) if op.name == "import" and op.result.entries == 0 else set()

    def _may_restore(self, other: Op, name: str, *, since: Op) -> bool:
        """Whether `other` may have brought a value back that `since` removed: it began and had not ended before."""
        if name not in other.may_restore or other.begun is None or other.refused:
            return False
        return other.ended is None or other.doubtful or other.ended >= (since.begun or 0)

    def _may_be_removed(self, name: str) -> bool:
        """Whether an operation that was begun may have made a value unreadable."""
        fact = self.facts[name]
        for op in self.ops:
            if op.begun is None or op.refused:
                continue
            if op.subject is not None and op.subject == fact.subject:
                return True
            if op.answered and op.sure and name not in op.removes(op.result):
                continue
            if name in op.may_remove or (op.may_remove == EVERYTHING and fact.ref == NOTES):
                return True
        return False

    # what the store shows

    def check(self) -> None:
        """Everything that must hold now."""
        head = self.world.store.read(Scope(TENANT), lambda tx: tx.head())
        now = (head, sum(op.begun is not None for op in self.ops), sum(op.ended is not None for op in self.ops))
        if self._last is None or now != self._now:  # else neither the store nor what callers know has changed
            self._now = now
            if self._last is None or head.seq != self._last.seq:
                self._last = self.world.store.read(Scope(TENANT), self._look)
                self._check_log(self._last.seq)
                self._note_births(self._last)
            broken = []
            for check in (self._check_certificates, self._check_values, self._check_secrets):
                try:
                    check(self._last)
                except Broken as fault:
                    broken.append(str(fault))
            if broken:
                raise Broken("; ".join(broken))
        if self.world.store.read(Scope(OTHER), lambda tx: tx.head()) != self._other[0]:
            raise Broken("the log of another tenant moved")

    def check_tenants(self) -> None:
        """Nothing of the other tenant changed."""
        if self._fingerprint() != self._other:
            raise Broken("another tenant changed")

    def _look(self, tx: ReadTx) -> State:
        seq = tx.head().seq
        readable = _all(tx, Filter())
        stored = [entry for entry in _all(tx, ANYTHING) if entry.state is not EntryState.ERASED]
        origins = {}
        for entry in readable:
            with tx.within(entry.ref):
                origins[entry.id] = _originals(tx, entry)
        documents = [
            (space, document.key, document.body or b"", document.seq)
            for space in (ARCHIVE_SPACE, DREAM_SPACE, WORK_SPACE, CONFLICTS, "workspace", ASKED_SPACE, TEXT_SPACE)
            for document in tx.documents(space, limit=_ENOUGH).items
        ]
        return State(seq, readable, stored, origins, documents)

    def _check_log(self, seq: int) -> None:
        events = self.world.store.read(Scope(TENANT), lambda tx: tx.read_log(after=self._seq, limit=_ENOUGH))
        for event in events:
            if event.seq != self._seq + 1:
                raise Broken(f"the log has no event {self._seq + 1}")
            if event.prev_hash != self._hash or not event.sound():
                raise Broken(f"the chain of the log breaks at {event.seq}")
            self._seq, self._hash = event.seq, event.hash
            if event.type == "secret.registered":
                self.secrets.setdefault(_SECRETS[str(event.data["secret"])], event.seq)
        if self._seq != seq:
            raise Broken(f"the log ends at {self._seq}, its head says {seq}")

    def _note_births(self, state: State) -> None:
        for entry in state.stored:
            if entry.attributes.get("dream"):
                continue
            for name, fact in self.facts.items():
                if name not in self.births and fact.needle in entry.content and fact.id in (None, entry.id):
                    self.births[name] = entry.born_seq

    def _check_values(self, state: State) -> None:
        """Acknowledged and not removed means readable exactly once."""
        ids = Counter((entry.ref, entry.id) for entry in state.readable)
        if twice := [key for key, times in ids.items() if times > 1]:
            raise Broken(f"a list shows {twice} more than once")
        shown = Counter(origin for origins in state.origins.values() for origin in origins)
        if twice := sorted(origin for origin, times in shown.items() if times > 1):
            raise Broken(f"{self._names(twice)} readable more than once: {self._where(state, twice)}")
        for name, fact in self.facts.items():
            times = shown[fact.id] if fact.id is not None else self._times(state, shown, fact)
            if name in self.gone and times and not self._restorable(name):
                raise Broken(f"{name} was removed and is readable: {self._where(state, [fact.id or fact.needle])}")
            if name in self.known and name not in self.gone and not times and not self._may_be_removed(name):
                if name == "e1" or (self.sweeps and self._erased(state, fact)):
                    continue
                raise Broken(f"{name} was acknowledged, was not removed, and nothing readable has it")
        for op in self.ops:
            if op.refused:
                for name, fact in op.adds.items():
                    if name not in self.births or fact.id is not None:
                        continue
                    raise Broken(f"{op.label()} was refused, and {name} is stored")

    def _times(self, state: State, shown: Counter[str], fact: Fact) -> int:
        """For values whose id only the answer tells: the originals that have the word."""
        ids = {e.id for e in state.stored if fact.needle in e.content and not e.attributes.get("dream")}
        ids |= {e.id for e in state.readable if fact.needle in e.content and not e.attributes.get("dream")}
        return sum(shown[key] for key in ids)

    def _restorable(self, name: str) -> bool:
        return not self.quiet and any(
            name in op.may_restore and op.begun is not None and not op.refused for op in self.ops
        )

    def _erased(self, state: State, fact: Fact) -> bool:
        return all(fact.id != entry.id for entry in state.stored)

    def _check_certificates(self, state: State) -> None:
        """After a certificate no word of the subject is in anything readable or stored."""
        for subject, at in self.certificates:
            for name, word in self.words_of(subject, at):
                for entry in state.stored:
                    if word in _everything(entry):
                        how = "readable" if entry in state.readable else "stored"
                        raise Broken(
                            f"{name}, about {subject}, was certified as forgotten at {at}, and is {how} in "
                            f"{entry.kind} {entry.id}, born at {entry.born_seq}"
                        )
                raw = word.encode()
                for space, key, body, _ in state.documents:
                    if raw in body:
                        raise Broken(f"{name}, about {subject}, was forgotten at {at}, and is in {space}/{key}")
        if self.certificates:
            self._check_window()
            self._check_questions()
            self._check_conflicts(state)

    def _check_conflicts(self, state: State) -> None:
        """No conflict waits for a decision about a unit that was forgotten."""
        stored = {entry.id for entry in state.stored}
        for conflict in self.world.store.read(Scope(TENANT, FIELD), lambda tx: list(each_unresolved(tx))):
            if gone := [side for side in conflict.units if side not in stored]:
                raise Broken(f"a conflict over {self._names(gone)} is open, which were forgotten")

    def _check_questions(self) -> None:
        """No recorded question from before a certificate names its subject."""

        def look(tx: ReadTx) -> list[RecordedSearch]:
            return [one for ref in tx.searches() for one in self.world.host.searches._row(tx, ref).questions]

        for question in self.world.store.read(Scope(TENANT), look):
            for subject, at in self.certificates:
                words = [subject, *(word for _, word in self.words_of(subject, at))]
                if question.seq < at and any(word.casefold() in question.text.casefold() for word in words):
                    raise Broken(f"a question of position {question.seq} outlived the forget of {subject} at {at}")

    def _check_window(self) -> None:
        from reverie.core.errors import NotFound

        try:
            texts = self.world.host.windows.texts(self.world.actor(0), DESK)
        except NotFound:
            return
        for subject, at in self.certificates:
            for name, word in self.words_of(subject, at):
                if any(word in said for said in texts):
                    raise Broken(f"{name}, about {subject}, was forgotten at {at}, and is in the window")

    def words_of(self, subject: str, at: int) -> list[tuple[str, str]]:
        """The values about a subject that were stored up to a log position."""
        return [
            (name, fact.needle)
            for name, fact in self.facts.items()
            if fact.subject == subject and self.births.get(name, at + 1) <= at
        ]

    def _check_secrets(self, state: State) -> None:
        """From the commit that registers a secret on, nothing is stored that has it; a scan leaves it nowhere."""
        for value, at in self.secrets.items():
            for entry in state.stored:
                if entry.born_seq > at and value in entry.content:
                    raise Broken(f"{entry.kind} {entry.id}, born at {entry.born_seq}, has a secret registered at {at}")
            for space, key, body, seq in state.documents:
                if seq > at and value.encode() in body:
                    raise Broken(f"{space}/{key}, of {seq}, has a secret registered at {at}")
            told = [0] if value == OLD_SECRET else self._ends("secret")
            for op in self.ops:
                if op.name == "scan" and op.answered and any(end <= (op.begun or 0) for end in told):
                    left = [entry.id for entry in state.stored if value in entry.content]
                    if left:
                        raise Broken(f"{left} have a secret that was registered before a scan began and ended")

    def _ends(self, name: str) -> list[int]:
        return [op.ended for op in self.ops if op.name == name and op.answered and op.ended is not None]

    def _fingerprint(self) -> tuple[Any, ...]:
        def look(tx: ReadTx) -> tuple[Any, ...]:
            return tx.head(), tuple(msgspec.json.encode(entry) for entry in _all(tx, ANYTHING))

        return self.world.store.read(Scope(OTHER), look)

    # words for reports

    def _names(self, ids: Iterable[str]) -> list[str]:
        known = {fact.id: name for name, fact in self.facts.items()}
        return [known.get(key, key) for key in ids]

    def _where(self, state: State, what: Iterable[str]) -> list[str]:
        found = []
        for entry in state.readable:
            if any(key in state.origins[entry.id] or key in entry.content for key in what):
                found.append(f"{entry.kind} {entry.id} born {entry.born_seq}")
        return found


def _all(tx: ReadTx, where: Filter) -> list[Entry]:
    found: list[Entry] = []
    cursor: str | None = None
    while True:
        page = tx.scan(where, limit=_ENOUGH, cursor=cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


def _originals(tx: ReadTx, entry: Entry) -> frozenset[str]:
    """The originals behind an entry, through however many dreams."""
    found, edge, seen = set(), [entry.id], {entry.id}
    while edge:
        at = edge.pop()
        below = [link.to_id for link in tx.links(at, type=_DISTILLED)]
        if not below:
            found.add(at)
        for key in below:
            if key not in seen:
                seen.add(key)
                edge.append(key)
    return frozenset(found)


def _everything(entry: Entry) -> str:
    return msgspec.json.encode(entry).decode()
