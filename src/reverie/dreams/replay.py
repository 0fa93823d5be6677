"""The replay of a dream: the last recorded searches, run before the dream and again after it.

The first answer from before is searched for among the first answers afterwards: as the entry itself, as a line of the
dream that was made from it, or in cold storage. Bounded in number and time; a replay that fails leaves the report
without one and does not affect the dream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, DreamReport, Replay, ReplayAnswer, Replayed
from reverie.memory.hits import Hit
from reverie.memory.search import Search
from reverie.memory.searches import RecordedSearches

MOST = 10
"""Most questions of one replay, newest first."""
FIRST = 3
"""Answers of a search that are compared."""
MOST_SECONDS = 1.0
"""Seconds for the questions before, and again for those after. The question that exceeds them is the last."""


class Replays:
    """Prepares replays."""

    def __init__(self, search: Search, searches: RecordedSearches) -> None:
        self._search = search
        self._searches = searches

    def of(self, actor: Actor, plan: DreamPlan) -> Rehearsal:
        """Prepare the replay of one dream."""
        host = Actor(tenant=actor.tenant, id="host:reverie", door="host")
        texts = plan.most_bytes is None and plan.distiller != "none"
        return Rehearsal(host, plan.ref, self._search, self._searches if texts else None)


class Rehearsal:
    """The questions of one dream and their answers."""

    def __init__(self, actor: Actor, ref: str, search: Search, searches: RecordedSearches | None) -> None:
        self._actor = actor
        self._ref = ref
        self._search = search
        self._searches = searches
        self._before: dict[str, list[Hit]] = {}
        self._asked = 0
        self._seconds = 0.0

    def before(self) -> None:
        """Run the questions before the dream."""
        if self._searches is None:
            return
        try:
            questions = self._searches.last(self._actor.tenant, self._ref, MOST)
            self._asked = len(questions)
            self._before = self._ask(questions)
        except Exception:  # whatever fails here costs no dream
            self._before = {}

    def after(self, report: DreamReport) -> DreamReport:
        """Run the questions again; return the report with the replay."""
        if self._searches is None or not self._before:
            return report
        try:
            found = self._ask(list(self._before))
            own = _kin(report)
            questions = [
                self._deeper(_compared(text, self._before[text], hits, report, own)) for text, hits in found.items()
            ]
            replay = Replay(report.id, questions, self._asked - len(found), int(self._seconds * 1000))
            self._searches.keep(self._actor.tenant, self._ref, replay)
        except Exception:  # the dream is committed: its caller gets the report
            return report
        return msgspec.structs.replace(report, replay=replay)

    def _deeper(self, one: Replayed) -> Replayed:
        """Search cold storage too for a lost answer, which other hits may only have displaced."""
        if one.outcome != "lost":
            return one
        first = one.before[0].id
        hits = self._search.search(self._actor, self._ref, one.question, limit=2 * FIRST, deep="always")
        found = any(hit.entry.id == first and not hit.weak for hit in hits)
        return msgspec.structs.replace(one, outcome="deep") if found else one

    def _ask(self, questions: Sequence[str]) -> dict[str, list[Hit]]:
        begun = time.monotonic()
        found: dict[str, list[Hit]] = {}
        for text in questions:
            hits = self._search.search(self._actor, self._ref, text, limit=FIRST)
            found[text] = [hit for hit in hits if not hit.weak]
            if time.monotonic() - begun > MOST_SECONDS:
                break
        self._seconds += time.monotonic() - begun
        return found


def _kin(report: DreamReport) -> dict[str, frozenset[str]]:
    """Map each source to its duplicates: one line of the dream represents all of them."""
    return {one: frozenset(group) for group in report.collapsed for one in group}


def _compared(
    text: str, before: Sequence[Hit], after: Sequence[Hit], report: DreamReport, kin: Mapping[str, frozenset[str]]
) -> Replayed:
    def words(hit: Hit) -> frozenset[str]:
        ids = hit.sources or (hit.entry.id,)
        return frozenset(ids).union(*(kin.get(one, frozenset()) for one in ids))

    shown = (list(map(_answer, before)), list(map(_answer, after)))
    if not before:
        return Replayed(text, "answered" if after else "unanswered", *shown)
    wanted = words(before[0])
    place = next((at for at, hit in enumerate(after) if words(hit) & wanted), None)
    if place is not None:
        outcome = "cold" if after[place].cold and not before[0].cold else "kept"
        return Replayed(text, outcome, *shown, place=place + 1)
    overtaken = {source.id for source in report.sources if source.fate == "outdated"}
    return Replayed(text, "updated" if wanted & overtaken else "lost", *shown)


def _answer(hit: Hit) -> ReplayAnswer:
    line = hit.entry.content.count("\n", 0, hit.passage.start) if hit.sources else None
    return ReplayAnswer(hit.entry.id, line, hit.cold)
