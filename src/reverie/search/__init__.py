"""From what a store finds to what an agent reads: words, ranking, explanation, packing. Pure; no I/O, no clock."""

from __future__ import annotations

from reverie.search.analysis import query_terms, terms
from reverie.search.context import LeftOut, Packed, PackItem, pack
from reverie.search.dates import Period, periods
from reverie.search.explain import CutLine, Explanation, Filtered, ScoredHit, explain
from reverie.search.passages import Passage, passages
from reverie.search.rank import WEIGHTS, Candidate, Question, Ranked, Weights, rank, worth_widening
from reverie.search.text import comparable, searchable

__all__ = [
    "WEIGHTS",
    "Candidate",
    "CutLine",
    "Explanation",
    "Filtered",
    "LeftOut",
    "PackItem",
    "Packed",
    "Passage",
    "Period",
    "Question",
    "Ranked",
    "ScoredHit",
    "Weights",
    "comparable",
    "explain",
    "pack",
    "passages",
    "periods",
    "query_terms",
    "rank",
    "searchable",
    "terms",
    "worth_widening",
]
