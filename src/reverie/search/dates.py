"""Times named in words: "in May 2023", "on 8 May", "yesterday", "vor zwei Wochen", "la semana pasada".

Pure. Days, weeks and months are those of the caller's time zone. A day reaches half a day beyond its ends where the
writer's time zone is unknown. A month or day without a year means that month or day of any year.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from reverie.core.errors import Invalid
from reverie.search.languages import fold

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_OTHER_MONTHS = [
    "januar",
    "februar",
    "marz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
    "janvier",
    "fevrier",
    "mars",
    "avril",
    "mai",
    "juin",
    "juillet",
    "aout",
    "septembre",
    "octobre",
    "novembre",
    "decembre",
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
    "gennaio",
    "febbraio",
    "marzo",
    "aprile",
    "maggio",
    "giugno",
    "luglio",
    "agosto",
    "settembre",
    "ottobre",
    "novembre",
    "dicembre",
    "janeiro",
    "fevereiro",
    "marco",
    "abril",
    "maio",
    "junho",
    "julho",
    "agosto",
    "setembro",
    "outubro",
    "novembro",
    "dezembro",
    "januari",
    "februari",
    "maart",
    "april",
    "mei",
    "juni",
    "juli",
    "augustus",
    "september",
    "oktober",
    "november",
    "december",
    "stycznia",
    "lutego",
    "marca",
    "kwietnia",
    "maja",
    "czerwca",
    "lipca",
    "sierpnia",
    "wrzesnia",
    "pazdziernika",
    "listopada",
    "grudnia",
    "января",
    "февраля",
    "марта",
    "апреля",
    "мая",
    "июня",
    "июля",
    "августа",
    "сентября",
    "октября",
    "ноября",
    "декабря",
    "ocak",
    "subat",
    "mart",
    "nisan",
    "mayis",
    "haziran",
    "temmuz",
    "agustos",
    "eylul",
    "ekim",
    "kasim",
    "aralik",
]
_SHORT = [*(month[:3] for month in _MONTHS), "sept"]
_MONTH_OF = {fold(name): at % 12 + 1 for at, name in enumerate(_OTHER_MONTHS)}
_MONTH_OF |= {name: at + 1 for at, name in enumerate(_SHORT[:12])} | {"sept": 9}
_MONTH_OF |= {name: at + 1 for at, name in enumerate(_MONTHS)}
_AMBIGUOUS = frozenset(
    ["may", "march", "mar", "dec", "mars", "mart", "mai", "mei", "jan", "mayo", "marco", "ekim", "ocak"]
)
_NUMBERS = {
    word: n
    for n, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
}
_NUMBERS |= {"a": 1, "an": 1, "few": 3, "couple": 2, "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4}
_NUMBERS |= {"un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "una": 1, "dos": 2, "tres": 3, "due": 2, "tre": 3}
_NUMBERS |= {"um": 1, "uma": 1, "dois": 2, "duas": 2, "een": 1, "twee": 2, "drie": 3}
_NUMBER = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_NAME = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_DOTTED = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}))?(?!\d)")
_NAMED = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th|er)?\.?\s+(?:of\s+|de\s+)?)?(?P<month>{_NAME})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!:))?(?:,?\s+(?:of\s+|de\s+)?(?P<year>(?:19|20)\d\d)\b)?"
)
_CJK = re.compile(r"(?:(\d{4})\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(?:(\d{1,2})\s?[日일号號])?")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_UNIT_WORDS = {
    "day": "day days tag tage tagen jour jours dia dias giorno giorni dag dagen",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken",
    "month": "month months monat monate monaten mois mes meses mese mesi maand maanden",
    "year": "year years jahr jahre jahren an ans annee ano anos anni jaar jaren",
}
_UNIT_OF = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
_UNIT = "|".join(sorted(_UNIT_OF, key=len, reverse=True))
_AGO = re.compile(
    rf"\b(\d{{1,3}}|{_NUMBER})(?:\s+of)?\s+({_UNIT})\s+(?:ago|geleden|fa|atras)\b"
    rf"|\b(?:vor|il y a|hace|ha)\s+(\d{{1,3}}|{_NUMBER})\s+({_UNIT})\b"
)
_RELATIVE = {
    (
        "day",
        0,
    ): "today|tonight|heute|aujourd'hui|hoy|oggi|hoje|vandaag|dzisiaj|dzis|сегодня|bugun|今日|今天|오늘|اليوم|आज",
    ("day", -1): "yesterday|last night|gestern|hier|ayer|ieri|ontem|gisteren|wczoraj|вчера|dun|昨日|昨天|어제|أمس|امس",
    ("day", 1): "tomorrow|morgen|demain|manana|domani|amanha|jutro|завтра|yarin|明日|明天|내일|غدا",
    ("week", 0): "this week|this weekend|diese woche|dieser woche|cette semaine|esta semana|questa settimana|deze week"
    "|на этой неделе|bu hafta|今週|这周|本周|이번 주",
    ("week", -1): "last week|past week|last weekend|letzte woche|letzter woche|la semaine derniere|semaine derniere"
    "|la semana pasada|semana pasada|la settimana scorsa|scorsa settimana|semana passada|vorige week|afgelopen week"
    "|w zeszlym tygodniu|на прошлой неделе|gecen hafta|先週|上周|지난주",
    ("week", 1): "next week|nachste woche|nachster woche|semaine prochaine|proxima semana|semana que viene"
    "|prossima settimana|volgende week|на следующей неделе|gelecek hafta|来週|下周|다음 주",
    ("month", 0): "this month|diesen monat|diesem monat|ce mois|este mes|questo mese|este mes|deze maand|今月|这个月",
    ("month", -1): "last month|past month|letzten monat|mois dernier|mes pasado|mese scorso|mes passado|vorige maand"
    "|в прошлом месяце|gecen ay|先月|上个月|지난달",
    ("month", 1): "next month|nachsten monat|mois prochain|proximo mes|prossimo mese|volgende maand|来月|下个月",
    ("year", 0): "this year|dieses jahr|diesem jahr|cette annee|este ano|quest'anno|dit jaar|今年|올해",
    ("year", -1): "last year|past year|letztes jahr|letzten jahr|l'annee derniere|annee derniere|ano pasado"
    "|anno scorso|ano passado|vorig jaar|в прошлом году|gecen yil|去年|작년",
}
_RELATIVES = tuple((unit, shift, re.compile(fold(words))) for (unit, shift), words in _RELATIVE.items())
_WORDLIKE = re.compile(r"[^\W\d_]")
_AFTER_WHICH_IT_IS_A_MONTH = re.compile(
    r"\b(?:in|of|since|until|by|during|last|this|early|late|mid|on|through|to|from|before|after|im|en|de|au|le|el)\W+$"
)
_DAY = timedelta(days=1)
_UNITS = {"day": _DAY, "week": 7 * _DAY, "month": timedelta(days=30.4), "year": timedelta(days=365.25)}
_HALF_DAY_MS = 12 * 3_600_000
_AGE = re.compile(r"(\d{1,6})([smhdw])")
_AGE_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: [start, end) in milliseconds, or a month (and day) of any year."""

    start: int = 0
    end: int = 0
    month: int = 0
    day: int = 0

    def shown(self) -> str:
        """In words."""
        if self.month:
            return f"{self.day or ''} {_MONTHS[self.month - 1].capitalize()} of any year".strip()
        first = datetime.fromtimestamp((self.start + _HALF_DAY_MS) / 1000, UTC)
        last = datetime.fromtimestamp((self.end - _HALF_DAY_MS - 1) / 1000, UTC)
        return f"{first:%Y-%m-%d}" if first.date() >= last.date() else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"

    def covers(self, at_ms: int) -> bool:
        """Whether the instant lies in the period."""
        if not self.month:
            return self.start <= at_ms < self.end
        dates = _dates_around(at_ms, wide=bool(self.day))
        return any(month == self.month and self.day in (0, day) for month, day in dates)


def periods(query: str, now_ms: int, *, zone: str = "UTC") -> tuple[Period, ...]:
    """The times `query` names, absolute ones first; empty when it names none. Days are those of the time zone."""
    here = time_zone(zone)
    original, rest = query, fold(query)
    found: list[Period] = []
    for match in _ISO.finditer(rest):
        found += _calendar(int(match[1]), int(match[2]), int(match[3] or 0), here)
    rest = _ISO.sub(" ", rest)
    for match in _DOTTED.finditer(rest):
        found += _calendar(int(match[3] or 0), int(match[2]), int(match[1]), here)
    rest = _DOTTED.sub(" ", rest)
    for match in _CJK.finditer(rest):
        found += _calendar(int(match[1] or 0), int(match[2]), int(match[3] or 0), here)
    rest = _CJK.sub(" ", rest)
    for match in _NAMED.finditer(rest):
        if _is_month(rest, match, original):
            found += _calendar(
                int(match["year"] or 0), _MONTH_OF[match["month"]], int(match["before"] or match["after"] or 0), here
            )
            rest = rest[: match.start()] + " " * (match.end() - match.start()) + rest[match.end() :]
    for match in _YEAR.finditer(rest):
        found += _calendar(int(match[0]), 0, 0, here)
    midnight = datetime.fromtimestamp(now_ms / 1000, here).replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _AGO.finditer(rest):
        number, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
        count = int(number) if number.isdigit() else _NUMBERS[number]
        step = _UNITS[_UNIT_OF[unit]]
        centre = midnight - min(count, 200) * step
        found.append(_between(centre - step / 2 + _DAY / 2, centre + step / 2 + _DAY / 2))
    for unit, shift, words in _RELATIVES:
        if any(_whole(rest, match) for match in words.finditer(rest)):
            found.append(_relative(unit, shift, midnight))
    return tuple(found)


def instant(text: str, now_ms: int, *, zone: str = "UTC", end: bool = False) -> int | None:
    """The instant that words name: "yesterday", "8 May 2023", "last week", "7d" (an age); None when they name none.

    The beginning of a period, or its `end`. A month or day without a year is the last one that has begun.
    """
    if age := _AGE.fullmatch(text.strip()):
        return now_ms - int(age[1]) * _AGE_MS[age[2]]
    named = periods(text, now_ms, zone=zone)
    if not named:
        return None
    period = named[0]
    if period.month:
        here = time_zone(zone)
        year = datetime.fromtimestamp(now_ms / 1000, here).year
        dated = [one for back in range(5) for one in _calendar(year - back, period.month, period.day, here)]
        begun = [one for one in dated if one.start + _HALF_DAY_MS <= now_ms]
        if not begun:
            return None
        period = begun[0]
    return period.end - _HALF_DAY_MS if end else period.start + _HALF_DAY_MS


def time_zone(name: str) -> tzinfo:
    """The time zone of a name such as Europe/Berlin."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise Invalid("The time zone is unknown. Use a name such as Europe/Berlin.", pointer="/zone") from None


def mentions(text: str, at_ms: int, period: Period) -> bool:
    """Whether a text said at an instant names a time within the period, or the same month and day of any year."""
    return any(_meet(named, period) for named in _named_in(text, at_ms))


@lru_cache(maxsize=4096)
def _named_in(text: str, at_ms: int) -> tuple[Period, ...]:
    return periods(text, at_ms)


def _meet(one: Period, other: Period) -> bool:
    if one.month and other.month:
        return one.month == other.month and (not one.day or not other.day or one.day == other.day)
    if one.month or other.month:
        yearless, dated = (one, other) if one.month else (other, one)
        return dated.end - dated.start < 40 * 86_400_000 and yearless.covers((dated.start + dated.end) // 2)
    return one.start < other.end - 2 * _HALF_DAY_MS and other.start < one.end - 2 * _HALF_DAY_MS


def _whole(text: str, match: re.Match[str]) -> bool:
    """Whether a match in a script with spaces is not inside of a word."""
    if match[0][0] >= "\u2e80":
        return True
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return not (_WORDLIKE.match(before) or _WORDLIKE.match(after))


def _is_month(text: str, match: re.Match[str], original: str) -> bool:
    """Names such as "may" and "march" are words too: they need a number, a capital or a preposition."""
    name = match["month"]
    if match["before"] or match["after"] or match["year"] or name not in _AMBIGUOUS:
        return True
    at = match.start("month")
    capital = len(original) == len(text) and original[at].isupper() and at > 0
    return capital or _AFTER_WHICH_IT_IS_A_MONTH.search(text[:at]) is not None


def _calendar(year: int, month: int, day: int, here: tzinfo) -> list[Period]:
    try:
        if not year:
            datetime(2024, month, day or 1, tzinfo=UTC)
            return [Period(month=month, day=day)]
        start = datetime(year, month or 1, day or 1, tzinfo=here)
        if day:
            end = start + _DAY
        elif month:
            end = (start + 31 * _DAY).replace(day=1)
        else:
            end = start.replace(year=year + 1)
        return [_between(start, end)]
    except (ValueError, OverflowError):
        return []


def _relative(unit: str, shift: int, midnight: datetime) -> Period:
    if unit == "day":
        return _between(midnight + shift * _DAY, midnight + (shift + 1) * _DAY)
    if unit == "week":
        start = midnight - midnight.weekday() * _DAY + shift * 7 * _DAY
        return _between(start, start + 7 * _DAY)
    if unit == "month":
        first = midnight.replace(day=1)
        start = (
            first if not shift else (first - _DAY).replace(day=1) if shift < 0 else (first + 31 * _DAY).replace(day=1)
        )
        return _between(start, (start + 31 * _DAY).replace(day=1))
    start = midnight.replace(month=1, day=1, year=midnight.year + shift)
    return _between(start, start.replace(year=start.year + 1))


def _between(start: datetime, end: datetime) -> Period:
    return Period(int(start.timestamp() * 1000) - _HALF_DAY_MS, int(end.timestamp() * 1000) + _HALF_DAY_MS)


@lru_cache(maxsize=4096)
def _dates_around(at_ms: int, *, wide: bool) -> tuple[tuple[int, int], ...]:
    """(month, day) of the instant; if `wide`, also of half a day before and after it."""
    shifts = (-_HALF_DAY_MS, 0, _HALF_DAY_MS) if wide else (0,)
    try:
        moments = [datetime.fromtimestamp((at_ms + shift) / 1000, UTC) for shift in shifts]
    except (ValueError, OverflowError, OSError):
        return ()
    return tuple((moment.month, moment.day) for moment in moments)
