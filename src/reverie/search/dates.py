"""Times named in words: "in May 2023", "on 8 May", "yesterday", "vor zwei Wochen", "la semana pasada".

Pure. Days, weeks and months are those of the caller's time zone. Because the writer's time zone is unknown, a period
reaches half a day beyond both ends. A month or day without a year means that month or day of any year.

`periods` finds the times that a question names among its other words. `when` reads a text that is nothing but a time:
it is the only parser of `since` and `until`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from reverie.core.clock import LATEST, from_iso, parse_duration
from reverie.core.errors import Invalid
from reverie.search.languages import fold


def _list(words: str) -> list[str]:
    return words.split()


_MONTHS = _list("january february march april may june july august september october november december")
_OTHER_MONTHS = _list("""
    januar februar marz april mai juni juli august september oktober november dezember
    janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
    janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
    januari februari maart april mei juni juli augustus september oktober november december
    stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik
""")
_SHORT = [*(month[:3] for month in _MONTHS), "sept"]
_MONTH_OF = {fold(name): at % 12 + 1 for at, name in enumerate(_OTHER_MONTHS)}
_MONTH_OF |= {name: at + 1 for at, name in enumerate(_SHORT[:12])} | {"sept": 9}
_MONTH_OF |= {name: at + 1 for at, name in enumerate(_MONTHS)}
_AMBIGUOUS = frozenset(
    ["may", "march", "mar", "dec", "mars", "mart", "mai", "mei", "jan", "mayo", "marco", "ekim", "ocak"]
)
_NAMES = frozenset(["mars", "mart", "jan", "mayo", "marco"])
"""With a capital these are a planet or a person as often as a month."""
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
    "minute": "minute minutes minuten minuto minutos minuti minuut",
    "hour": "hour hours stunde stunden heure heures hora horas ora ore uur uren",
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
_PAST = re.compile(
    rf"\b(?:last|past|letzten?|ultim[oaie]s?|laatste|afgelopen)\s+(\d{{1,3}}|{_NUMBER})\s+({_UNIT})\b"
    rf"|\b(\d{{1,3}}|{_NUMBER})\s+dernier(?:e?s)?\s+({_UNIT})\b"
)
_WEEKDAY_WORDS = _list("""
    monday tuesday wednesday thursday friday saturday sunday
    montag dienstag mittwoch donnerstag freitag samstag sonntag
    lundi mardi mercredi jeudi vendredi samedi dimanche
    lunes martes miercoles jueves viernes sabado domingo
    lunedi martedi mercoledi giovedi venerdi sabato domenica
    maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
    понедельник вторник среда четверг пятница суббота воскресенье
    月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日
    星期一 星期二 星期三 星期四 星期五 星期六 星期日
""")
_WEEKDAY_OF = {fold(name): at % 7 for at, name in enumerate(_WEEKDAY_WORDS)}
_WEEKDAY = "|".join(sorted(_WEEKDAY_OF, key=len, reverse=True))
_PAST_DAY = re.compile(
    rf"(?:\b(?:last|past|letzten?|am letzten|vorige|afgelopen)\s+|上个?|先週の)(?P<day>{_WEEKDAY})"
    rf"|\b(?P<first>{_WEEKDAY})\s+(?:dernier|pasado|passado|scors[oa]|passada)\b"
)
_BARE_DAY = re.compile(rf"(?P<day>{_WEEKDAY})(?P<first>)")
_RELATIVE = {
    ("day", -2): "day before yesterday|vorgestern|avant-hier|anteayer|antes de ayer|l'altro ieri|anteontem|eergisteren"
    "|przedwczoraj|позавчера|evvelsi gun|一昨日|おととい|前天|그저께|أول أمس",
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
_BEFORE_MONTHS = frozenset(
    _list("in of since until by during last this early late mid through to from before after im en de au le el")
)
"""Words after which an ambiguous name is a month."""
_DAY = timedelta(days=1)
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_SHORT_UNITS = frozenset(_UNITS)
_UNITS |= {"day": _DAY, "week": 7 * _DAY, "month": timedelta(days=30.4), "year": timedelta(days=365.25)}
_HALF_DAY_MS = 12 * 3_600_000
_EARLIEST = -62_135_596_800_000  # 0001-01-01T00:00:00Z
_CLOCK_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*")
_FILLERS = frozenset(
    fold(
        """
        since from until till to up on in at the of during as before
        seit ab vom von bis zu zum am im in dem den der die das
        depuis jusqu jusque a au du de le la les l en ces
        desde hasta el los las del este
        dal dalla dall fino al alla il gli nel nella
        ate o os as no na do da
        sinds vanaf tot op het van
        od do dnia w z с до от в на по
        から まで より の に 부터 까지 从 從 自 到 起 以来 之前 以前
        """
    ).split()
)
"""Words around a time that do not change it."""
_UNREADABLE = (
    "This cannot be read as a time. Write a day (2026-11-01), an instant (2026-11-01T09:00:00Z), an age (3d, 12h), "
    "or words such as yesterday, last week, 8 May."
)


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: [start, end) in milliseconds, or a month (and day) of any year."""

    start: int = 0
    end: int = 0
    month: int = 0
    day: int = 0

    @property
    def span(self) -> tuple[int, int] | None:
        """The first instant, and the one after the last; None for a month or day of any year."""
        return None if self.month else (self.start + _HALF_DAY_MS, self.end - _HALF_DAY_MS)

    def shown(self) -> str:
        """The period in words."""
        if self.month:
            return f"{self.day or ''} {_MONTHS[self.month - 1].capitalize()} of any year".strip()
        first = datetime.fromtimestamp(max(self.start + _HALF_DAY_MS, _EARLIEST) / 1000, UTC)
        last = datetime.fromtimestamp((self.end - _HALF_DAY_MS - 1) / 1000, UTC)
        return f"{first:%Y-%m-%d}" if first.date() >= last.date() else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"

    def covers(self, at_ms: int) -> bool:
        """Whether the instant is within the period."""
        if not self.month:
            return self.start <= at_ms < self.end
        dates = _dates_around(at_ms, wide=bool(self.day))
        return any(month == self.month and self.day in (0, day) for month, day in dates)


def periods(query: str, now_ms: int, *, zone: str = "UTC") -> tuple[Period, ...]:
    """The times that `query` names, absolute ones first; empty when it names none. Days are those of the time zone."""
    return tuple(_read(query, now_ms, time_zone(zone))[0])


def named(query: str, now_ms: int, *, zone: str = "UTC") -> tuple[tuple[Period, ...], str]:
    """The times that `query` names, and the query without the words that name them."""
    found, rest = _read(query, now_ms, time_zone(zone))
    if found and len(rest) == len(query):  # the words as they were written
        rest = "".join(" " if kept == " " else own for own, kept in zip(query, rest, strict=True))
    return tuple(found), rest if found else query


def when(text: str, now_ms: int, *, zone: str = "UTC", end: bool = False, pointer: str | None = None) -> int:
    """Milliseconds of the instant that a text names: the only parser of `since` and `until`.

    It reads an RFC 3339 instant (in the time zone `zone` when it names none), a day, month or year, an age ("3d",
    "12h", "P1W") and words ("yesterday", "last week", "vor zwei Wochen", "8 May"). A day or longer period gives its
    beginning, or with `end` its end, so that "until yesterday" includes yesterday. A month or day without a year is the
    last one that has begun. Raises Invalid for anything else.
    """
    here, text = time_zone(zone), text.strip()
    at = _clock_time(text, here, pointer) if _CLOCK_TIME.fullmatch(text) else None
    if at is None:
        at = _from_words(text, now_ms, here, end=end)
    if at is None:
        try:
            at = now_ms - parse_duration(text)
        except Invalid:
            raise Invalid(_UNREADABLE, pointer=pointer) from None
    if not 0 <= at <= LATEST:
        raise Invalid("The time is out of range.", pointer=pointer)
    return at


def _clock_time(text: str, here: tzinfo, pointer: str | None) -> int:
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(_UNREADABLE, pointer=pointer) from None
    return from_iso((stamp if stamp.tzinfo else stamp.replace(tzinfo=here)).isoformat(), pointer=pointer)


def _from_words(text: str, now_ms: int, here: tzinfo, *, end: bool) -> int | None:
    """The instant that words name; None when they name none or several, or say anything else."""
    folded = fold(text)
    if folded in ("now", "jetzt", "maintenant", "ahora", "adesso", "agora", "nu", "сейчас", "今", "现在", "지금"):
        return now_ms
    now = datetime.fromtimestamp(now_ms / 1000, here)
    ago, past = _AGO.fullmatch(folded), _PAST.search(folded)
    if ago is not None:
        count, unit = _counted(ago)
        if unit not in _SHORT_UNITS:
            day = _back(now.replace(hour=0, minute=0, second=0, microsecond=0), unit, count)
            return _ms(day + _DAY if end else day)
        return now_ms - int(count * _UNITS[unit].total_seconds() * 1000)
    if past is not None and _only_fillers(_without(folded, past)):
        count, unit = _counted(past)
        return now_ms if end else _ms(now - count * _UNITS[unit] if unit in _SHORT_UNITS else _back(now, unit, count))
    found, rest = _read(text, now_ms, here, alone=True)
    if len(found) != 1 or not _only_fillers(rest):
        return None
    (period,) = found
    if period.month:
        dated = [one for back in range(5) for one in _calendar(now.year - back, period.month, period.day, here)]
        begun = [one for one in dated if one.start + _HALF_DAY_MS <= now_ms]
        if not begun:
            return None
        period = begun[0]
    return period.end - _HALF_DAY_MS if end else period.start + _HALF_DAY_MS


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _only_fillers(rest: str) -> bool:
    return all(word in _FILLERS for word in re.findall(r"\w+", rest))


def _without(text: str, match: re.Match[str]) -> str:
    """The text with spaces where the match was."""
    return text[: match.start()] + " " * (match.end() - match.start()) + text[match.end() :]


def _counted(match: re.Match[str]) -> tuple[int, str]:
    """Return the number and the unit of a match of _AGO or _PAST."""
    number, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
    return int(number) if number.isdigit() else _NUMBERS[number], _UNIT_OF[unit]


def _back(moment: datetime, unit: str, count: int) -> datetime:
    """The moment `count` days, weeks, months or years before; the last day in a shorter month."""
    if unit in ("day", "week"):
        return moment - count * _UNITS[unit]
    months = moment.year * 12 + moment.month - 1 - count * (12 if unit == "year" else 1)
    first = moment.replace(year=max(1, months // 12), month=months % 12 + 1, day=1)
    length = ((first + 31 * _DAY).replace(day=1) - first).days
    return first.replace(day=min(moment.day, length))


def _read(query: str, now_ms: int, here: tzinfo, *, alone: bool = False) -> tuple[list[Period], str]:
    """The times a text names, and the text without them. `alone`: the text is a time, so "march" is a month."""
    rest = fold(query)
    original = query if len(query) == len(rest) else ""
    found: list[Period] = []
    for pattern, year, month, day in ((_ISO, 1, 2, 3), (_DOTTED, 3, 2, 1), (_CJK, 1, 2, 3)):
        for match in pattern.finditer(rest):
            found += _calendar(int(match[year] or 0), int(match[month]), int(match[day] or 0), here)
            rest = _without(rest, match)
    for match in _NAMED.finditer(rest):
        if alone or _is_month(rest, match, original):
            day_of = int(match["before"] or match["after"] or 0)
            found += _calendar(int(match["year"] or 0), _MONTH_OF[match["month"]], day_of, here)
            rest = _without(rest, match)
    for match in _YEAR.finditer(rest):
        found += _calendar(int(match[0]), 0, 0, here)
        rest = _without(rest, match)
    with suppress(ValueError, OverflowError):  # said at an end of the calendar, about a time beyond it
        rest = _read_relative(rest, found, datetime.fromtimestamp(now_ms / 1000, here), alone=alone)
    return found, rest


def _read_relative(rest: str, found: list[Period], now: datetime, *, alone: bool) -> str:
    """Add the times that are named relative to an instant to those found; returns the text without them."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _AGO.finditer(rest):
        count, unit = _counted(match)
        step, half_day = _UNITS[unit], timedelta() if unit in _SHORT_UNITS else _DAY / 2
        centre = (now if unit in _SHORT_UNITS else midnight) - min(count, 200) * step + half_day
        found.append(_between(centre - step / 2, centre + step / 2))
        rest = _without(rest, match)
    for match in _PAST.finditer(rest):
        count, unit = _counted(match)
        found.append(_between(now - min(count, 200) * _UNITS[unit], now))
        rest = _without(rest, match)
    days = _PAST_DAY if not alone or _PAST_DAY.search(rest) else _BARE_DAY
    for match in days.finditer(rest):
        if _whole(rest, match):
            weekday = _WEEKDAY_OF[match["day"] or match["first"]]
            start = midnight - ((midnight.weekday() - weekday - 1) % 7 + 1) * _DAY
            found.append(_between(start, start + _DAY))
            rest = _without(rest, match)
    for unit, shift, words in _RELATIVES:
        for match in words.finditer(rest):
            if _whole(rest, match):
                found.append(_relative(unit, shift, midnight))
                rest = _without(rest, match)
                break
    return rest


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


def _named_in(text: str, at_ms: int) -> tuple[Period, ...]:
    key = hash((text, at_ms))
    found = _named.get(key)
    if found is None:
        if len(_named) >= _REMEMBERED:
            _named.clear()
        found = _named[key] = periods(text, at_ms)
    return found


_REMEMBERED = 4096
_named: dict[int, tuple[Period, ...]] = {}
"""Times that texts name, by the hash of text and instant: the text itself must not outlive its entry here."""


def _meet(one: Period, other: Period) -> bool:
    if one.month and other.month:
        return one.month == other.month and (not one.day or not other.day or one.day == other.day)
    if one.month or other.month:
        yearless, dated = (one, other) if one.month else (other, one)
        return dated.end - dated.start < 40 * 86_400_000 and yearless.covers((dated.start + dated.end) // 2)
    return one.start < other.end - 2 * _HALF_DAY_MS and other.start < one.end - 2 * _HALF_DAY_MS


def _whole(text: str, match: re.Match[str]) -> bool:
    """Whether a match is a whole word; always true in scripts without spaces."""
    if match[0][0] >= "\u2e80":
        return True
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return not (_WORDLIKE.match(before) or _WORDLIKE.match(after))


def _is_month(text: str, match: re.Match[str], original: str) -> bool:
    """Whether a name is a month. Those that are words too, such as "may", need a number, a capital or a preposition."""
    name = match["month"]
    if match["before"] or match["after"] or match["year"] or name not in _AMBIGUOUS:
        return True
    at = match.start("month")
    capital = bool(original) and original[at].isupper() and at > 0 and name not in _NAMES
    return capital or _word_before(text, at) in _BEFORE_MONTHS


def _word_before(text: str, at: int) -> str:
    """The word that ends before a place of the text, with at least one other character between; empty if none does."""
    end = at
    while end and not _is_in_word(text[end - 1]):
        end -= 1
    start = end
    while start and end < at and _is_in_word(text[start - 1]):
        start -= 1
    return text[start:end]


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


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
    return Period(_ms(start) - _HALF_DAY_MS, _ms(end) + _HALF_DAY_MS)


@lru_cache(maxsize=4096)
def _dates_around(at_ms: int, *, wide: bool) -> tuple[tuple[int, int], ...]:
    """(month, day) of the instant; if `wide`, also of half a day before and after it."""
    shifts = (-_HALF_DAY_MS, 0, _HALF_DAY_MS) if wide else (0,)
    try:
        moments = [datetime.fromtimestamp((at_ms + shift) / 1000, UTC) for shift in shifts]
    except (ValueError, OverflowError, OSError):
        return ()
    return tuple((moment.month, moment.day) for moment in moments)
