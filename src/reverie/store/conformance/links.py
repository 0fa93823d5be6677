"""Links: typed and directed, inside one ref."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.core.entry import Link
from reverie.store.conformance.lab import Lab, make_event, refuses
from reverie.store.contract import WriteTx


def _link(lab: Lab, links: Sequence[Link], *, ref: str = "notes", tenant: str = "acme") -> None:
    def body(tx: WriteTx) -> None:
        tx.append(make_event())
        for link in links:
            tx.link(link)

    lab.write(body, ref=ref, tenant=tenant)


def are_found_from_both_ends(lab: Lab) -> None:
    """From the start in the order they were made, and from the end; by type."""
    links = [Link("a", "z", "supports", "note"), Link("a", "b", "distilled-from"), Link("a", "c", "supports")]
    _link(lab, links)
    assert lab.read(lambda tx: tx.links("a")) == links
    assert lab.read(lambda tx: tx.links("a", type="supports")) == [links[0], links[2]]
    assert lab.read(lambda tx: tx.links("b", incoming=True)) == [links[1]]
    assert lab.read(lambda tx: tx.links("b")) == []
    _link(lab, [Link("b", "c", "supports")])
    assert lab.read(lambda tx: tx.links("b", "a", type="supports")) == [links[0], links[2], Link("b", "c", "supports")]
    assert lab.read(lambda tx: tx.links("b", "c", incoming=True)) == [*links[1:], Link("b", "c", "supports")]
    assert lab.read(lambda tx: tx.links()) == []


def are_made_once(lab: Lab) -> None:
    """Adding a link again does nothing; another type is another link."""
    _link(lab, [Link("a", "b", "supports", "first"), Link("a", "b", "supports", "second")])
    _link(lab, [Link("a", "b", "supports"), Link("a", "b", "contradicts")])
    assert [(li.type, li.note) for li in lab.read(lambda tx: tx.links("a"))] == [
        ("supports", "first"),
        ("contradicts", None),
    ]


def stay_in_their_ref(lab: Lab) -> None:
    """Neither another ref nor another tenant sees them."""
    _link(lab, [Link("a", "b", "supports")])
    assert lab.read(lambda tx: tx.links("a"), ref="other") == []
    assert lab.read(lambda tx: tx.links("a"), tenant="rival") == []


def need_an_event(lab: Lab) -> None:
    """Nothing changes without an event."""
    lab.put()
    with refuses(ValueError):
        lab.write(lambda tx: tx.link(Link("a", "b", "supports")))
    assert lab.read(lambda tx: tx.links("a")) == []
