"""Relevance of a unit to an agent: factors from 0 to 1, weighted into one score, with a human-readable reason.

Meaning and words come from the same index and vectors as every search; recency, type, confidence, role, task and
relations are the Field's own. Nothing here depends on the order units come in; equal scores go newest first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True)
class Scored:
    """A unit and its score. Why is put into words for the few that are shown."""

    entry: Entry
    score: float
    asked: RelevanceQuery
    factors: Mapping[str, float]
    meaning: tuple[float, Sequence[str]] | None

    @property
    def reason(self) -> str:
        """Human-readable reason for the rank."""
        return _reason(self.entry, self.asked, self.factors, self.meaning)


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
    return {
        entry.id: _close(
            entry,
            asked,
            cosines.get(entry.position, ()),
            words=alike is None or entry.position in alike or entry.archived or entry.gone_seq is not None,
        )
        for entry in entries
    }


def words_of(entries: Sequence[Entry], query: str) -> Meaning | None:
    """The same by words alone: for the few units of a write, which has no index."""
    asked = query_terms(query) if query.strip() else None
    return None if asked is None else {entry.id: _close(entry, asked, ()) for entry in entries}


def _close(
    entry: Entry, asked: Sequence[str], cosines: Sequence[float], *, words: bool = True
) -> tuple[float, Sequence[str]]:
    own = set(terms(searchable_text(entry))) if asked and words else set()
    has = [term for term in asked if term in own]
    covered = len(has) / len(asked) if asked else 0.0
    close = max(0.0, min(1.0, max(cosines, default=0.0)))
    return 1 - (1 - close) * (1 - 0.7 * covered), has


def rank_units(entries: Sequence[Entry], asked: RelevanceQuery, meaning: Meaning | None) -> list[Scored]:
    """Every entry scored, best first."""
    role = frozenset(word for word in asked.role.lower().split() if len(word) > 3)
    scored = [
        _score(entry, asked, role, meaning.get(entry.id, (0.0, ())) if meaning is not None else None)
        for entry in entries
    ]
    scored.sort(key=_order)
    voices: dict[str, int] = {}
    spread: list[Scored] = []
    for item in scored:
        author = item.entry.source.actor
        loss = 1 - _AGAIN * min(voices.get(author, 0), 5)
        voices[author] = voices.get(author, 0) + 1
        spread.append(replace(item, score=round(item.score * loss, 6)))
    return sorted(spread, key=_order)


def _order(item: Scored) -> tuple[float, int, int]:
    return -item.score, -item.entry.epoch, item.entry.position


def _score(
    entry: Entry, asked: RelevanceQuery, role: frozenset[str], meaning: tuple[float, Sequence[str]] | None
) -> Scored:
    age = max(asked.epoch - entry.epoch, 0)
    kind, sure, task = type_of(entry), score_of(entry), task_of(entry)
    factors = {
        "recency": 0.5 ** (age / _HALF_LIFE),
        "type": TYPE_WEIGHTS.get(kind, 0.4),
        "confidence": 0.5 if sure is None else sure,
        "role": 1.0 if entry.source.role == asked.role else 0.8 if _names(entry, role) else 0.4,
    }
    if asked.task_id is not None:
        factors["task"] = 1.0 if task == asked.task_id else 0.0
    if asked.related:
        factors["relation"] = 1.0 if entry.id in asked.related else 0.0
    if asked.layers:
        factors["layer"] = 1.0 if any(kind in LAYERS[layer] for layer in asked.layers) else 0.0
    weights = {name: WEIGHTS[name] for name in factors}
    recency = asked.recency_weight
    base = _average(factors, weights, recency)
    score = base if meaning is None else (1 - MEANING) * base + MEANING * meaning[0]
    if recency is not None and meaning is not None:
        score = recency * factors["recency"] + (1 - recency) * score
    return Scored(entry, max(0.0, min(1.0, score)), asked, factors, meaning)


def _names(entry: Entry, role: frozenset[str]) -> bool:
    text = entry.content.lower()
    return any(word in text for word in role)


def _average(factors: Mapping[str, float], weights: Mapping[str, float], recency: float | None) -> float:
    if recency is None:
        return sum(factors[name] * weights[name] for name in factors) / sum(weights.values())
    others = {name: weights[name] for name in factors if name != "recency"}
    rest = sum(factors[name] * others[name] for name in others) / sum(others.values())
    return recency * factors["recency"] + (1 - recency) * rest


def _reason(
    entry: Entry,
    asked: RelevanceQuery,
    factors: Mapping[str, float],
    meaning: tuple[float, Sequence[str]] | None,
) -> str:
    age = max(asked.epoch - entry.epoch, 0)
    parts: list[str] = []
    if meaning is not None:
        close, words = meaning
        if words:
            parts.append(f"has the words {', '.join(words[:5])}")
        parts.append(
            f"{'close' if close >= 0.5 else 'somewhat close' if close >= 0.3 else 'far'} in meaning ({close:.2f})"
        )
    if factors.get("task"):
        parts.append("belongs to the active task")
    if factors.get("relation"):
        parts.append("related to your units")
    parts.append(f"{type_of(entry)}, {age} epochs old" if age != 1 else f"{type_of(entry)}, 1 epoch old")
    sure = score_of(entry)
    if sure is not None:
        parts.append(f"confidence {sure:.2f}")
    parts.append(f"from {'your role' if entry.source.role == asked.role else 'another role'}")
    return "; ".join(parts)
