"""JSON documents of the REST interface as the structs of the core, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from reverie.core.clock import from_iso, to_iso
from reverie.core.draft import When, to_ms
from reverie.core.dream import DreamReport
from reverie.core.entry import Draft, Entry, EntryState, Receipt, Source
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter
from reverie.dreams.lineage import Why
from reverie.jobs.timetable import Due, Outcome, Schedule
from reverie.memory.hits import Hit, SearchResult
from reverie.search.explain import Explanation
from reverie.search.passages import Passage

T = TypeVar("T")
_ANYONE = Source()


def to_struct(document: Mapping[str, Any], kind: type[T]) -> T:
    """A document as a struct. A field that a newer host adds is ignored."""
    return msgspec.convert(document, kind, strict=False)


def draft_document(draft: Draft) -> dict[str, Any]:
    """Render a draft as the body of a put; fields with their default are left out."""
    document: dict[str, Any] = {
        name: value
        for name, value in msgspec.structs.asdict(draft).items()
        if name not in ("source", "state", "created_at", "expires_at") and value not in (None, (), {}, False)
    }
    if draft.state is not EntryState.ACTIVE:
        raise Invalid("Over HTTP an entry is stored as active only.", pointer="/state")
    if "attributes" in document:
        document["attributes"] = dict(draft.attributes)
    if draft.source != _ANYONE:
        source = msgspec.structs.asdict(draft.source)
        document["source"] = {name: value for name, value in source.items() if name != "door" and value is not None}
    for name in ("created_at", "expires_at"):
        when = getattr(draft, name)
        if when is not None:
            document[name] = to_iso(when)
    return document


def to_receipt(document: Mapping[str, Any], *, own_key: bool) -> Receipt:
    """A receipt. A replay under a key that the client made itself answers the caller's first call."""
    fields = {**document, "created_at": from_iso(document["created_at"])}
    receipt = to_struct(fields, Receipt)
    return msgspec.structs.replace(receipt, replayed=False) if own_key else receipt


def to_entry(document: Mapping[str, Any]) -> Entry:
    """An entry. Positions inside the store stay there: `position`, `epoch` and `gone_seq` are not part of it."""
    fields = {name: value for name, value in document.items() if name != "seq"}
    fields["created_at"] = from_iso(document["created_at"])
    fields["expires_at"] = None if document["expires_at"] is None else from_iso(document["expires_at"])
    return to_struct({**fields, "born_seq": document["seq"]}, Entry)


def to_search_result(document: Mapping[str, Any]) -> SearchResult:
    """Hits, and the explanation when one was asked for."""
    explanation = document.get("explanation")
    return SearchResult(
        hits=[_hit(hit) for hit in document["hits"]],
        mode=document["mode"],
        degraded=document["degraded"],
        explanation=None if explanation is None else to_struct(explanation, Explanation),
    )


def _hit(document: Mapping[str, Any]) -> Hit:
    fields = {name: document[name] for name in Hit.__struct_fields__ if name in document}
    return Hit(**fields | {"entry": to_entry(document["entry"]), "passage": to_struct(document["passage"], Passage)})


def to_report(document: Mapping[str, Any]) -> DreamReport:
    """The report of a dream."""
    return to_struct({**document, "created_at": from_iso(document["created_at"])}, DreamReport)


def to_why(document: Mapping[str, Any]) -> Why:
    """Parse an entry and its sources."""
    fields = {**document, "created_at": from_iso(document["created_at"]), "sources": ()}
    return msgspec.structs.replace(to_struct(fields, Why), sources=[to_why(source) for source in document["sources"]])


def to_event(document: Mapping[str, Any]) -> Event:
    """A row of the log; its hash can be checked here too."""
    return Event(
        seq=document["seq"],
        epoch=document["epoch"],
        at=from_iso(document["ts"]),
        type=document["type"],
        operation=document["operation"],
        actor=document["agent_id"],
        session=document["session_id"],
        entry_id=document["memory_unit_id"],
        conflict_id=document["conflict_id"],
        task_id=document["task_id"],
        data=document["data"],
        prev_hash=document["prev_hash"],
        hash=document["hash"],
    )


def to_due(document: Mapping[str, Any]) -> Due:
    """A schedule as people see it."""
    next_at = document["next_at"]
    return Due(to_schedule(document), None if next_at is None else from_iso(next_at), document["why_not"])


def to_schedule(document: Mapping[str, Any]) -> Schedule:
    """A schedule."""
    last, tick = document["last"], document["last_tick"]
    fields = {name: value for name, value in document.items() if name not in ("next_at", "why_not")}
    fields |= {"created_at": from_iso(document["created_at"]), "last": None}
    fields["last_tick"] = None if tick is None else from_iso(tick)
    schedule = to_struct(fields, Schedule)
    return schedule if last is None else msgspec.structs.replace(schedule, last=to_outcome(last))


def to_outcome(document: Mapping[str, Any]) -> Outcome:
    """Parse the outcome of a tick."""
    return to_struct({**document, "tick": from_iso(document["tick"]), "at": from_iso(document["at"])}, Outcome)


def to_policy(document: Mapping[str, Any]) -> TenantPolicy:
    """A tenant's policy."""
    known = set(TenantPolicy.__dataclass_fields__)
    return TenantPolicy(**{name: value for name, value in document.items() if name in known})


def filter_document(where: Filter) -> dict[str, Any]:
    """The filter of a search or a context."""
    _only_readable(where, archived=False)
    document: dict[str, Any] = {name: getattr(where, name) for name in ("subject", "actor", "session", "run", "pinned")}
    document["tags"] = list(where.tags) or None
    document["any_tags"] = None if where.any_tags is None else list(where.any_tags)
    document["kinds"] = None if where.kinds is None else list(where.kinds)
    document |= _instants(where)
    return {name: value for name, value in document.items() if value is not None}


def filter_query(where: Filter) -> dict[str, Any]:
    """The filter of a list, as query parameters."""
    _only_readable(where, archived=True)
    document: dict[str, Any] = {name: getattr(where, name) for name in ("subject", "actor", "session", "run", "pinned")}
    document |= {"tag": where.tags, "any_tag": where.any_tags, "kind": where.kinds, **_instants(where)}
    if where.archived:
        document["archived"] = True
    return document


def times(where: Filter, since: When | None, until: When | None) -> dict[str, str]:
    """`since` and `until` as they are sent: words unchanged, times as RFC 3339."""
    given = {name: value for name, value in (("since", since), ("until", until)) if value is not None}
    if any(getattr(where, name) is not None for name in given):
        raise Invalid("Give since and until once: as arguments or in the filter.", pointer="/since")
    return {
        name: value if isinstance(value, str) else to_iso(to_ms(value, f"/{name}") or 0)
        for name, value in given.items()
    }


def matches_nothing(where: Filter) -> bool:
    """Whether the filter has an empty list, which no query parameter can express."""
    return where.any_tags == () or where.kinds == ()


def _instants(where: Filter) -> dict[str, str]:
    results = {"since": where.since, "until": where.until}
    return {name: to_iso(when) for name, when in results.items() if when is not None}


def _only_readable(where: Filter, *, archived: bool) -> None:
    plain = Filter()
    if where.states != plain.states or where.expired is not False or where.archived is None:
        raise Invalid("states, expired and archived=None can be asked of an embedded memory only.", pointer="/filter")
    if where.archived != where.gone or (where.archived and not archived):
        raise Invalid("Over HTTP, a list shows readable entries, or archived ones with gone.", pointer="/filter")
