"""Instants and durations as plain integers: milliseconds since 1970, UTC.

Times at the edge are RFC 3339 strings with a zone; a naive time is refused, never guessed.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

from reverie.core.errors import Invalid

MS_PER_DAY = 86_400_000
LATEST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO_DURATION = re.compile(
    r"P(?!$)(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?!$)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?"
)
_SHORT_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d|w)")
_SHORT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": MS_PER_DAY, "w": 7 * MS_PER_DAY}


class SystemClock:
    """The real clock. Tests pass another clock with the same method."""

    def now(self) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000


def local_zone() -> str:
    """The name of this machine's time zone, such as Europe/Lisbon; UTC when it has none."""
    names = [os.environ.get("TZ", "").removeprefix(":")]
    for link in ("/etc/localtime", "/var/db/timezone/localtime"):
        with suppress(OSError):
            names.append(str(Path(link).readlink()).partition("zoneinfo/")[2])
    for name in filter(None, names):
        with suppress(KeyError, ValueError, OSError):
            return ZoneInfo(name).key
    return "UTC"


def is_zone(name: str) -> bool:
    """Whether this is the name of a time zone, such as Europe/Lisbon."""
    try:
        return bool(ZoneInfo(name).key)
    except (KeyError, ValueError, OSError):
        return False


def to_datetime(ms: int) -> datetime:
    """An instant as an aware datetime, UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


@lru_cache(maxsize=1024)
def to_iso(ms: int) -> str:
    """`2026-11-15T08:05:09.000Z`: always UTC, always three decimals, so text order is time order."""
    return f"{_iso_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(maxsize=4096)
def _iso_second(seconds: int) -> str:
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def from_iso(text: str, *, pointer: str | None = None) -> int:
    """Milliseconds of an RFC 3339 instant. A time without a zone is refused."""
    try:
        stamp = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        stamp = None
    if stamp is None or len(text) < 11:
        raise Invalid("Write times as RFC 3339, for example 2026-11-15T08:05:09Z.", pointer=pointer)
    if stamp.tzinfo is None:
        raise Invalid("The time has no zone. Add Z for UTC, or an offset such as +02:00.", pointer=pointer)
    try:
        delta = stamp - _EPOCH
    except OverflowError:
        raise Invalid("The time is out of range.", pointer=pointer) from None
    ms = (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000
    if not 0 <= ms <= LATEST:
        raise Invalid("The time is out of range.", pointer=pointer)
    return ms


def parse_duration(text: str, *, pointer: str | None = None) -> int:
    """Milliseconds of `90d`, `36h`, `15m`, `30s`, `500ms` or ISO 8601 such as `P30D`, `PT12H`."""
    short = _SHORT_DURATION.fullmatch(text.strip())
    if short:
        return int(short[1]) * _SHORT_MS[short[2]]
    iso = _ISO_DURATION.fullmatch(text.strip().upper())
    if iso and any(iso.groups()):
        weeks, days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
        return (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000
    raise Invalid("Write durations as 90d, 36h, 15m, 30s, or ISO 8601 such as P30D.", pointer=pointer)


def short_duration(ms: int) -> str:
    """The shortest form that `parse_duration` reads back exactly: `7d`, `36h`, `250ms`."""
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if ms % _SHORT_MS[unit] == 0)
    return f"{ms // _SHORT_MS[unit]}{unit}"


def iso_duration(ms: int) -> str:
    """The ISO 8601 form of a duration: `P30D`, `PT12H`, `P1DT2H3.500S`."""
    days, rest = divmod(ms, MS_PER_DAY)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds = f"{rest // 1000}" + (f".{rest % 1000:03d}" if rest % 1000 else "")
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "") + (f"{seconds}S" if rest else "")
    if not days and not clock:
        return "PT0S"
    return "P" + (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
