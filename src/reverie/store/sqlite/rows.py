"""Row bindings specific to SQLite."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from reverie.core.query import Filter
from reverie.store.rows import encode


def filter_parameters(where: Filter, now: int) -> dict[str, Any]:
    """The bindings of the fragment `filter`."""
    return {
        "states": encode([state.value for state in sorted(where.states)]),
        "archived": None if where.archived is None else int(where.archived),
        "expired": None if where.expired is None else int(where.expired),
        "now": now,
        "kinds": None if where.kinds is None else encode(list(where.kinds)),
        "subject": where.subject,
        "actor": where.actor,
        "session": where.session,
        "sessionless": 1 if where.sessionless else None,
        "hidden": None if where.hidden is None else encode(to_builtins(where.hidden)),
        "without_kinds": encode(list(where.without_kinds)) if where.without_kinds else None,
        "not_actor": where.not_by[0] if where.not_by else None,
        "not_from": where.not_by[1] if where.not_by else None,
        "since_epoch": where.since_epoch,
        "run": where.run,
        "task": where.task,
        "pinned": None if where.pinned is None else int(where.pinned),
        "since": where.since,
        "until": where.until,
        "tags": encode(list(where.tags)) if where.tags else None,
        "any_tags": None if where.any_tags is None else encode(list(where.any_tags)),
    }
