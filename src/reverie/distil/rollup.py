"""Roll-ups: a status reported many times becomes one line.

`Reindex finished in 41 s` on nineteen days becomes `Reindex finished in 41 to 66 s (×19, 3 to 9 October 2025)`. Only
lines of one speaker with equal words and different numbers are rolled up; the line keeps the ids of all its sources.
Reports that the same thing failed are added in the brackets: `once: reindex failed`. Readings also give the last value:
`disk of log-3 41 to 78 % (×6, 1 to 9 June 2026, last 47 %)`.

Readings that the value model takes for more than routine are rolled up only where the numbers are measurements
(`disk of log-3 at 86 %`): a ticket or an invoice with another number is another thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from reverie.core.pause import paced
from reverie.distil.dates import MONTHS, UNKNOWN_DAY, spell
from reverie.distil.statements import Candidate, Into

LEAST = 3
"""Reports of one template needed for a roll-up."""
_MOST_NUMBERS = 4
"""Numbers of a line above which ranges would lose too much."""
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters that follow a number or come before it without a space."""
_VERSION = r"(?<![\w.-])v?\d+(?:\.\d+){2,3}(?![\w.-]*\w)"
_NUMBER = re.compile(
    rf"{_VERSION}|(?<![.,:/-])(?<![^\W{_UNSPACED}])(?:\d[\d,]*(?:\.\d+)?(?![:/-])|\d+/\d+(?![/-]))(?![^\W{_UNSPACED}])"
    r"|\b\d{1,2}:\d\d\b"
)
_FAILURE = re.compile(
    r"(?i)\b(?:fail(?:s|ed|ure)|crashed|aborted|timed out|fehlgeschlagen|échoué|falló|fallit[oa]|falhou|mislukt)\b"
    r"|失敗|失败|실패"
)
_ENDS = re.compile(
    rf"{_FAILURE.pattern}|\b(?:ok|okay|done|passe[sd]|succeeded|finished|complete[ds]?|ended|ready|green|took|built|ran"
    r"|fertig|abgeschlossen|erfolgreich|termin[ée]+e?|réussie?|terminad[oa]|completad[oa]|list[oa]|conclu[ií]d[oa]"
    r"|completat[oa]|riuscit[oa]|klaar|gelukt)\b|成功|完了|完成|성공|완료"
)
"""Words for an outcome."""
_PERIOD = re.compile(
    r"(?i)\b(?:today|tonight|yesterday|(?:this|last) (?:night|morning|week|weekend|month|quarter|year)"
    r"|heute|diese Woche|hoy|esta semana|aujourd'hui|cette semaine|oggi|hoje|vandaag|deze week):? [€$£]?\d"
)
"""A figure of a day or a week, which a later figure does not replace: `Groceries this week: 95 euros`."""
_LINKS = re.compile(r" (?:in|im|en|em|after|at|on|for|of|was|is|took)$")
_MOST_DIGITS = 4000
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_TERSE = 2
"""Words of a report so short that count and dates would be most of its line: `heartbeat`, `sync ok`."""
_LONGEST_FAILURE = 24
"""Words and marks, at most, of a reported failure that is added in brackets."""


_UNIT = re.compile(
    r" ?(?:[%€$£°円元]|[kMGT]i?B\b|[mµn]?s\b|min\b|h\b"
    r"|(?:second|minute|hour|day|request|message|item|row|line|file|test|user|error|euro|dollar|pound)s?\b"
    r"|(?:req|rps|qps|ops|km|kg|[kM]?W|kWh|V|A|C|F|mbar|hPa|bar|degrees|Grad|grados|degrés)\b"
    r"|(?:Minute|Stunde|Sekunde|Zeile|Datei)n?\b|(?:minut[eoi]|segundo|seconde|ora|hora|heure|uur|fila|riga|ligne)s?\b"
    r"|minuten\b|seconden\b|分|秒|時間|小时|件|回|度|분|초|시간|건)"
)
"""Units after a measured number."""


def _measures(text: str, differ: Sequence[bool] = ()) -> bool:
    """Whether the numbers of a statement are measurements, or versions with an outcome (`deploy shop 5.2.1 ok`).

    `differ`: which of the numbers differ between reports; only these are judged.
    """
    found = list(_NUMBER.finditer(text))
    asked = differ or [True] * len(found)
    ends = _ENDS.search(text)
    return any(asked) and all(
        _UNIT.match(text, one.end()) or (ends and re.fullmatch(_VERSION, one[0]))
        for one, changes in zip(found, asked, strict=True)
        if changes
    )


def template(text: str) -> tuple[str, ...]:
    """Return the words around the numbers of a statement."""
    return tuple(_NUMBER.split(text.casefold()))


def numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def roll_up(items: Sequence[Candidate], into: Into) -> list[Candidate]:
    """Replace every group of routine reports by one statement, at the place of the newest."""
    groups: dict[tuple[str | None, str | None, tuple[str, ...]], list[Candidate]] = {}
    for item in paced(items):
        if not item.required and (item.reports or _measures(item.text)):
            groups.setdefault((item.speaker, item.about, template(item.text)), []).append(item)
    rolled = [group for (_, _, words), group in groups.items() if _is_routine(group, words)]
    alone = {item.place for group in rolled for item in group}
    failures = _failures([item for item in items if item.place not in alone]) if rolled else {}
    replaced: dict[tuple[int, int], Candidate | None] = {}
    for group in rolled:
        newest = group[-1]
        failed = failures.pop((newest.speaker, newest.about, _head(newest.text)), [])
        failed = [] if _FAILURE.search(newest.text) else failed
        if not failed and len(newest.concepts) <= _TERSE and all(item.idle for item in group):
            replaced.update({item.place: None for item in group})
            continue
        for item in (*group[:-1], *failed):
            replaced[item.place] = None
            into[item.place] = ("rolled", newest.place)
        replaced[newest.place] = _rolled(group, failed)
    return [kept for item in items if (kept := replaced.get(item.place, item)) is not None]


def _is_routine(group: Sequence[Candidate], words: Sequence[str]) -> bool:
    """Whether statements of one template are reports of the same thing, often enough for one line."""
    often = sum(item.times if item.since != item.day else 1 for item in group)  # said twice at once is said once
    if often < LEAST or len(words) > _MOST_NUMBERS + 1:
        return False
    text = group[-1].text
    if 2 * sum(item.reports for item in group) < len(group) and not (_ENDS.search(text) or _PERIOD.search(text)):
        return False
    if 4 * sum(item.kind == "status" for item in group) >= 3 * len(group):
        return True
    columns = zip(*(numbers(item.text) for item in group), strict=True)
    return _measures(text, [len(set(column)) > 1 for column in columns])


def is_of_period(text: str) -> bool:
    """Whether a statement gives the figure of a period named relative to its day: today, last week."""
    return _PERIOD.search(text) is not None


def _head(text: str) -> str:
    """Return the subject of a report: `Nightly import` for `Nightly import finished in 40 min`."""
    found = _ENDS.search(text)
    if not found:
        return ""
    head = _NUMBER.split(text[: found.start()].casefold())[0].strip(" :,、，")
    return _LINKS.sub("", head)


def _failures(items: Sequence[Candidate]) -> dict[tuple[str | None, str | None, str], list[Candidate]]:
    """Group reports of failures by speaker, subject and the thing that failed."""
    out: dict[tuple[str | None, str | None, str], list[Candidate]] = {}
    for item in items:
        short = item.reports and not item.must_keep and item.length <= _LONGEST_FAILURE
        if short and _FAILURE.search(item.text) and (head := _head(item.text)):
            out.setdefault((item.speaker, item.about, head), []).append(item)
    return out


def _rolled(group: Sequence[Candidate], failed: Sequence[Candidate]) -> Candidate:
    newest = group[-1]
    columns = list(zip(*(numbers(item.text) for item in group), strict=True))
    found = _NUMBER.finditer(newest.text)
    ranges = iter(
        [_listed(newest.text, one, column) or _span(column) for one, column in zip(found, columns, strict=True)]
    )
    text = _NUMBER.sub(lambda _: next(ranges), newest.text).rstrip(" .")
    ids = tuple(dict.fromkeys(i for item in reversed((*failed, *group)) for i in item.source_ids))
    first = min(item.since for item in group)
    days = _days(first, newest.day) if first != newest.day else ""  # one day is that of the line
    often = sum(item.times for item in failed)
    count = "once" if often == 1 else f"{often} times, last"
    wrong = f"; {count}: {failed[-1].text.rstrip(' .')}" if failed else ""
    last = _last(newest.text, columns)
    return newest._replace(
        text=f"{text} (×{sum(item.times for item in group)}{f', {days}' if days else ''}{last}{wrong})",
        whole="",
        source_ids=ids,
        times=1,  # the count is part of the text
        how="rolled",
        since=first,
        idle=False,
        must_keep=any(item.must_keep for item in group),
        length=newest.length + len(columns) + 4 + sum(item.length for item in failed[-1:]),
        needs=None,
    )


def _last(text: str, columns: Sequence[Sequence[str]]) -> str:
    """Return the newest value of a reading, if exactly one measurement differs and no outcome is reported."""
    found = [one for one, column in zip(_NUMBER.finditer(text), columns, strict=True) if len(set(column)) > 1]
    unit = _UNIT.match(text, found[0].end()) if len(found) == 1 else None
    return f", last {found[0][0]}{unit[0]}" if unit and not _ENDS.search(text) else ""


_MOST_LISTED = 12
_COUNTED = re.compile(r" [^\W\d_]+s\b")


def _listed(text: str, number: re.Match[str], column: Sequence[str]) -> str:
    """Return the numbers of several things one by one, since `Ticket 4711 to 4720 closed` would name others, too.

    Measurements, times, versions, counts (`84 covers`) and many numbers have a range: an empty text is returned.
    """
    ordered = sorted(set(column), key=_size)
    measured = _UNIT.match(text, number.end()) or _COUNTED.match(text, number.end()) or not number[0].isdigit()
    if measured or not 2 < len(ordered) <= _MOST_LISTED or not re.search(r"[^\W\d_] #?\Z", text[: number.start()]):
        return ""
    return ", ".join(ordered)


def _span(column: Sequence[str]) -> str:
    """Return the least and the greatest of some numbers, as they are spelled."""
    ordered = sorted(column, key=lambda number: (_size(number), number))
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def _size(number: str) -> tuple[int, ...]:
    if ":" in number or "/" in number or number.count(".") > 1 or number[0] == "v":
        return tuple(_integer(part) for part in re.split("[:/.]", number.lstrip("v")))
    if "." not in number and not _THOUSANDS.fullmatch(number):
        number = number.replace(",", ".")  # a decimal comma
    whole, _, fraction = number.replace(",", "").partition(".")
    return (_integer(whole), int(fraction.ljust(9, "0")[:9] or 0))


def _integer(digits: str) -> int:
    """Digits as an integer; beyond the length that Python converts, rounded down."""
    power: int = 10 ** max(len(digits) - _MOST_DIGITS, 0)
    return int(digits[:_MOST_DIGITS]) * power


def _days(first: date, last: date) -> str:
    if UNKNOWN_DAY in (first, last):
        return ""
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day} to {spell(last)}"
    if first.year == last.year:
        return f"{first.day} {MONTHS[first.month - 1]} to {spell(last)}"
    return f"{spell(first)} to {spell(last)}"
