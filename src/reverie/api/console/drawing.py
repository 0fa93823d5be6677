"""Lineage drawn on the server, as SVG: originals on the left, the entry in the middle, derived entries on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from reverie.api.console.text import cut, segment, visible

_STEP, _TOP = 22, 30
_MOST = 24
_WIDE, _NEAR, _FAR, _LABEL, _MARGIN = 960, 400, 540, 58, 60
_HEAD = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>')


def lineage(
    center: str, sources: Sequence[tuple[str, str | None]], made: Sequence[tuple[str, str | None]], *, ref: str
) -> Markup:
    """The drawing; empty when there is nothing to draw. Sources and what was made: (id, text), each a link."""
    if not sources and not made:
        return Markup("")
    left, right = sources[:_MOST], made[:_MOST]
    rows = max(len(left), len(right), 1)
    height = _TOP + (rows + (len(sources) > _MOST or len(made) > _MOST)) * _STEP + 6
    middle, center_x = _TOP + rows * _STEP / 2, (_NEAR + _FAR) / 2
    message = f"{len(sources)} originals, one entry, {len(made)} made from it"
    start = 0 if left else center_x - _MARGIN
    pieces = [_open_svg(height, message, start, _WIDE if right else center_x + _MARGIN)]
    for title, x, anchor, ids in (
        ("Original words", _NEAR - 10, "end", left),
        ("This entry", center_x, "middle", True),
        ("Made from it", _FAR + 10, "start", right),
    ):
        if ids:
            pieces.append(_HEAD.format("head", x, 16, anchor, title))
    for side, x, anchor, ones, total in (
        ("from", _NEAR, "end", left, len(sources)),
        ("to", _FAR, "start", right, len(made)),
    ):
        top = middle - (len(ones) - 1) * _STEP / 2
        for row, (entry_id, text) in enumerate(ones):
            y = top + row * _STEP
            url = f"/memories/{segment(ref)}/{segment(entry_id)}"
            pieces.append(_edge(x, y, center_x, middle))
            pieces.append(_strand(url, text or f"(destroyed) {entry_id}", x, y, anchor=anchor, side=side))
        if total > len(ones):
            at = x + (10 if anchor == "start" else -10)
            pieces.append(_HEAD.format("more", at, height - 8, anchor, f"and {total - len(ones)} more"))
    dot = Markup('<circle class="self" cx="{}" cy="{:.1f}" r="8"><title>{}</title></circle>')
    return Markup("").join([*pieces, dot.format(center_x, middle, center), Markup("</svg>")])


def _open_svg(height: float, said: str, start: float = 0, end: float = _WIDE) -> Markup:
    """The drawing from `start` to `end`: a side without entries takes no room."""
    half = " half" if end - start < _WIDE else ""
    head = Markup('<svg class="lineage{}" viewBox="{:.0f} 0 {:.0f} {}" role="group" aria-label="{}">')
    return head.format(half, start, end - start, height, said)


def _edge(x: float, y: float, to_x: float, to_y: float) -> Markup:
    bend = (x + to_x) / 2
    return Markup('<path d="M{:.0f} {:.1f} C{:.0f} {:.1f} {:.0f} {:.1f} {:.0f} {:.1f}"/>').format(
        x, y, bend, y, bend, to_y, to_x, to_y
    )


def strands(lines: Sequence[Mapping[str, Any]], *, ref: str) -> Markup:
    """Draw the first lines of a dream on the right, their original words on the left, and the links between them.

    Every text is a link: to its entry on the left, to its line on the right. Empty when no words are left.
    """
    left: dict[str, str] = {}
    right: list[tuple[int, str]] = []
    joined: list[tuple[str, int]] = []
    for line in lines:
        sources = [one for one in line["sources"] if one["text"] is not None]
        if len(left.keys() | {one["id"] for one in sources}) > _MOST or len(right) == _MOST:
            break
        left |= {one["id"]: one["text"] for one in sources}
        joined += [(one["id"], len(right)) for one in sources]
        right.append((line["number"], line["text"]))
    if not joined:
        return Markup("")
    height = _TOP + max(len(left), len(right)) * _STEP + 6
    message = f"{len(left)} original entries and the {len(right)} lines that they became"
    pieces = [
        _open_svg(height, message),
        _HEAD.format("head", _NEAR - 10, 16, "end", "Original words"),
        _HEAD.format("head", _FAR + 10, 16, "start", "Lines of the dream"),
    ]
    down = {one: _TOP + (at + 0.5) * (height - _TOP - 6) / len(left) for at, one in enumerate(left)}
    across = [_TOP + (at + 0.5) * (height - _TOP - 6) / len(right) for at in range(len(right))]
    pieces += [_edge(_NEAR, down[one], _FAR, across[at]) for one, at in joined]
    for one, text in left.items():
        url = f"/memories/{segment(ref)}/{segment(one)}"
        pieces.append(_strand(url, text, _NEAR, down[one], anchor="end", side="from"))
    for at, (number, text) in enumerate(right):
        pieces.append(_strand(f"#line-{number}", text, _FAR, across[at], anchor="start", side="to"))
    return Markup("").join([*pieces, Markup("</svg>")])


def _strand(url: str, text: str, x: float, y: float, *, anchor: str, side: str) -> Markup:
    """A link with a dot and, beside it, the beginning of a text."""
    shown = visible(cut(" ".join(text.split()), _LABEL))
    return Markup(
        '<a href="{}"><title>{}</title><circle class="{}" cx="{}" cy="{:.1f}" r="4"/>'
        '<text class="words" x="{}" y="{:.1f}" text-anchor="{}">{}</text></a>'
    ).format(url, visible(cut(text, 300)), side, x, y, x + (10 if anchor == "start" else -10), y + 4, anchor, shown)


def shares(counts: Mapping[str, int]) -> Markup:
    """Parts of a whole as one strip; each part has its name as a class, and its share in a title."""
    whole, at = sum(counts.values()), 0.0
    if not whole:
        return Markup("")
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    head = Markup('<svg class="shares" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="{}">')
    pieces = [head.format(said)]
    for name, count in counts.items():
        width = 1000 * count / whole
        rect = Markup('<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="10"><title>{}</title></rect>')
        pieces.append(rect.format(name, at, max(width - 2, 1), f"{name}: {count}"))
        at += width
    return Markup("").join([*pieces, Markup("</svg>")])
