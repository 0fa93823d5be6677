"""What was made from what: the walk over links from originals to dreams and back."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.store.contract import ReadTx

_DISTILLED_FROM = "distilled-from"


def derived_from(tx: ReadTx, entry_ids: Sequence[str]) -> set[str]:
    """Ids of everything made from these entries of the transaction's ref."""
    found: set[str] = set()
    edge = list(entry_ids)
    while edge:
        for link in tx.links(edge.pop(), incoming=True, type=_DISTILLED_FROM):
            if link.from_id not in found:
                found.add(link.from_id)
                edge.append(link.from_id)
    return found


def kin(tx: ReadTx, entry_id: str) -> set[str]:
    """Ids of everything that shares an original with this entry of the transaction's ref."""
    originals: set[str] = set()
    edge, seen = [entry_id], {entry_id}
    while edge:
        at = edge.pop()
        below = {link.to_id for link in tx.links(at, type=_DISTILLED_FROM)}
        if not below:
            originals.add(at)
        edge += below - seen
        seen |= below
    return (originals | derived_from(tx, sorted(originals))) - {entry_id}
