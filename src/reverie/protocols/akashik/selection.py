"""Selection of units for a COMPACT. A typo in a filter must never widen it, so everything unknown is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from reverie.core.entry import Entry, EntryState
from reverie.core.query import Filter, each
from reverie.protocols.akashik.call import FIELD_AGENT, Ready
from reverie.protocols.akashik.units import ANY_UNIT, HOT, STATUSES, TYPES, status_of, type_of
from reverie.protocols.akashik.visibility import View, kinds_of
from reverie.store.contract import ReadTx

AUTHORITY = {"archive": 6, "summarize": 6, "purge": 10}
"""Authority required by each strategy."""

STRATEGIES = tuple(AUTHORITY)
MEMBERS = frozenset({"strategy", "filter", "reason", "dry_run"})
FILTER_MEMBERS = frozenset({"max_age_epochs", "session_id", "types", "status"})
MAX_REASON = 1000
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class CompactRequest:
    """A parsed COMPACT request."""

    strategy: str
    max_age: int | None = None
    session_id: str | None = None
    types: frozenset[str] | None = None
    status: frozenset[str] | None = None
    reason: str | None = None
    dry_run: bool = False


def read_ask(ready: Ready) -> CompactRequest:
    """Parse the payload. Raises INVALID_REQUEST or INVALID_FILTER."""
    payload = ready.payload

    def no(text: str) -> Exception:
        return ready.error("INVALID_REQUEST", text)

    strategy = payload.get("strategy")
    if strategy not in STRATEGIES:
        raise no(f"strategy is one of {', '.join(STRATEGIES)}.")
    if not payload.keys() <= MEMBERS:
        raise no(f"A COMPACT has {', '.join(sorted(MEMBERS))}, and nothing else.")
    reason, dry_run = payload.get("reason"), payload.get("dry_run")
    if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_REASON):
        raise no(f"reason is a string of at most {MAX_REASON} characters.")
    if dry_run is not None and not isinstance(dry_run, bool):
        raise no("dry_run is true or false.")
    asked = payload.get("filter")
    if asked is not None and not isinstance(asked, dict):
        raise ready.error("INVALID_FILTER", "filter is an object.")
    return CompactRequest(
        strategy, reason=(reason or "").strip() or None, dry_run=bool(dry_run), **_filter(ready, asked or {})
    )


def _filter(ready: Ready, asked: dict[str, Any]) -> dict[str, Any]:
    def no(text: str) -> Exception:
        return ready.error("INVALID_FILTER", text)

    if not asked.keys() <= FILTER_MEMBERS:
        raise no(f"A filter has {', '.join(sorted(FILTER_MEMBERS))}, and nothing else.")
    age, session = asked.get("max_age_epochs"), asked.get("session_id")
    if age is not None and (type(age) is not int or age < 0):
        raise no("max_age_epochs is a whole number, 0 or more.")
    if session is not None and not isinstance(session, str):
        raise no("session_id is a string.")
    lists: dict[str, frozenset[str] | None] = {}
    for name, known in (("types", TYPES), ("status", STATUSES)):
        values = asked.get(name)
        if values is not None and (not isinstance(values, list) or any(value not in known for value in values)):
            raise no(f"{name} is a list of: {', '.join(known)}.")
        lists[name] = None if values is None else frozenset(values)
    return {"max_age": age, "session_id": session, **lists}


def select(tx: ReadTx, view: View, ask: CompactRequest, *, epoch: int) -> list[Entry]:
    """The units that match, oldest first. `epoch` is the Field's clock before this message, plus one."""
    if ask.types == frozenset() or ask.status == frozenset():
        return []  # an empty list matches nothing: a program that found none must not wipe the Field
    found = matching(list(_units(tx, ask)), view, ask, epoch=epoch)
    return sorted(found, key=lambda entry: (entry.epoch, entry.id))


def matching(entries: Sequence[Entry], view: View, ask: CompactRequest, *, epoch: int) -> list[Entry]:
    """The units that a COMPACT takes."""
    # a session's creator has its authority there only
    sessions = {entry.source.session for entry in entries}
    commanded = {session for session in sessions if view.commands(session, AUTHORITY[ask.strategy])}
    wanted = [e for e in entries if e.source.session in commanded and _is_wanted(e, ask, epoch)]
    return [entry for entry in wanted if _is_visible(entry, view, ask)]


def _is_wanted(entry: Entry, ask: CompactRequest, epoch: int) -> bool:
    if entry.held or entry.pinned or (entry.archived and ask.strategy != "purge"):
        return False
    if ask.session_id is not None and entry.source.session != ask.session_id:
        return False
    if ask.types is not None and type_of(entry) not in ask.types:
        return False
    if ask.max_age is not None and epoch - entry.epoch <= ask.max_age:
        return False
    if entry.state is EntryState.CONTESTED if ask.status is None else status_of(entry) not in ask.status:
        return False
    return ask.strategy != "summarize" or not is_compaction(entry) or "synthesis" in (ask.types or ())


def _is_visible(entry: Entry, view: View, ask: CompactRequest) -> bool:
    if entry.state is EntryState.DRAFT and not view.wrote(entry):
        named = ask.status is not None and "draft" in ask.status
        return named and view.enters(entry.source.session) and view.allows(kinds_of(entry), entry.source.session)
    return view.reaches(entry)


def is_compaction(entry: Entry) -> bool:
    """Whether COMPACT made this unit."""
    return entry.source.actor == FIELD_AGENT and "dream" in entry.attributes


def _units(tx: ReadTx, ask: CompactRequest) -> Iterator[Entry]:
    where: Filter = ANY_UNIT if ask.strategy == "purge" else HOT
    if ask.status is not None:
        where = msgspec.structs.replace(where, states=frozenset(EntryState(status) for status in ask.status))
    if ask.session_id is not None:
        where = msgspec.structs.replace(where, session=ask.session_id)
    return each(lambda cursor: tx.scan(where, limit=_PAGE, cursor=cursor))
