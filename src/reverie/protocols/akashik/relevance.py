"""Relevance of a unit to an agent: factors from 0 to 1, weighted into one score, with a human-readable reason.

Meaning and words come from the same index and vectors as every search; recency, type, confidence, role, task and
relations are the Field's own. Nothing here depends on the order units come in; equal scores go newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from reverie.core.entry import Entry
from reverie.core.ports import Embedder
from reverie.core.query import Vector
from reverie.memory.entries import searchable_text
from reverie.memory.indexing import model_of
from reverie.protocols.akashik.units import score_of, task_of, type_of
from reverie.search.analysis import query_terms, terms
from reverie.search.text import comparable
from reverie.store.contract import ReadTx

WEIGHTS = {"recency": 0.3, "type": 0.25, "confidence": 0.15, "role": 0.1, "task": 0.3, "relation": 0.1, "layer": 0.1}
MEANING = 0.65
"""The share of meaning and words when there is something to compare with; the rest goes to the other factors."""
TYPE_WEIGHTS = {
    "human_directive": 1.0,
    "decision": 0.95,
    "contradiction": 0.95,
    "constraint": 0.9,
    "correction": 0.85,
    "synthesis": 0.8,
    "finding": 0.7,
    "question": 0.65,
    "intention": 0.6,
    "assumption": 0.5,
    "observation": 0.4,
}
LAYERS = {
    "past": frozenset({"finding", "observation", "decision", "correction", "synthesis", "contradiction"}),
    "present": frozenset({"question", "assumption", "constraint", "human_directive", "contradiction"}),
    "future": frozenset({"intention", "question", "decision", "human_directive"}),
}
_HALF_LIFE = 50
"""Epochs after which a unit counts half as recent."""
_NAMED_WORDS = 5
_AGAIN = 0.02
"""Penalty for each further unit of the same author, up to five, so that one author does not crowd out the others."""


@dataclass(frozen=True, slots=True)
class RelevanceQuery:
    """The query that relevance is measured against."""

    role: str
    query: str = ""
    task_id: str | None = None
    recency_weight: float | None = None
    layers: Collection[str] = ()
    related: Collection[str] = ()
    """Units that the agent's own units point at, or that point at them."""
    epoch: int = 0


class Scored(Struct, frozen=True):
    """A unit and its score. The reason is put into words only for the few that are shown."""

    entry: Entry
    score: float
    asked: RelevanceQuery
    meaning: tuple[float, Sequence[str]] | None

    @property
    def words(self) -> Sequence[str]:
        """Words of the query that the unit has, as far as its reason names them."""
        return self.meaning[1][:_NAMED_WORDS] if self.meaning is not None else ()

    @property
    def facts(self) -> str:
        """The reason for the rank without any word of the unit."""
        return _facts(self.entry, self.asked, self.meaning)


def reason_of(words: Sequence[str], facts: str) -> str:
    """Human-readable reason for a rank."""
    return f"has the words {', '.join(words)}; {facts}" if words else facts


Meaning = Mapping[str, tuple[float, Sequence[str]]]
"""Similarity to a query by unit id, with the words of the query found in the unit."""


def vector_of(query: str, embedder: Embedder | None) -> Vector | None:
    """The vector of a query; None when there is none to compare with. Never called inside a transaction."""
    if embedder is None or not query.strip():
        return None
    try:
        data = embedder.embed([comparable(query)])[0]
    except Exception:  # an embedder that is down: words still work
        return None
    return (model_of(embedder), data) if any(data) else None


def meaning_of(
    tx: ReadTx, entries: Sequence[Entry], query: str, vector: Vector | None, alike: Collection[int] | None = None
) -> Meaning | None:
    """Measure the similarity of each entry to a query; None for an empty query. `alike`: positions that may share its
    words.
    """
    if not query.strip():
        return None
    asked = query_terms(query)
    cosines = tx.cosines(vector, [entry.position for entry in entries]) if vector is not None and entries else {}
    found: dict[str, tuple[float, Sequence[str]]] = {}
    for entry in entries:
        near = cosines.get(entry.position, ())
        if alike is None or entry.position in alike or entry.archived or entry.gone_seq is not None:
            found[entry.id] = _close(entry, asked, near)
        else:
            found[entry.id] = _bounded(near), ()
    return found


def words_of(entries: Sequence[Entry], query: str) -> Meaning | None:
    """The same by words alone: for the few units of a write, which has no index."""
    asked = query_terms(query) if query.strip() else None
    return None if asked is None else {entry.id: _close(entry, asked, ()) for entry in entries}


def _close(entry: Entry, asked: Sequence[str], cosines: Sequence[float]) -> tuple[float, Sequence[str]]:
    own = set(terms(searchable_text(entry))) if asked else set()
    has = [term for term in asked if term in own]
    covered = len(has) / len(asked) if asked else 0.0
    return 1 - (1 - _bounded(cosines)) * (1 - 0.7 * covered), has


def _bounded(cosines: Sequence[float]) -> float:
    """The best cosine of a unit's passages, from 0 to 1."""
    return max(0.0, min(1.0, max(cosines, default=0.0)))


def rank_units(entries: Sequence[Entry], asked: RelevanceQuery, meaning: Meaning | None) -> list[Scored]:
    """Every entry scored, best first."""
    own = _own_factors(asked)
    closeness = [None if meaning is None else meaning.get(entry.id, (0.0, ())) for entry in entries]
    plain = [
        (-_score(entry, asked, own, close), -entry.epoch, entry.position, number)
        for number, (entry, close) in enumerate(zip(entries, closeness, strict=True))
    ]
    voices: dict[str, int] = {}
    spread: list[tuple[float, int, int, int]] = []
    for score, epoch, position, number in sorted(plain):
        author = entries[number].source.actor
        before = voices.get(author, 0)
        voices[author] = before + 1
        spread.append((round(score * (1 - _AGAIN * min(before, 5)), 6), epoch, position, number))
    return [Scored(entries[number], -score, asked, closeness[number]) for score, _, _, number in sorted(spread)]


Factor = Callable[[Entry], float]


def _own_factors(asked: RelevanceQuery) -> list[tuple[float, Factor]]:
    """The factors of this query besides recency, with their weights."""
    role = tuple(word for word in asked.role.lower().split() if len(word) > 3)

    def of_type(entry: Entry) -> float:
        return TYPE_WEIGHTS.get(type_of(entry), 0.4)

    def of_confidence(entry: Entry) -> float:
        sure = score_of(entry)
        return 0.5 if sure is None else sure

    def of_role(entry: Entry) -> float:
        if entry.source.role == asked.role:
            return 1.0
        text = entry.content.lower()
        return 0.8 if any(word in text for word in role) else 0.4

    made: list[tuple[str, Factor]] = [("type", of_type), ("confidence", of_confidence), ("role", of_role)]
    if asked.task_id is not None:
        made.append(("task", lambda entry: float(task_of(entry) == asked.task_id)))
    if asked.related:
        made.append(("relation", lambda entry: float(entry.id in asked.related)))
    if asked.layers:
        kinds = frozenset[str]().union(*(LAYERS[layer] for layer in asked.layers))
        made.append(("layer", lambda entry: float(type_of(entry) in kinds)))
    return [(WEIGHTS[name], factor) for name, factor in made]


def _score(
    entry: Entry,
    asked: RelevanceQuery,
    own: Sequence[tuple[float, Factor]],
    meaning: tuple[float, Sequence[str]] | None,
) -> float:
    recent: float = 0.5 ** (max(asked.epoch - entry.epoch, 0) / _HALF_LIFE)
    weight = asked.recency_weight
    rest = sum([share * factor(entry) for share, factor in own])
    total = sum([share for share, _ in own])
    if weight is None:
        score = (WEIGHTS["recency"] * recent + rest) / (WEIGHTS["recency"] + total)
    else:
        score = weight * recent + (1 - weight) * rest / total
    if meaning is not None:
        score = (1 - MEANING) * score + MEANING * meaning[0]
        if weight is not None:
            score = weight * recent + (1 - weight) * score
    return max(0.0, min(1.0, score))


def _facts(entry: Entry, asked: RelevanceQuery, meaning: tuple[float, Sequence[str]] | None) -> str:
    age = max(asked.epoch - entry.epoch, 0)
    parts: list[str] = []
    if meaning is not None:
        close, _ = meaning
        parts.append(
            f"{'close' if close >= 0.5 else 'somewhat close' if close >= 0.3 else 'far'} in meaning ({close:.2f})"
        )
    if asked.task_id is not None and task_of(entry) == asked.task_id:
        parts.append("belongs to the active task")
    if entry.id in asked.related:
        parts.append("related to your units")
    parts.append(f"{type_of(entry)}, {age} epochs old" if age != 1 else f"{type_of(entry)}, 1 epoch old")
    sure = score_of(entry)
    if sure is not None:
        parts.append(f"confidence {sure:.2f}")
    parts.append(f"from {'your role' if entry.source.role == asked.role else 'another role'}")
    return "; ".join(parts)
