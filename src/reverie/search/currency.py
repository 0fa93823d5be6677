"""Currency: among passages about the same matter the newest comes first, and the older ones say so.

Two of the best passages may be about the same matter when the same author wrote both, neither is about someone else,
and they share words. Outside a conversation the authors may differ, unless one of them speaks of himself. The newer one
must say that something changed ("no longer", "instead", "moved to"), or have every word of the question that the older
one has. Then seven things are added up: how surely the newer one speaks of a change, whether the older one is the
statement with which it shares most words, how near the better of the two is to the first place, whether the newer one
has the kind of thing that is asked for, how much of the question both say, how close the two are in meaning, and
whether no other newer one is closer to the older one. Where closeness is not known (another embedder, a script that the
vectors do not know) it is six things that words alone tell. A word that many of the best have counts less: that two
notes name the same person makes them no statements about the same matter. The weights are those that
`tools/fit_currency.py` prints. In a conversation closeness says little, since turns that follow each other are about
the same thing: there too words alone tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain, combinations
from math import fsum, log
from operator import mul
from typing import Protocol

from reverie.core.subject import fold
from reverie.search.analysis import Word, terms
from reverie.search.languages import ENGLISH, guess
from reverie.search.wording import Wording

COMPARED = 10
"""So many of the best are compared with each other."""
WEIGHTS = {"changes": 1.4, "partner": 2.2, "place": 1.4, "kind": 0.6, "says": 2.7, "close": 2.9, "closest": 1.6}
BY_WORDS = {"changes": 1.9, "shared": 3.4, "partner": 2.4, "asked": 2.1, "place": 1.9, "kind": 0.3}
"""The same where the closeness of passages is not known or says little."""
ENOUGH, ENOUGH_BY_WORDS = 8.8, 7.8
"""The sums from which a newer passage overtakes."""
_CLOSE, _CLOSE_IN_DREAM = 1 / 5, 1 / 2
"""The share of an older passage's score that a newer one needs, so that no clearly better answer is buried. The lines
of one dream need more: a dream has ordered its statements already."""
_SHORT = 300
"""Characters up to which a passage is a statement; in a longer one something or other always changes."""
LONGEST = 480
"""Characters up to which passages are compared: one long answer does not overtake another."""
_FIRST = 1e-6
_ANY = 0.5
"""Fit of a passage to a question that asks for no kind of thing in particular."""
_TELLS = (0.0, *[log((COMPARED + 1) / count) for count in range(1, COMPARED + 1)])
"""Weight of a shared term by the number of the compared passages that have it."""
_OWN = Wording(r"\b(?:i|my|me|mine|i'm|i've|i'll|ich|mein\w*|mich|mir)\b", ignore_case=True)
"""Words with which authors speak of themselves."""

_LABEL = re.compile(r"([^\W\d_][\w .'-]{0,30}): ")
"""The author of a line."""

_ENGLISH = Wording(
    r"\b(?:now|nowadays|these days|no longer|any ?more|no more|from now on|instead"
    r"|rather than|as of|in (?:its|their|his|her|my|our) place|used to|formerly|until further notice|correction"
    r"|relocated|move[sd]|switche[sd]|changed|swapped|migrated|transferred|handed"
    r"|t(?:ake[sn]?|ook) over|quit|dropped|g(?:ave|iven) up|cancell?ed|called off|abandoned|discontinued"
    r"|shut down|retired|resigned|gone|went bust|goodbye|promoted|raised|increased|lowered|reduced"
    r"|cut to|down to|(?:went|goes) (?:up|down)|put (?:me|him|her|us) on|extended|shortened|postponed"
    r"|pushed (?:back|forward)|brought forward|rescheduled|decided (?:against|for|on)|settled on"
    r"|put off|on hold|delayed|shifted|slipped|deferred|is over|are over|done with|expired|r[ua]n out|ended up"
    r"|(?:broke|broken|split) up|died|scrap(?:ped)?|got rid|axed|repaired|recovered|healed|(?:up|down)graded"
    r"|step(?:s|ped) down|st(?:ands|ood) down|on (?:\w+ )?leave|doubled|halved|rose to|fell to|in the end|for good"
    r"|turn(?:s|ed) out|is off|are off|is out|are out|same (?:day|time|hour|place|room|price|address)"
    r"|as (?:ever|before)|made up (?:his|her|my|our|their) minds?|after all|reversed|cure[sd]|back to"
    r"|upped|bumped|renamed|superseded|overruled|revised|amended|ditched|paid (?:\w+ )?back|goes to \d\w*"
    r"|(?:ha(?:s|ve|d) to|needs? to|must|will|going to|wants? to|can(?:no|')t) (?:postpone|cancel|delay|reschedule|move"
    r"|switch|change|swap|leave|quit|stop|drop|give up|hand over|step down|resign|retire)"
    r"|(?:up|down) from|with (?:immediate )?effect|effective (?:from|immediately)"
    r"|from (?:today|tomorrow|next|this) ?\w*|(?:from|starting|beginning)(?: on| in)?(?: \d{1,2}(?:st|nd|rd|th)?)?"
    r" (?:january|february|march|april|may|june|july|august|september|october|november|december)(?: on)?)\b",
)
"""In lower case: ignoring case takes several times as long."""
_ENGLISH_AMBIGUOUS = Wording(
    r"\b(?:(?-i:[Nn]ew [a-z0-9])\w*|since|moving|changes|replace[sd]|stopped|closed|left|sold|up to|finished|ended"
    r"|passed|again|back on)\b"
    r"|(?:,|\band|\bbut) not (?:the|on|at|in|by|to|from|for|an?|until|before|after) \w+",
    ignore_case=True,
)
"""Words that say so in one sentence of three, and a contrast: "by the tenth, not the fifth"."""
_OTHERS = Wording(
    r"\b(?:jetzt|nun|nicht mehr|kein\w* mehr|statt|stattdessen|neue?[rsn]?|hört auf|übernimmt|selbe[rn]?"
    r"|gleiche[rn]? \w+|umgezogen|zieht um|verschoben|verlegt"
    r"|geändert|gewechselt|wechselt|aufgehört|ab sofort|künftig|inzwischen|mittlerweile|ersetzt|gekündigt|abgesagt"
    r"|erhöht|gesenkt|doch nicht|ab (?:heute|morgen|nächste[rmn]?|diese[rmn]?|dem \d+|\d+\.)|erst (?:am|um|ab)"
    r"|maintenant|désormais|dorénavant|n(?:e |').{1,20} plus|nouveaux?|nouvelles?"
    r"|même (?:heure|jour|endroit)|déménagé|changé|remplacé|arrêté|annulé"
    r"|reporté|déplacé|augmenté|baissé|au lieu|plutôt|à partir d(?:e|u|')|depuis (?:ce|cette|aujourd'hui)|finalement"
    r"|modifié|reprogrammé|relevé"
    r"|ahora|ya no|nuev[oa]s?|mism[oa] (?:hora|día|sitio|lugar)|quitado"
    r"|mudado|mudó|cambi(?:ado|ó)|pas(?:ado|ó) a|en lugar|en vez|dejó|dejado|cancelad[oa]"
    r"|aplazad[oa]|subi(?:do|ó)|bajado|reemplazad[oa]|a partir del?|desde (?:hoy|este|esta)|se encarga|al final"
    r"|modificad[oa]"
    r"|adesso|ora|stess[oa] (?:ora|giorno|posto)"
    r"|non (?:.{1,20} )?più|spostat[oa]|cambiat[oa]|trasferit[oa]|invece|sostituit[oa]|annullat[oa]"
    r"|aumentat[oa]|smesso|d'ora in poi|nuov[oa]|alzat[oa]|abbassat[oa]|da (?:oggi|domani|quest[oa])|alla fine"
    r"|rinviat[oa]"
    r"|agora|já não|mesm[oa] (?:hora|dia|sítio|lugar)|desisti(?:u|ram)"
    r"|mudou|mudaram|nov[oa]|passou|deixou|em vez|trocou|substituíd[oa]|cancelad[oa]|adiad[oa]|aumentou"
    r"|a partir d[eao]|desde (?:hoje|este|esta)|afinal|alterad[oa]"
    r"|nu|niet meer|zelfde|stopt|verzet|neemt .{1,20} over"
    r"|geen .{1,20} meer|nieuwe?|voortaan|verhuisd|verplaatst|gewijzigd|gestopt|in plaats|vervangen"
    r"|vanaf (?:vandaag|morgen|nu|volgende|deze|\d+)|toch niet|verhoogd|verlaagd"
    r"|teraz|już nie|nie .{1,20} już|now[yae]|zamiast|przeniesion\w+|przeprowadzi\w+|zmieni\w+|od teraz"
    r"|od (?:dziś|dzisiaj|jutra|tego)|przestał\w*|podniesion\w+|jednak"
    r"|теперь|больше не|уже не|вместо|нов(?:ый|ая|ое|ые)|переехал[аи]?|переведен\w*|перенес\w+|изменил\w+|сменил\w+"
    r"|отмен(?:ен|ил)\w*|перестал[аи]?|отныне|перевели|перенесли|с (?:сегодня|завтра|этой|этого)|подня(?:ли|лась|лся)"
    r"|передумал[аи]?"
    r"|artık|şimdi|yeni|yerine|taşındı\w*|değişti\w*|bundan sonra|bıraktı\w*|iptal|ertelendi|itibar\w+"
    r"|(?:bugün|yarın)dan|vazgeçti\w*"
    r"|flyttad?|flyttat|inte längre|numera|i stället|istället|nya?|ikke længere|nyt?|i stedet|fremover)\b"
    r"|改|变更|变成|變|換|换|调整|不再|取消|涨|変わ|変更|移転|引っ越|やめ|今は|これから|바뀌|바뀐|이제|변경|옮겼|그만"
    r"|الآن|أصبح|صار|غيّر|انتقل|تغير|بدلا|لم يعد|لم تعد|अब|बदल|की जगह",
    ignore_case=True,
)
"""Words that say that something is no longer as it was; `_ENGLISH` in English texts, both in others."""
_CHANGE_TERMS = frozenset(
    terms(
        "now new longer anymore more instead moved switched changed stopped dropped left replaced gone used put taken"
        " made went back up down until further decided"
    )
)
"""Terms that two passages about different matters may share."""


Closeness = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""The cosine of each of some texts with each of them."""


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
    @property
    def alike(self) -> float: ...


def overtake(
    asked: Sequence[Word],
    candidates: Sequence[Dated],
    scores: Sequence[float],
    order: Sequence[int],
    *,
    fits: Mapping[int, float] | None = None,
    spoken: bool = False,
    closeness: Closeness | None = None,
) -> tuple[dict[int, float], dict[int, int]]:
    """Return the gain of newer candidates over older ones about the same matter, and the place of the newest for each
    older one.

    `order` has the places of the candidates, best first; the older ones are in the order of time. `fits`: how well each
    has the kind of thing that is asked for, 0 to 1. `spoken`: they are turns of a conversation. `closeness` compares
    their meaning, if it is known.
    """
    closeness = None if spoken else closeness
    now = {at: scores[at] for at in order[:COMPARED]}
    older: dict[int, int] = {}
    least = ENOUGH if closeness else ENOUGH_BY_WORDS
    for old, new, features in pairs(
        asked, candidates, scores, order, fits=fits, spoken=spoken, closeness=closeness, least=least
    ):
        if weighed(features) > least:
            now[new] = max(now[new], now[old] + _FIRST)
            older[old] = new
    return {at: round(gained - scores[at], 6) for at, gained in now.items() if gained > scores[at]}, older


def weighed(features: Mapping[str, float]) -> float:
    """The sum that says whether the newer one of a pair overtakes."""
    weights = WEIGHTS if "close" in features else BY_WORDS
    return _weighed(weights, [features[name] for name in weights])


def _weighed(weights: Mapping[str, float], values: Sequence[float]) -> float:
    """The sum of the features of a pair, given in the order of the weights."""
    found: float = sum(map(mul, weights.values(), values))
    return found


def pairs(
    asked: Sequence[Word],
    candidates: Sequence[Dated],
    scores: Sequence[float],
    order: Sequence[int],
    *,
    fits: Mapping[int, float] | None = None,
    spoken: bool = False,
    closeness: Closeness | None = None,
    least: float = 0.0,
) -> Iterator[tuple[int, int, dict[str, float]]]:
    """(older, newer, features) of pairs of the best, in the order of time, that may be about the same matter.

    Pairs whose sum cannot be above `least` are left out, and so are those whose older one is clearly better. What costs
    more is read for those that are left: first whether something changed, then how close they are.
    """
    places = {at: place for place, at in enumerate(order[:COMPARED]) if len(candidates[at].content) <= LONGEST}
    best = sorted(places, key=lambda at: (candidates[at].created_at, candidates[at].position, candidates[at].number))
    said = {at: _Said(candidates[at].content) for at in best}
    weights = WEIGHTS if closeness else BY_WORDS
    likely: list[tuple[int, int, list[float]]] = []
    for old, new in combinations(best, 2):
        one, other = candidates[old], candidates[new]
        if scores[new] < scores[old] * (_CLOSE_IN_DREAM if one.position == other.position else _CLOSE):
            continue  # clearly worse
        place = 1 / (1 + min(places[old], places[new]))
        kind = fits.get(new, _ANY) if fits else _ANY
        most = [1.0, place, kind, min(one.alike, other.alike), 1.0, 1.0] if closeness else [1.0, 1.0, 1.0, place, kind]
        values = [1.0, *most]
        if _weighed(weights, values) > least:
            values[0] = said[new].changes
            if values[0] == 1.0 or _weighed(weights, values) > least:
                likely.append((old, new, values))
    if not likely:
        return
    compared = _Compared(asked, candidates, said, spoken)
    likely = [pair for pair in likely if compared.differs(*pair[:2])]
    for old, new, values in likely:
        if closeness:
            values[1] = compared.partner(old, new)
        else:
            values[1:4] = compared.shared(old, new), compared.partner(old, new), compared.asked(old, new)
    likely = [pair for pair in likely if _weighed(weights, pair[2]) > least and compared.answers(*pair[:2])]
    if closeness and likely:
        near = _closest({old for old, _, _ in likely}, compared.common, candidates, closeness)
        for old, new, values in likely:
            values[-2:] = near[old, new]
    for old, new, values in likely:
        if _weighed(weights, values) > least:
            yield old, new, dict(zip(weights, values, strict=True))


def _closest(
    olds: Set[int], common: Iterable[tuple[int, int]], candidates: Sequence[Dated], closeness: Closeness
) -> dict[tuple[int, int], tuple[float, float]]:
    """For each pair with one of these older passages its cosine, and that as a share of the older one's highest."""
    wanted = [(old, new) for old, new in common if old in olds]
    row = {at: place for place, at in enumerate(dict.fromkeys(chain.from_iterable(wanted)))}
    table = closeness([candidates[at].content for at in row])
    cosines = {(old, new): max(0.0, table[row[old]][row[new]]) for old, new in wanted}
    most = dict.fromkeys(olds, _FIRST)
    for (old, _), cosine in cosines.items():
        most[old] = max(most[old], cosine)
    return {pair: (cosine, cosine / most[pair[0]]) for pair, cosine in cosines.items()}


class _Said:
    """A passage: its terms, whether something changed, and whether its author speaks of himself."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its terms."""
        return frozenset(terms(self.text))

    @cached_property
    def changes(self) -> float:
        """Certainty that it says that something changed, from 0 to 1."""
        return _change(self.text) if len(self.text) <= _SHORT else 0.0

    @cached_property
    def own(self) -> bool:
        """Whether its author speaks of himself."""
        return _OWN.is_in(self.text)


class _Compared:
    """The best passages, oldest first, compared by the words that they share.

    `common`: pairs (older, newer) that share words and of which the newer one may overtake.
    """

    def __init__(
        self, asked: Sequence[Word], candidates: Sequence[Dated], said: Mapping[int, _Said], spoken: bool
    ) -> None:
        self._question = [word for word in asked if word.terms[0][0] not in _CHANGE_TERMS]
        self._said = said
        often = Counter(chain.from_iterable([one.terms for one in said.values()]))
        self._tells = {term: _TELLS[count] for term, count in often.items() if term not in _CHANGE_TERMS}
        several = {term for term, count in often.items() if count > 1 and term in self._tells}
        self._several = {at: one.terms & several for at, one in said.items()}
        self.common = {
            (old, new): None
            for old, new in combinations(said, 2)
            if not self._several[old].isdisjoint(self._several[new])
            and _may_overtake(candidates[new], candidates[old], said[new], said[old], spoken)
        }
        self._values: dict[tuple[int, int], float] = {}
        self._most: dict[int, float] = {}
        self._asked: dict[int, Mapping[int, float]] = {}

    def differs(self, old: int, new: int) -> bool:
        """Whether the newer one may overtake, shares words with the older one and does not say the same again."""
        return (old, new) in self.common and self._said[old].terms != self._said[new].terms

    def partner(self, old: int, new: int) -> float:
        """Weight of the words that they share, compared with those that the newer one shares with any older one."""
        if new not in self._most:
            self._most[new] = max([self._value(before, after) for before, after in self.common if after == new])
        return self._value(old, new) / self._most[new]

    def shared(self, old: int, new: int) -> float:
        """Weight of the words that they share, as a share of all words of the shorter one."""
        whole = [fsum([self._tells.get(term, 0.0) for term in self._said[at].terms]) for at in (old, new)]
        return self._value(old, new) / min(whole)

    def asked(self, old: int, new: int) -> float:
        """The share of the question that both have, from 0 to 1."""
        whole = fsum([word.weight for word in self._question])
        shares = [
            fsum([self._question[place].weight * exact for place, exact in self._words_asked(at).items()])
            / (whole or 1.0)
            for at in (old, new)
        ]
        return min(shares)

    def answers(self, old: int, new: int) -> bool:
        """Whether the newer one speaks of a change, or has every word of the question that the older one has, of which
        there is one at least, as exactly."""
        if self._said[new].changes:
            return True
        before, after = self._words_asked(old), self._words_asked(new)
        return bool(before) and all(after.get(word, 0.0) >= exact for word, exact in before.items())

    def _value(self, old: int, new: int) -> float:
        if (old, new) not in self._values:
            both = self._several[old] & self._several[new]
            self._values[old, new] = fsum([self._tells[term] for term in both])
        return self._values[old, new]

    def _words_asked(self, at: int) -> Mapping[int, float]:
        """The words of the question that a passage has, by their place, and how exactly."""
        if at not in self._asked:
            own = self._said[at].terms
            exact = [
                max([weight for term, weight in word.terms if term in own], default=0.0) for word in self._question
            ]
            self._asked[at] = {place: weight for place, weight in enumerate(exact) if weight}
        return self._asked[at]


def _change(text: str) -> float:
    """Certainty that a text says that something changed: 1, 0.5 for a word that often means something else, or 0."""
    if _ENGLISH.is_in(text.lower()):
        return 1.0
    if _OTHERS.is_in(text) and not (text.isascii() and guess(text) == (ENGLISH, True)):
        return 1.0
    return 0.5 if _ENGLISH_AMBIGUOUS.is_in(text) else 0.0


def _named(line: str) -> str | None:
    """The name in front of a line of a dream."""
    named = _LABEL.match(line)
    return named[1] if named else None


def _may_overtake(new: Dated, old: Dated, said: _Said, before: _Said, spoken: bool) -> bool:
    """Whether both are by the same author or in a log, and neither is about someone else.

    The later of two lines of a dream must say that something changed; a line begins with the name of its author.
    """
    author, other = new.speaker, old.speaker
    if new.position == old.position:
        if not said.changes:
            return False
        author, other = _named(new.content), _named(old.content)
    if author != other and (spoken or said.own or before.own):
        return False
    return not (new.subject and old.subject) or fold(new.subject) == fold(old.subject)
