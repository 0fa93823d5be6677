"""Memory for a prompt: whole entries of a ranked list, within a token budget."""

from __future__ import annotations

from collections.abc import Iterable

from reverie.core.actor import Actor
from reverie.core.entry import Entry
from reverie.core.errors import Invalid, ReverieError
from reverie.core.query import Filter
from reverie.memory.search import MAX_HITS, Search
from reverie.services import Services


class Injection:
    """Ranks entries by relevance and selects them within a budget."""

    def __init__(self, parts: Services, search: Search) -> None:
        self._parts = parts
        self._search = search

    def relevant(self, actor: Actor, ref: str, query: str, *, tag: str | None = None, limit: int = 0) -> list[Entry]:
        """Entries, best match for the query first. Raises `no_embedder` on a host without an embedder."""
        if self._parts.embedder is None:
            raise ReverieError("This host has no embedder, so it cannot rank by relevance.", code="no_embedder")
        where = Filter(tags=(tag,)) if tag is not None else Filter()
        found = self._search.search(
            actor, ref, query, where=where, limit=min(limit or MAX_HITS, MAX_HITS), deep="never"
        )
        return [hit.entry for hit in found.hits]

    def within(self, entries: Iterable[Entry], budget: int) -> list[Entry]:
        """The longest prefix of a ranked list that has at most `budget` tokens.

        An entry larger than the whole budget is left out and does not end the prefix.
        """
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
            raise Invalid("A token budget is a whole number of at least 1.", pointer="/tokenBudget")
        if self._parts.tokens is None:
            raise ReverieError("This host has no tokenizer, so it cannot count a budget.", code="no_tokenizer")
        kept: list[Entry] = []
        used = 0
        for entry in entries:
            size = self._parts.tokens.count(entry.content)
            if size > budget:
                continue
            used += size
            if used > budget:
                break
            kept.append(entry)
        return kept
