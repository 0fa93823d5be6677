"""Times that callers name: `since` and `until` of a search or a list, and dates in a question.

Words such as "yesterday" are read in the caller's time zone; without one, in that of the tenant's policy. The policy is
read only when there are such words.
"""

from __future__ import annotations

import orjson
from msgspec.structs import replace

from reverie.core.draft import When, to_ms
from reverie.core.errors import Invalid
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter
from reverie.memory.policy import POLICY_SPACE
from reverie.search.dates import Period, named, time_zone, when
from reverie.store.contract import ReadTx


def between(
    tx: ReadTx, where: Filter, since: When | None, until: When | None, zone: str | None, *, pointer: str = ""
) -> Filter:
    """Narrow the filter to entries created at or after `since` and before `until`.

    A day or a longer period is included whole by either. Raises Invalid; `pointer` is where the two are.
    """
    if zone is not None:
        time_zone(zone)
    if since is None and until is None:
        return where
    if (since is not None and where.since is not None) or (until is not None and where.until is not None):
        raise Invalid("Give since and until once: as arguments or in the filter.", pointer=f"{pointer}/since")
    words = zone is None and (isinstance(since, str) or isinstance(until, str))
    here = zone or (_tenant_zone(tx) if words else "UTC")
    first = _instant(since, tx.now, here, pointer=f"{pointer}/since", end=False)
    last = _instant(until, tx.now, here, pointer=f"{pointer}/until", end=True)
    return replace(where, since=where.since if first is None else first, until=where.until if last is None else last)


def times_in(tx: ReadTx, query: str, zone: str | None) -> tuple[tuple[Period, ...], str]:
    """The times that a question names, and the question without the words that name them."""
    found, rest = named(query, tx.now, zone=zone or "UTC")
    return named(query, tx.now, zone=_tenant_zone(tx)) if found and zone is None else (found, rest)


def _instant(given: When | None, now: int, zone: str, *, pointer: str, end: bool) -> int | None:
    if isinstance(given, str):
        return when(given, now, zone=zone, end=end, pointer=pointer)
    return to_ms(given, pointer)


def _tenant_zone(tx: ReadTx) -> str:
    stored = tx.load(POLICY_SPACE, "tenant")
    return TenantPolicy().changed(orjson.loads(stored.body)).zone if stored and stored.body else TenantPolicy().zone
