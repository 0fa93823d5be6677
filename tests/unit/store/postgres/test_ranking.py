"""The same words and questions give the same ranking on PostgreSQL and SQLite."""

from __future__ import annotations

from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.core.entry import EntryState, Scope
from reverie.core.query import Filter, Match
from reverie.store.conformance import make_entry, make_event
from reverie.store.contract import Store, WriteTx
from reverie.store.postgres import PostgresStore
from reverie.store.sqlite import SqliteStore

NUMBERS = count()
WORD = st.sampled_from(["kettle", "shelf", "err_42", "zoë", "犬小", "a", "port", "lisbon", "x" * 64, "7"])
TEXT = st.lists(WORD, min_size=1, max_size=30)
VECTOR = st.lists(st.integers(-127, 127), min_size=4, max_size=4).map(lambda numbers: bytes(n % 256 for n in numbers))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    corpus=st.lists(
        st.tuples(TEXT, VECTOR, st.sampled_from(["notes", "other"]), st.booleans()), min_size=1, max_size=40
    ),
    asked=st.lists(WORD, min_size=1, max_size=5),
    query=VECTOR,
    limit=st.sampled_from([1, 3, 20, 100]),
    where=st.sampled_from([Filter(), Filter(tags=("t",)), Filter(any_tags=("t", "u")), Filter(subject="ada")]),
)
def test_both_stores_rank_alike(
    store: PostgresStore,
    corpus: list[tuple[list[str], bytes, str, bool]],
    asked: list[str],
    query: bytes,
    limit: int,
    where: Filter,
) -> None:
    tenant = f"t{next(NUMBERS)}"
    plain = SqliteStore(":memory:")

    def fill(tx: WriteTx) -> None:
        for n, (terms, vector, ref, _) in enumerate(corpus):
            rare = {"tags": ("t",), "subject": "ada"} if n % 19 == 4 else {}
            entry = make_entry(id=f"{n}", ref=ref, content=" ".join(terms), **rare)
            seq = tx.append(make_event(entry_id=entry.id))
            tx.insert(entry, seq=seq, terms=terms, vector=("m", vector), minted=False)

    def retire(tx: WriteTx) -> None:
        for n, (_, _, ref, leaves) in enumerate(corpus):
            if leaves and ref == tx.scope.ref:
                tx.change(f"{n}", seq=tx.append(make_event()), state=EntryState.DELETED)

    found = []
    for each in (plain, store):
        each.write(Scope(tenant), fill)
        for ref in ("notes", "other"):
            each.write(Scope(tenant, ref), retire)
        found.append(look(each, tenant, asked, query, where, limit))
    plain.close()
    (words, near), (other_words, other_near) = found
    assert [(m.entry.id, m.score) for m in near] == [(m.entry.id, m.score) for m in other_near]
    assert [(m.entry.id, m.score) for m in words] == [(m.entry.id, m.score) for m in other_words]


def look(
    store: Store, tenant: str, asked: list[str], query: bytes, where: Filter, limit: int
) -> tuple[list[Match], list[Match]]:
    return store.read(
        Scope(tenant, "notes"),
        lambda tx: (tx.match(asked, where, limit=limit), tx.nearest(("m", query), where, limit=limit)),
    )
