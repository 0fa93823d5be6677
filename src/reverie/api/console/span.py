"""The time range of a page: the last days, or two dates, in its address."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from reverie.api.console.page import Look
from reverie.api.console.text import day
from reverie.core.clock import MS_PER_DAY, from_iso
from reverie.core.errors import Invalid

CHOICES = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "1 year"))
DAYS = 30
_LONGEST = 3660
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Span(Struct, frozen=True):
    """A range of time in milliseconds; `until` is exclusive."""

    since: int
    until: int
    days: int | None
    """The choice it is, such as the last 30 days; None: two dates were given."""

    def document(self) -> dict[str, Any]:
        """The range as pages show it."""
        shown = {"since": day(self.since), "until": day(self.until - 1), "days": self.days}
        return {**shown, "choices": [list(choice) for choice in CHOICES]}


def span_of(look: Look) -> Span:
    """The range that the address asks for. Raises Invalid."""
    now = look.host.parts.clock.now()
    today = now // MS_PER_DAY
    first, last = _date(look, "since"), _date(look, "until")
    if first is None and last is None:
        days = look.number("days", DAYS, most=_LONGEST)
        return Span((today - days + 1) * MS_PER_DAY, (today + 1) * MS_PER_DAY, days)
    until = (today if last is None else last) + 1
    since = until - DAYS if first is None else first
    if not 0 < until - since <= _LONGEST:
        raise Invalid(f"since is before until, by at most {_LONGEST} days.", pointer="/since")
    return Span(since * MS_PER_DAY, until * MS_PER_DAY, None)


def _date(look: Look, name: str) -> int | None:
    """A date of the address as a number of days."""
    sent = look.text(name)
    if not sent:
        return None
    if not _DATE.fullmatch(sent):
        raise Invalid(f"{name} is a date such as 2026-01-31.", pointer=f"/{name}")
    return from_iso(f"{sent}T00:00:00Z", pointer=f"/{name}") // MS_PER_DAY
