"""Currency: among passages about the same matter the newest comes first, and the older ones say so.

Two of the best passages are about the same matter when the same author wrote both, neither is about someone else, and
they share words of the question. The newer one then comes first

- when it has the words of the question that the older one has, and is nearly as good; or
- when it says that something changed ("no longer", "instead", "moved to") and repeats words of the older one, such as
  the name of what was replaced.

Words of similar meaning count only where a passage says that something changed: "Canada" is no news about India.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from reverie.core.subject import fold
from reverie.search.analysis import Word, analysed, terms
from reverie.search.languages import ENGLISH

COMPARED = 10
"""So many of the best are compared with each other."""
_NEAR = 0.65
"""A newer passage with this share of an older one's score is near enough to come first."""
_CHANGED, _NAMED = 0.4, 0.15
"""The same for one that says that something changed and repeats words of the older one, or a name in it."""
_SAME, _SAME_SAID, _SAME_CHANGED = 0.25, 0.15, 0.3
"""Words that two passages have in common, as a share of the shorter: to be about the same matter, to be so when the
newer one says that something changed, and to be so when it is no longer near."""
_RARE = 2
"""A word that more than this many of the best have does not identify their topic."""
_SHORT = 300
"""Characters up to which a passage is a statement; in a longer one something or other always changes."""
_LONGEST = 480
"""Characters up to which passages are compared: one long answer does not overtake another."""
_FIRST = 1e-6

_ENGLISH = re.compile(
    r"\b(?:(?-i:[Nn]ew(?= [a-z0-9]))|now|nowadays|these days|no longer|any ?more|no more|from now on|instead"
    r"|rather than|in (?:its|their|his|her|my|our) place|used to|formerly|until further notice|correction"
    r"|relocated|move[sd]|moving|switche[sd]|change[sd]|swapped|replace[sd]|migrated|transferred|handed"
    r"|t(?:ake[sn]?|ook) over|stopped|quit|dropped|g(?:ave|iven) up|cancell?ed|called off|abandoned|discontinued"
    r"|closed|shut down|retired|resigned|left|gone|sold|went bust|goodbye|promoted|raised|increased|lowered|reduced"
    r"|cut to|(?:up|down) to|(?:went|goes) (?:up|down)|put (?:me|him|her|us) on|extended|shortened|postponed"
    r"|pushed (?:back|forward)|brought forward|rescheduled|decided (?:against|for|on)|settled on"
    r"|made up (?:his|her|my|our|their) minds?)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:jetzt|nun|nicht mehr|kein\w* mehr|statt|stattdessen|neue[rsn]?|umgezogen|zieht um|verschoben|verlegt"
    r"|geändert|gewechselt|wechselt|aufgehört|ab sofort|künftig|inzwischen|mittlerweile|ersetzt|gekündigt|abgesagt"
    r"|erhöht|gesenkt"
    r"|maintenant|désormais|dorénavant|n(?:e |').{1,20} plus|nouveau|nouvelle|déménagé|changé|remplacé|arrêté|annulé"
    r"|reporté|déplacé|augmenté|baissé|au lieu|plutôt"
    r"|ahora|ya no|nuev[oa]|mudado|mudó|cambi(?:ado|ó)|pas(?:ado|ó) a|en lugar|en vez|dejó|dejado|cancelad[oa]"
    r"|aplazad[oa]|subi(?:do|ó)|bajado|reemplazad[oa]"
    r"|adesso|ora|non (?:.{1,20} )?più|spostat[oa]|cambiat[oa]|trasferit[oa]|invece|sostituit[oa]|annullat[oa]"
    r"|aumentat[oa]|smesso|d'ora in poi|nuov[oa]"
    r"|agora|já não|mudou|mudaram|nov[oa]|passou|deixou|em vez|trocou|substituíd[oa]|cancelad[oa]|adiad[oa]|aumentou"
    r"|nu|niet meer|geen .{1,20} meer|nieuwe?|voortaan|verhuisd|verplaatst|gewijzigd|gestopt|in plaats|vervangen"
    r"|teraz|już nie|nie .{1,20} już|now[yae]|zamiast|przeniesion\w+|przeprowadzi\w+|zmieni\w+|od teraz|przestał\w*"
    r"|теперь|больше не|уже не|вместо|нов(?:ый|ая|ое|ые)|переехал[аи]?|переведен\w*|перенес\w+|изменил\w+|сменил\w+"
    r"|отменен\w*|перестал[аи]?|отныне"
    r"|artık|şimdi|yeni|yerine|taşındı\w*|değişti\w*|bundan sonra|bıraktı\w*|iptal|ertelendi"
    r"|flyttad?|flyttat|inte längre|numera|i stället|istället|nya?|ikke længere|nyt?|i stedet|fremover)\b"
    r"|改|变更|变成|變|換|换|调整|不再|取消|変わ|変更|移転|引っ越|やめ|今は|これから|바뀌|바뀐|이제|변경|옮겼|그만"
    r"|الآن|أصبح|انتقل|تغير|بدلا|لم يعد|لم تعد|अब|बदल|की जगह",
    re.IGNORECASE,
)
"""Words that say that something is no longer as it was; `_ENGLISH` in English texts, both in others."""
_PLAIN_WORD = re.compile(r"[a-z]+")
_TELLING = frozenset(
    _PLAIN_WORD.findall(
        "new now nowadays days longer anymore more instead rather place used formerly notice correction relocated moved"
        " moves moving switched switches changed changes swapped replaced replaces migrated transferred handed over"
        " stopped quit dropped gave given cancelled canceled called abandoned discontinued closed shut retired resigned"
        " left gone sold went goodbye promoted raised increased lowered reduced cut up down goes put extended shortened"
        " postponed pushed brought rescheduled decided settled made"
    )
)
"""One word of each of `_ENGLISH`: a text without any of them needs no closer look."""
_NAME = re.compile(r"(?<!\w)[^\W\d_a-zß-ÿ]\w+")
_CHANGE_TERMS = frozenset(
    terms(
        "now new longer anymore more instead moved switched changed stopped dropped left replaced gone used put taken"
        " made went back up down until further decided"
    )
)
"""Terms that two passages about different matters may share."""


class Dated(Protocol):
    """The compared features of a candidate."""

    @property
    def position(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def created_at(self) -> int: ...
    @property
    def content(self) -> str: ...
    @property
    def speaker(self) -> str | None: ...
    @property
    def subject(self) -> str | None: ...


def overtake(
    asked: Sequence[Word], candidates: Sequence[Dated], scores: Sequence[float], order: Sequence[int]
) -> tuple[dict[int, float], dict[int, int]]:
    """Return the gain of newer candidates over older ones about the same matter, and the place of the newest for each
    older one.

    `order` has the places of the candidates, best first; the older ones are in the order of time. A clearly better old
    answer is not overtaken.
    """
    asked = [word for word in asked if word.terms[0][0] not in _CHANGE_TERMS]
    best = [at for at in order[:COMPARED] if len(candidates[at].content) <= _LONGEST]
    best.sort(key=lambda at: (candidates[at].created_at, candidates[at].position, candidates[at].number))
    texts = [candidates[at].content for at in best]
    said = {
        at: _Said(text, frozenset(own), asked, guessed)
        for at, text, (own, guessed) in zip(best, texts, analysed(texts), strict=True)
    }
    often = Counter(place for one in said.values() for place in one.asked)
    rare = frozenset(place for place, count in often.items() if count <= _RARE)
    asking = _CHANGE_TERMS.union(term for word in asked for term, _ in word.terms)
    now = {at: scores[at] for at in best}
    older: dict[int, int] = {}
    for at, old in enumerate(best):
        for new in best[at + 1 :]:
            if _later(candidates[new], candidates[old], said[new]) and _same_matter(
                said[old], said[new], scores[new] / (scores[old] or 1.0), asking, rare
            ):
                now[new] = max(now[new], now[old] + _FIRST)
                older[old] = new
    return {at: round(now[at] - scores[at], 6) for at in best if now[at] > scores[at]}, older


class _Said:
    """The terms of a passage, how exactly it has each word of the question, and whether it describes a change."""

    def __init__(self, text: str, own: frozenset[str], asked: Sequence[Word], guessed: tuple[str, bool]) -> None:
        """`own`: its terms; `guessed`: its language, and whether it shows that."""
        self.text = text
        self._guessed = guessed
        self._changes: bool | None = None
        self.terms = own
        self.asked: Mapping[int, float] = {
            place: exact
            for place, word in enumerate(asked)
            if (exact := max([weight for term, weight in word.terms if term in own], default=0.0))
        }

    @property
    def changes(self) -> bool:
        if self._changes is None:
            self._changes = len(self.text) <= _SHORT and changes(self.text, self._guessed)
        return self._changes

    @property
    def names(self) -> frozenset[str]:
        """The terms of words with a capital."""
        return frozenset(terms(" ".join(_NAME.findall(self.text))))


def changes(text: str, guessed: tuple[str, bool]) -> bool:
    """Whether a text says that something changed. `guessed`: its language, and whether it shows that."""
    words = set(_PLAIN_WORD.findall(text.lower()))
    if not words.isdisjoint(_TELLING) and _ENGLISH.search(text) is not None:
        return True
    return guessed != (ENGLISH, True) and _OTHERS.search(text) is not None


def _later(new: Dated, old: Dated, said: _Said) -> bool:
    """Whether one was said after the other, by the same author and not about someone else.

    The lines of a dream are in the order of time; a later one of the same entry counts when it says that something
    changed.
    """
    if new.speaker != old.speaker or (new.subject and old.subject and fold(new.subject) != fold(old.subject)):
        return False
    if new.position == old.position:
        return new.number > old.number and said.changes
    return (new.created_at, new.position) > (old.created_at, old.position)


def _same_matter(old: _Said, new: _Said, near: float, asking: frozenset[str], rare: frozenset[int]) -> bool:
    """`near`: the score of the new one as a share of the old one's. `asking`: the terms of the question. `rare`: the
    words of the question that few of the best have.
    """
    common = old.terms & new.terms
    if not common or old.terms == new.terms:  # about something else, or said again
        return False
    both = old.asked.keys() & new.asked.keys()
    shared = len(common) / min(len(old.terms), len(new.terms))
    besides = common - asking
    linked = bool(both) and (len(both) > 1 or old.asked.keys() == new.asked.keys() or bool(besides))
    if linked and near >= _NEAR and old.asked.keys() <= new.asked.keys():
        exact = all(new.asked[word] >= weight for word, weight in old.asked.items())
        if shared >= _SAME and exact:
            return True
        if shared >= _SAME_SAID and new.changes:
            return True
    if near < _NAMED or not new.changes:
        return False
    if near >= _CHANGED and ((linked and shared >= _SAME_CHANGED) or any(new.asked[word] >= 1 for word in both & rare)):
        return True
    named = any(not term.isdigit() for term in besides & old.names & new.names)
    return named and (bool(both) or near >= _CHANGED)
