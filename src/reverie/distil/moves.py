"""Moved appointments in languages other than English.

`Der Zahnarzttermin wurde auf den 21. Januar um 11:00 verschoben` after `Der Zahnarzttermin ist am 14. Januar um 9:30`.
The later statement has a word for moving and a day or a time. The earlier one names everything else that the later one
names, with another day or time. Where the later statement could mean several things, it moves none. Precision before
recall: no other kind of update is detected.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from reverie.core.pause import paced
from reverie.distil.lexicon import FUNCTION, word_set
from reverie.distil.value import days_among
from reverie.search.languages import FUNCTION_WORDS

_MOVED = word_set(
    "verschoben verlegt vorverlegt umgelegt verschiebt verlegen"
    " reporté reportée reportés reportées déplacé déplacée déplacés déplacées avancé avancée décalé décalée repoussé"
    " repoussée"
    " aplazó aplazado aplazada aplaza pospuso pospuesto pospuesta movió movido movida adelantó adelantado adelantada"
    " retrasó retrasado retrasada cambió cambiado cambiada cambia"
    " spostato spostata spostati rinviato rinviata posticipato posticipata anticipato anticipata"
    " adiado adiada adiou remarcado remarcada antecipado antecipada transferido transferida mudou mudado mudada"
    " verplaatst verzet uitgesteld verschoven vervroegd"
    " flyttat flyttad flyttats flyttades flyttet framflyttad udsat rykket utsatt"
    " przełożone przełożony przełożona przełożono przeniesione przeniesiony przeniesiona przeniesiono przesunięte"
    " przesunięty przesunięta przesunięto"
    " přesunuta přesunut přesunuto přeložena přeložen odložena odložen"
    " перенесли перенесён перенесен перенесена перенесено перенесены сдвинули переносится перенесена"
    " ertelendi alındı kaydırıldı siirretty siirtyi siirrettiin siirretään áthelyezték elhalasztották átkerült"
    " μεταφέρθηκε αναβλήθηκε mutat mutată amânat amânată dipindah dipindahkan diundur dimajukan"
    " تأجل تأجلت تأجيل نقل نُقل نُقلت"
)
"""Words for moving an appointment."""
_MOVED_PARTS = re.compile(
    r"変更|延期|繰り上げ|前倒し|繰り下げ|改到|改为|改在|改成|推迟|延后|提前到|改期|推遲|延後|변경|연기|옮겨|미뤄|앞당"
)
"""The same for languages without spaces between words or with many endings."""
_TOPIC = re.compile(
    r"([^\s\d、，。,]{2,20}?)(?:は|が|改到|改为|改在|改成|推迟|延后|提前|延期|推遲|延後|已|被|是|在|定)"
)
"""The topic of a statement in Japanese or Chinese."""
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"(?<!\w)[^\W\d_](?:[^\W_]|['’.-](?=\w))*")
_CLOCK = re.compile(
    r"\b\d{1,2}(?:[:h]|\.(?=\d\d\b))\d{0,2}\b|\b\d{1,2} ?(?:uhr|heures?|horas?|час\w*|시)\b|\d{1,2}[时時点點]"
)
_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}\b|\d{1,2}[月월]|\d{1,2}[日号號일]")
_NUMBER = re.compile(r"\d+")
_PARTICLES = "은는이가을를도로의"
_FEWEST = 4
"""Letters of a word that names an appointment."""
_GRAMMAR = FUNCTION.union(*FUNCTION_WORDS.values()) | word_set(
    "uhr heures hora horas ore hour auf den zum gleiche gleicher gleichem zeit uhrzeit ort même mêmes heure lieu misma"
    " mismo lugar stessa stesso orario mesmo mesma horário zelfde tijd plaats samma tid plats 시간 같은 오전 오후"
    " nächste nächsten kommenden prochain prochaine próximo próxima prossimo prossima volgende została został zostało"
    " zostały foi foram stato stata été wordt byl byla bylo"
)
_NEARBY = 48
"""Earlier statements about the same thing that are compared, newest first."""


class _Dated(NamedTuple):
    """Things that a statement names, with its days and times."""

    things: frozenset[str]
    when: frozenset[str]
    moved: bool


def _read(text: str) -> _Dated | None:
    """Read a statement; None if it has no day or time."""
    low = text.lower()
    words = _WORD.findall(low)
    days = days_among(words)
    if not (days or _CLOCK.search(low) or _DATE.search(low)):
        return None
    when = frozenset(days | set(_NUMBER.findall(low)))
    if _WIDE.search(low):
        topic = _TOPIC.search(low)
        things = frozenset({topic[1]} if topic else ())
        return _Dated(things, when, _MOVED_PARTS.search(low) is not None)
    moved = not _MOVED.isdisjoint(words) or _MOVED_PARTS.search(low) is not None
    things = frozenset(
        _bare(word)
        for word in words
        if word not in days and word not in _GRAMMAR and word not in _MOVED and not _MOVED_PARTS.search(word)
    )
    return _Dated(things, when, moved)


def _bare(word: str) -> str:
    """Return a Korean word without its particle, any other as it is."""
    return word[:-1] if len(word) > 1 and word[-1] in _PARTICLES and "가" <= word[0] <= "힣" else word


def _may_move(text: str) -> bool:
    low = text.lower()
    return not _MOVED.isdisjoint(_WORD.findall(low)) or _MOVED_PARTS.search(low) is not None


def moves(said: Sequence[tuple[str, str, Hashable]]) -> Iterator[tuple[str, str]]:
    """Yield the ids of a statement and of the one that it moves. `said`: id, text and group, in order."""
    read = cache(_read)  # no text outlives the call
    earlier: dict[Hashable, list[tuple[str, str, str]]] = {}
    for number, text, group in paced(said):
        own = earlier.setdefault(group, [])
        past = len(own)
        own.append((number, text, text.lower()))
        if not _may_move(text):
            continue
        dated = read(text)
        longest = max(dated.things, key=lambda thing: (len(thing), thing), default="") if dated else ""
        if dated is None or len(longest) < (_FEWEST if longest.isascii() else 2):
            continue
        named = (own[at] for at in range(past - 1, -1, -1) if longest in own[at][2])
        before = [(other, one) for other, words, _ in islice(named, _NEARBY) if (one := read(words))]
        before = [(other, one) for other, one in before if dated.things <= one.things and one.when != dated.when]
        if before and all(before[0][1].things >= one.things or one.moved for _, one in before):
            yield number, before[0][0]


def adds(older: str, newer: str) -> bool:
    """Whether the older statement says more than the time, with whom or where, if the newer one moves it."""
    before, after = (_read(older), _read(newer)) if _may_move(newer) else (None, None)
    if before is None or after is None or not after.moved or not after.things <= before.things:
        return False
    if _WIDE.search(older):
        return len(older) > len(newer) or len(_NUMBER.findall(older)) > len(_NUMBER.findall(newer))
    return before.things != after.things
