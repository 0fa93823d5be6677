"""The valid start of a window after the server compacted it."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.window.items import Item
from reverie.window.pairing import pair


def adjusted_cut(items: Sequence[Item], cut: int) -> int:
    """`cut`, moved back so that no output is sent without its call, nor a call without its reasoning."""
    spans = pair(items).spans
    moved = True
    while moved and cut > 0:
        moved = False
        for first, last in spans:
            if first < cut <= last:
                cut, moved = first, True
        while moved and cut > 0 and items[cut - 1].type == "reasoning":
            cut -= 1
    return cut
