"""Missing vectors, made after the write, so that an embedder that is slow or down never blocks one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reverie.core.actor import Actor, Right
from reverie.core.entry import READABLE, Entry, EntryState, Scope
from reverie.core.errors import ReadOnly
from reverie.core.event import NewEvent
from reverie.core.query import Filter
from reverie.memory.indexing import Indexed, model_of, terms_and_vectors
from reverie.memory.insertion import session_mark
from reverie.services import Services
from reverie.store.contract import WriteTx

_BATCH = 200
_INDEXED = Filter(states=READABLE | {EntryState.DREAMT}, gone=True, archived=None, expired=None)


class Embeddings:
    """Fills the index."""

    def __init__(self, parts: Services, held: Callable[[str], bool] | None = None) -> None:
        self._parts = parts
        self._held = held
        """Whether a tenant's vectors are held back, for tests of an embedder that is down."""

    def complete(self, actor: Actor) -> bool:
        """Whether every readable entry and source of a dream has a vector of the configured embedder."""
        actor.require(Right.READ)
        embedder = self._parts.embedder
        if embedder is None:
            return True
        return not self._parts.store.read(Scope(actor.tenant), lambda tx: tx.unembedded(model_of(embedder), limit=1))

    def fill(self, actor: Actor) -> int:
        """Make every missing vector, a batch at a time; returns their number. Safe to stop and to repeat."""
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        embedder = self._parts.embedder
        if embedder is None or (self._held is not None and self._held(actor.tenant)):
            return 0
        done = 0
        while True:
            found = self._parts.store.read(
                Scope(actor.tenant), lambda tx: tx.unembedded(model_of(embedder), limit=_BATCH)
            )
            if not found:
                return done
            rows = list(zip(found, terms_and_vectors(found, embedder), strict=True))
            made = 0
            for ref in sorted({entry.ref for entry in found}):
                own = [row for row in rows if row[0].ref == ref]
                made += self._store(actor, ref, model_of(embedder), own)
            if not made:  # all of them changed meanwhile; the next call looks again
                return done
            done += made

    def _store(self, actor: Actor, ref: str, model: str, rows: Sequence[tuple[Entry, Indexed]]) -> int:
        def body(tx: WriteTx) -> int:
            same = []
            for row in rows:
                current = tx.get(row[0].id, where=_INDEXED)
                if current is not None and current.version == row[0].version:
                    same.append(row)
            if same:
                data = {"ref": ref, "entries": len(same), "model": model}
                seq = tx.append(NewEvent("memory.indexed", "INDEX", actor.id, data=data))
                for entry, (words, vector) in same:
                    tx.index(entry.id, seq=seq, terms=words, vector=vector)
                    if entry.state is EntryState.PENDING:
                        event = NewEvent(
                            "memory.enriched",
                            "INDEX",
                            actor.id,
                            entry_id=entry.id,
                            session=session_mark(tx, entry),
                            data={"ref": ref},
                        )
                        tx.change(entry.id, seq=tx.append(event, tick=False), state=EntryState.ACTIVE)
            return len(same)

        return self._parts.store.write(Scope(actor.tenant, ref), body)
