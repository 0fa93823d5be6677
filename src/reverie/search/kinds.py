"""Kinds of answers: whether a question asks for a figure, a time or a person, and which passages have one.

A passage with the kind of answer that a question asks for is a little more likely to be right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# "what ... cost" is matched atomically, from the first "what" of a line: else each of many is tried to its end
_FIGURE_ASKED = re.compile(
    r"\bhow (?:much|many|old|long|far|big|tall|heavy|fast|high|often|warm|hot|large|wide|deep)\b"
    r"|(?m:^)(?>.*?\b(?:what|which)\b).*\b(?:costs?|price|number|fee|rate|code|size|dose|amount|salary|wage|rent"
    r"|temperature|budget|combination|pin|paid|percentage|distance|weight)\b"
    r"|\bwie ?(?:viele?|lange|oft|alt|groß|hoch|weit|schwer|teuer)\b|\bkostet\b|\bcombien\b|\bcuánt[oa]s?\b"
    r"|\bquant[oaie]s?\b|\bhoeveel\b|\bhoe (?:lang|oud|vaak|groot|duur)\b|\bile\b|\bсколько\b|\bkaç\b|\bne kadar\b"
    r"|\bhur (?:mycket|många|länge|ofta|gammal)\b|\bhvor (?:meget|mange|længe|lenge|ofte|gammel)\b"
    r"|いくら|いくつ|何[人歳回番個本]|多少|几|幾|얼마|몇|كم|कितन",
    re.IGNORECASE,
)
_TIME_ASKED = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:time|day|date|month|year|week|evening|morning|night)s?\b|\bhow (?:often|long)\b"
    r"|\bwann\b|\bquand\b|\bcuándo\b|\bquando\b|\bwanneer\b|\bkiedy\b|\bкогда\b|\bne zaman\b|\bnär\b"
    r"|\bhvornår\b|\bnår\b|いつ|何[時日曜月]|什么时候|什麼時候|何时|几点|언제|몇 시|متى|कब",
    re.IGNORECASE,
)
_PERSON_ASKED = re.compile(r"\b(?:who|whose|whom)\b|(?m:^)(?>.*?\bwhat\b).*\b(?:called|name)\b", re.IGNORECASE)
"""English only: elsewhere capitals say less about names, or there are none."""
_DIGIT = re.compile(r"\d|[一二三四五六七八九十百千]")
_WORD = re.compile(r"[^\W\d_]+")
_TIMES = frozenset(
    _WORD.findall("""
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays january february march april june july august september october november december week weeks weekly weekend
    weekends month months monthly year years yearly morning mornings evening evenings afternoon afternoons night nights
    noon midday midnight day days daily clock half quarter spring summer autumn winter dusk dawn until every tomorrow
    yesterday today
    montag dienstag mittwoch donnerstag freitag samstag sonntag montags dienstags mittwochs donnerstags freitags
    samstags sonntags januar februar märz mai juni juli oktober dezember woche wochen monat monate jahr jahre uhr abend
    abends morgens mittags nachts täglich
    lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril juin juillet août septembre octobre
    novembre décembre semaine semaines mois soir matin midi
    lunes martes miércoles jueves viernes sábado sábados domingo domingos enero febrero marzo abril mayo junio julio
    agosto septiembre octubre noviembre diciembre semana semanas noche tarde mañana
    """)
)
_TIME_SIGNS = re.compile("[月火水木金土日]曜|星期|周|요일")
_PERSON = re.compile(
    r"(?<=[a-z,:;] )[A-Z][a-z]+|^[A-Z][a-z]+ (?=(?:is|was|has|does|will|takes|wants|did|keeps|looks)\b)"
    r"|\b(?:Mr|Mrs|Ms|Dr|Prof|mum|mom|dad|brother|sister|aunt|uncle)\b"
)


def _has_figure(text: str) -> bool:
    return _DIGIT.search(text) is not None


def _has_time(text: str) -> bool:
    if _DIGIT.search(text) is not None or not _TIMES.isdisjoint(_WORD.findall(text.lower())):
        return True
    return not text.isascii() and _TIME_SIGNS.search(text) is not None


def _has_person(text: str) -> bool:
    return _PERSON.search(text) is not None


_KINDS = ((_FIGURE_ASKED, _has_figure), (_TIME_ASKED, _has_time), (_PERSON_ASKED, _has_person))


def kinds(question: str, texts: Sequence[str]) -> list[int]:
    """For each text, the number of kinds of answers that the question asks for and the text has."""
    wanted = [has for asked, has in _KINDS if asked.search(question)]
    return [sum(has(text) for has in wanted) for text in texts] if wanted else [0] * len(texts)
