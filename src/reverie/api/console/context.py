"""Context lab: the context for a question under a budget, token by token; two settings side by side."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from reverie.api.console.page import Document, Look, Page
from reverie.memory.hits import Context, Hit, SearchResult
from reverie.search.dates import when

_CANDIDATES = 20
_RECT = Markup('<rect class="{}" x="{:.2f}" y="0" width="{:.2f}" height="{}"/>')


def show(look: Look) -> Document:
    """The packed block, its tokens line by line, and the candidates it was chosen from."""
    host, actor = look.host, look.actor
    refs = host.reader.refs(actor)
    ref = look.ref(refs)
    query, settings = look.text("q"), _settings(look)
    document: Document = {
        "ref": ref,
        "refs": [name for name, _ in refs],
        "q": query,
        "as_of": look.text("as_of"),
        "budget": settings[0][0],
        "other": look.text("other"),
        "other_as_of": look.text("other_as_of"),
        "packed": [],
        "candidates": [],
        "signals": [],
    }
    if not query:
        return document
    found: SearchResult | None = None
    for budget, then in settings:
        position = _position(look, then) if then else None
        [made], hits = host.search.contexts(actor, ref, query, budgets=[budget], as_of=position)
        document["packed"].append({**_pack(look, made), "position": position})
        found = found or hits
    assert found is not None
    block = document["packed"][0]
    signals = [{name: float(value) for name, value in hit.signals.items() if value} for hit in found.hits[:_CANDIDATES]]
    document["signals"] = shades = _shades({name for one in signals for name in one})
    best = max((_total(one) for one in signals), default=1.0)
    document["candidates"] = [
        {
            "id": hit.entry.id,
            "text": hit.text[:300],
            "confidence": float(hit.confidence),
            "weak": hit.weak,
            "included": _is_included(hit, block),
            "signals": parts,
            "bar": _bar(parts, shades, best),
        }
        for hit, parts in zip(found.hits, signals, strict=False)
    ]
    return document


def _settings(look: Look) -> list[tuple[int, str]]:
    """Budget and time of the block, and of a second one to compare it with."""
    first = (look.number("budget", 1000), look.text("as_of"))
    if not look.text("other") and not look.text("other_as_of"):
        return [first]
    return [first, (look.number("other", first[0]), look.text("other_as_of"))]


def _shades(names: set[str]) -> dict[str, str]:
    """A shade for each signal, the same in every bar: words and meaning first, the rest by name."""
    order = sorted(names, key=lambda name: (name != "words", name != "meaning", name))
    return {name: "abcde"[min(place, 4)] for place, name in enumerate(order)}


def _position(look: Look, then: str) -> int:
    """A date, an instant, words such as "last week", or a log position, as a log position. Raises Invalid."""
    head = look.host.reader.snapshot(look.actor)
    if then.isdecimal() and len(then) < 16 and not (len(then) == 4 and int(then) > head):
        return min(int(then), head)
    zone, now = look.host.rules.policy(look.actor).zone, look.host.parts.clock.now()
    return look.host.history.position(look.actor, when(then, now, zone=zone, end=True, pointer="/as_of") - 1)


def _is_included(hit: Hit, block: dict[str, Any]) -> bool:
    """Whether this passage is in the block: of a dream only some lines may be."""
    if hit.weak or hit.entry.id not in block["included"]:
        return False
    return hit.entry.kind != "dream" or hit.text[:60] in block["text"]


def _pack(look: Look, context: Context) -> dict[str, Any]:
    """A block with the tokens of each of its lines, and the ruler drawn from them."""
    tokens = look.host.parts.tokens
    lines = [{"text": line, "tokens": tokens.count(line + "\n") if tokens else 0} for line in context.text.split("\n")]
    return {
        "text": context.text,
        "tokens": context.tokens,
        "budget": context.budget,
        "included": list(context.included),
        "shortened": list(context.shortened),
        "left_out": [{"id": one.id, "reason": one.reason} for one in context.left_out],
        "degraded": list(context.degraded),
        "lines": lines if context.text else [],
        "ruler": _ruler([int(str(line["tokens"])) for line in lines], context),
    }


def _ruler(counts: list[int], context: Context) -> Markup:
    """The budget as a strip: a piece for each line of the block, the rest empty."""
    whole = max(context.budget, sum(counts), 1)
    pieces, at = [], 0.0
    for number, count in enumerate(counts if context.text else []):
        width = 1000 * count / whole
        shade = "a" if number % 2 else "b"
        pieces.append(_RECT.format(shade, at, max(width - 1, 0.5), 10))
        at += width
    message = f"{context.tokens} of {context.budget} tokens used"
    head = Markup('<svg class="strip" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="{}">')
    return Markup("").join([head.format(message), *pieces, Markup("</svg>")])


def _total(signals: dict[str, float]) -> float:
    """Sum of the signals of a score, without those that lower it."""
    return sum(value for value in signals.values() if value > 0) or 1.0


def _bar(signals: dict[str, float], shades: dict[str, str], best: float) -> Markup:
    """The signals of a score, stacked; the longest bar is that of the best score."""
    at, pieces = 0.0, [_RECT.format("bg", 0, 100, 4)]
    for name, shade in shades.items():
        width = 100 * max(signals.get(name, 0.0), 0.0) / best
        if width:
            pieces.append(_RECT.format(shade, at, width, 4))
            at += width
    head = Markup('<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">')
    return Markup("").join([head, *pieces, Markup("</svg>")])


PAGE = Page("context", "/context", "context.html", show)
