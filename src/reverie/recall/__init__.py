"""From what a store finds to what an agent reads: words, ranking, explanation, packing. Pure; no I/O, no clock."""

from __future__ import annotations

from reverie.recall.explain import CutLine, Explanation, Filtered, ScoredHit, explain
from reverie.recall.lexical import query_terms, terms
from reverie.recall.pack import LeftOut, Packed, PackItem, pack
from reverie.recall.rank import WEIGHTS, Candidate, Ranked, Weights, rank, worth_widening
from reverie.recall.text import comparable, searchable
from reverie.recall.when import Period, periods

__all__ = [
    "WEIGHTS",
    "Candidate",
    "CutLine",
    "Explanation",
    "Filtered",
    "LeftOut",
    "PackItem",
    "Packed",
    "Period",
    "Ranked",
    "ScoredHit",
    "Weights",
    "comparable",
    "explain",
    "pack",
    "periods",
    "query_terms",
    "rank",
    "searchable",
    "terms",
    "worth_widening",
]
