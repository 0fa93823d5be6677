"""Candidates: the units worth scoring for an agent, found on one snapshot without holding up a writer.

Where a scope admits few units, all of them are candidates. Where it admits many, they come from the indexes: the
newest, the nearest in meaning, those that share words, those of the task, and those related to the agent's own. The
store counts how many the scope admits. Units committed between the snapshot and the operation's own write are looked up
in the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from reverie.core.entry import READABLE, Entry, EntryState
from reverie.core.query import Filter, Vector, each
from reverie.memory.read import ANYTHING
from reverie.protocols.akashik.units import relations_of
from reverie.protocols.akashik.visibility import View
from reverie.search.analysis import query_terms
from reverie.store.contract import ReadTx

LEAST = 200
"""Minimum number of candidates to score, when there are that many."""
PER_UNIT = 4
"""Candidates scored per unit that may be returned."""
MOST_FRESH = 256
"""Maximum number of units committed since the snapshot that an operation reads inside its write."""
MOST_ARCHIVED = 1000
"""Maximum number of archived candidates, the most recently archived; more when more units are to be returned."""
_PAGE = 1000
_OWN_LOOKED_AT = 50
"""Maximum number of the agent's own newest units whose relations are read."""
_WHOLESALE = ("dream.undone", "memory.imported", "memory.restored")
"""Events that may make units readable without an event for each."""


@dataclass(frozen=True, slots=True)
class UnitAdmission:
    """Units admitted by a scope: a filter for the store, and a view for rules that a filter cannot express."""

    where: Filter
    view: View
    agent_id: str

    def takes(self, entry: Entry) -> bool:
        """Whether a unit that matches the filter is admitted."""
        return self.view.sees(entry)

    def leaves_out(self, entry: Entry) -> bool:
        """Whether a unit is the agent's own and the scope excludes those."""
        author = self.where.not_by
        return author is not None and entry.source.actor == author[0] and entry.born_seq >= author[1]

    def get(self, tx: ReadTx, unit_id: str) -> Entry | None:
        """A unit by its id, if it is admitted."""
        entry = tx.get(unit_id, where=self.where)
        return entry if entry is not None and self.takes(entry) else None

    def count(self, tx: ReadTx) -> int:
        """Count the admitted units. The store counts; units are loaded only where a rule needs their text."""
        readable = msgspec.structs.replace(self.where, states=self.where.states - {EntryState.DRAFT})
        total = tx.count(readable)
        limited = "synthesis" in readable.kinds if readable.kinds is not None else bool(readable.without_kinds)
        for session in {name for name, _ in readable.hidden.kinds} if readable.hidden is not None else ():
            total -= self._unseen(tx, msgspec.structs.replace(readable, session=session))
        if limited:
            total -= self._unseen(tx, readable)
        if EntryState.DRAFT in self.where.states:
            drafts = msgspec.structs.replace(self.where, states=frozenset({EntryState.DRAFT}), actor=self.agent_id)
            total += sum(map(self.takes, each_unit(tx, drafts)))
        return total

    def _unseen(self, tx: ReadTx, readable: Filter) -> int:
        """Count the syntheses that are denied because they were made of a denied type, regardless of their own."""
        made = msgspec.structs.replace(readable, kinds=("synthesis",))
        return sum(not self.takes(entry) for entry in each_unit(tx, made))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Candidates as of a log position."""

    entries: Sequence[Entry]
    related: frozenset[str]
    """Units that the agent's own newest units point at, or that point at them."""
    alike: frozenset[int]
    """Positions of units that share words with the query."""
    snapshot: int
    complete: bool
    """Whether these are all that the scope admits."""


def gather(
    tx: ReadTx, admission: UnitAdmission, *, query: str, vector: Vector | None, task_id: str | None, most_units: int
) -> Gathered:
    """Gather the candidates for an answer of at most this many units.

    With a query, half of the wanted number are the best by words and half the best by meaning, which are often the same
    units; at least a quarter are the newest, since older units differ little in recency. The newest units of the task
    are added to these.
    """
    wanted = max(PER_UNIT * most_units, LEAST)
    hot = msgspec.structs.replace(admission.where, archived=False, gone=False)
    asked = query_terms(query) if query.strip() else []
    first = wanted // 4 if asked or vector is not None else wanted
    own: list[Entry] = []
    newest = _newest(tx, admission, hot, own, page=min(first + 1, _PAGE))
    found = {entry.id: entry for entry in islice(newest, first)}
    alike: frozenset[int] = frozenset()
    if len(found) == first < wanted:
        matches = tx.find(asked, vector, hot, limit=wanted // 2)
        alike = frozenset(match.entry.position for match in matches if match.score is not None)
        positions = list(dict.fromkeys(match.entry.position for match in matches))
        found |= {entry.id: entry for entry in tx.at(positions, hot).values() if admission.takes(entry)}
        while len(found) < wanted and (entry := next(newest, None)) is not None:
            found[entry.id] = entry
    complete = next(newest, None) is None
    if complete and asked and found:
        alike = frozenset(match.entry.position for match in tx.match(asked, hot, limit=len(found)))
    related = _related(tx, own[:_OWN_LOOKED_AT])
    if not complete:
        for unit_id in sorted(related):
            if unit_id not in found and (unit := admission.get(tx, unit_id)) is not None:
                found[unit.id] = unit
        if task_id is not None:
            of_task = msgspec.structs.replace(hot, task=task_id)
            newest = filter(admission.takes, each_unit(tx, of_task, page=min(wanted, _PAGE)))
            found |= {entry.id: entry for entry in islice(newest, wanted)}
    if admission.where.archived is None:
        cold = msgspec.structs.replace(admission.where, archived=True)
        last = tx.left(cold, limit=max(wanted, MOST_ARCHIVED) + 1)
        complete = complete and len(last) <= max(wanted, MOST_ARCHIVED)
        found |= {entry.id: entry for entry in last if admission.takes(entry)}
    return Gathered(list(found.values()), related, alike, tx.head().seq, complete)


def _newest(tx: ReadTx, admission: UnitAdmission, hot: Filter, own: list[Entry], *, page: int) -> Iterator[Entry]:
    """Admitted hot units, newest first. Units that the agent wrote are collected in `own`, admitted or not."""
    for entry in each_unit(tx, msgspec.structs.replace(hot, not_by=None), page=page):
        if admission.view.wrote(entry):
            own.append(entry)
        if not admission.leaves_out(entry) and admission.takes(entry):
            yield entry


def _related(tx: ReadTx, own: Sequence[Entry]) -> frozenset[str]:
    """Return the ids that the agent's newest units link to, and the ids that link to them."""
    found: set[str] = set()
    for entry in own:
        found.update(link.to_id for link in relations_of(tx, entry))
    found.update(link.from_id for link in tx.links(*[entry.id for entry in own], incoming=True))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class NewUnits:
    """Units missing from an operation's snapshot, and the change in the number of admitted ones."""

    entries: Sequence[Entry] = ()
    more: int = 0
    complete: bool = True
    """False: there were too many, or changes that no event of a unit names."""


def fresh(tx: ReadTx, admission: UnitAdmission, after: int) -> NewUnits:
    """Read the units committed since a snapshot. Called inside the operation's write."""
    events = tx.read_log(after=after, limit=4 * MOST_FRESH)
    named = list(dict.fromkeys(event.entry_id for event in events if event.entry_id is not None))
    wholesale = any(event.type in _WHOLESALE for event in events)
    complete = not wholesale and len(named) <= MOST_FRESH and len(events) < 4 * MOST_FRESH
    new: list[Entry] = []
    more = 0
    for unit_id in named[-MOST_FRESH:]:
        now = admission.get(tx, unit_id)
        before = tx.get(unit_id, as_of=after, where=ANYTHING)
        more += (now is not None) - (before is not None and _matched(before, admission))
        if now is not None and now.born_seq > after:
            new.append(now)
    return NewUnits(new, more, complete)


def _matched(entry: Entry, admission: UnitAdmission) -> bool:
    """Whether a unit that was readable at the snapshot was admitted then. The fields that decide it never change."""
    late = entry.epoch >= (admission.where.since_epoch or 0)
    return late and not admission.leaves_out(entry) and admission.takes(entry)


def touched(tx: ReadTx, after: int) -> Iterator[Entry]:
    """Units written since a snapshot, the newest `MOST_FRESH` of them."""
    events = tx.read_log(after=after, limit=4 * MOST_FRESH)
    named = list(dict.fromkeys(event.entry_id for event in events if event.entry_id is not None))
    for unit_id in named[-MOST_FRESH:]:
        entry = tx.get(unit_id)
        if entry is not None and entry.born_seq > after:
            yield entry


def each_unit(tx: ReadTx, where: Filter, *, page: int = _PAGE) -> Iterator[Entry]:
    """Every unit that matches."""
    return each(lambda cursor: tx.scan(where, limit=page, cursor=cursor))


def admit(view: View, agent_id: str, *, since_seq: int, own: bool, archived: bool, since_epoch: int) -> UnitAdmission:
    """The units visible to an agent: with `own` including its own units and drafts, else without any of its own."""
    where = Filter(
        states=READABLE | {EntryState.DRAFT} if own else READABLE,
        not_by=None if own else (agent_id, since_seq),
        since_epoch=since_epoch or None,
    )
    if archived:
        where = msgspec.structs.replace(where, archived=None, gone=True)
    return UnitAdmission(view.narrow(where), view, agent_id)
