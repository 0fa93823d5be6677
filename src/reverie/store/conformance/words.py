"""Words: BM25 over any of the terms, under the statistics of one memory."""

from __future__ import annotations

from reverie.core.entry import EntryState
from reverie.core.query import Filter
from reverie.store.conformance.lab import Lab, make_entry, make_event


def _match(
    lab: Lab, terms: list[str], where: Filter | None = None, *, limit: int = 10, **at: str
) -> list[tuple[str, float]]:
    found = lab.read(lambda tx: tx.match(terms, where or Filter(), limit=limit), **at)
    return [(m.entry.id, m.score) for m in found]


def the_better_match_comes_first(lab: Lab) -> None:
    """Rarer words and shorter texts weigh more; any one term is enough; scores fall."""
    lab.put("kettle shelf shelf shelf shelf", id="common")
    lab.put("kettle zebra", id="rare")
    lab.put("shelf only here", id="none")
    lab.put_many([make_entry(content="kettle filler text") for _ in range(5)])
    found = _match(lab, ["kettle", "zebra"])
    assert found[0][0] == "rare"
    assert "none" not in [i for i, _ in found]
    assert len(found) == 7
    scores = [s for _, s in found]
    assert scores == sorted(scores, reverse=True)
    assert all(s > 0 for s in scores)
    assert len(_match(lab, ["kettle"], limit=3)) == 3


def nothing_asked_nothing_found(lab: Lab) -> None:
    """No terms, unknown terms and an unknown tenant find nothing."""
    lab.put()
    assert _match(lab, []) == []
    assert _match(lab, ["zebra"]) == []
    assert _match(lab, ["kettle"], tenant="rival") == []


def a_term_is_data(lab: Lab) -> None:
    """Operators, quotes and wild cards of a query language have no meaning in a term."""
    lab.put("kettle", id="a")
    for term in (
        '"',
        "*",
        "ket*",
        "kettle OR",
        "NOT kettle",
        "body:kettle",
        "(",
        "kettle)",
        "a AND",
        "'",
        "^kettle",
        "",
    ):
        assert isinstance(_match(lab, [term, "nothing"]), list), term
    assert [i for i, _ in _match(lab, ["*", "kettle"])] == ["a"]


def filters_and_refs_apply(lab: Lab) -> None:
    """Only visible entries of this ref are found."""
    lab.put("kettle", id="a", tags=("red",))
    lab.put("kettle", id="b")
    lab.put("kettle", id="c", ref="other")
    lab.put("kettle", id="d", state=EntryState.DRAFT)
    lab.put("kettle", id="e")
    lab.change("e", archived=True)
    assert sorted(i for i, _ in _match(lab, ["kettle"])) == ["a", "b"]
    assert [i for i, _ in _match(lab, ["kettle"], Filter(tags=("red",)))] == ["a"]
    assert [i for i, _ in _match(lab, ["kettle"], ref="other")] == ["c"]


def what_returns_is_indexed_again(lab: Lab) -> None:
    """`index` after a restore; new words replace the old ones."""
    lab.put("kettle", id="a")
    lab.change("a", archived=True)
    assert _match(lab, ["kettle"]) == []
    lab.change("a", archived=False)
    lab.write(lambda tx: tx.index("a", seq=tx.append(make_event()), terms=["teapot"], vector=None))
    assert _match(lab, ["kettle"]) == []
    assert [i for i, _ in _match(lab, ["teapot"])] == ["a"]


def scores_follow_what_is_stored_now(lab: Lab) -> None:
    """Entries that left no longer count: the scores are those of a store that never had them."""
    lab.put("kettle one", id="a")
    lab.put("kettle two words", id="b")
    before = _match(lab, ["kettle", "one"])
    extra = lab.put_many([make_entry(content="one one one kettle more") for _ in range(20)])
    assert _match(lab, ["kettle", "one"], limit=100)[:2] != before
    for entry in extra:
        lab.purge(entry.id)
    assert _match(lab, ["kettle", "one"]) == before


def ties_go_by_insertion(lab: Lab) -> None:
    """Of equal scores, the older entry always comes first."""
    entries = lab.put_many([make_entry(content="kettle") for _ in range(20)])
    assert [i for i, _ in _match(lab, ["kettle"], limit=20)] == [e.id for e in entries]


def no_neighbour_moves_a_score(lab: Lab) -> None:
    """A tenant full of the same words does not change a score by a single bit."""
    texts = ["kettle on the shelf", "shelf in the kitchen", "kitchen with a kettle and a kettle"]
    for tenant in ("alone", "beside"):
        lab.put_many([make_entry(id=f"{n}", content=text) for n, text in enumerate(texts)], tenant=tenant)
    alone = _match(lab, ["kettle", "shelf"], tenant="alone")
    lab.put_many([make_entry(content="kettle shelf " * 5) for _ in range(200)], tenant="noise")
    assert _match(lab, ["kettle", "shelf"], tenant="beside") == alone
    assert _match(lab, ["kettle", "shelf"], tenant="alone") == alone
