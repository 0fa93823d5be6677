"""Values as people read them: text with nothing hidden in it, relative times, numbers with units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from reverie.core.clock import from_iso, to_iso

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
    "|(?<=[\x00-\u024f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\u024f]|$)|^[\u200c\u200d]"
)
"""Characters that change how text looks without being seen: controls, directions, zero width, tags. A joiner between
letters of a script that needs it, or between parts of an emoji, is left alone."""
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STACKED = re.compile(f"(?<={_MARK}{{3}}){_MARK}+")
"""Marks above and below a letter after the third: they would cover the lines around it."""
_UNITS = ((31_536_000, "y"), (2_592_000, "mo"), (86_400, "d"), (3600, "h"), (60, "min"))


def visible(value: Any) -> Any:
    """A text whose hidden characters are spelled out, such as `[U+202E]`. Everything a template prints passes here."""
    if type(value) is str and not value.isascii():
        return _STACKED.sub(lambda run: f"[+{len(run[0])} marks]", _HIDDEN.sub(_spell, value))
    if type(value) is str and not value.isprintable():
        return _HIDDEN.sub(_spell, value)
    return value


def _spell(match: re.Match[str]) -> str:
    return "\n" if match[0] == "\r" else f"[U+{ord(match[0]):04X}]"


def number(value: float | None) -> str:
    """`12 345`, grouped by thin spaces; `–` for nothing."""
    if value is None:
        return "–"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.2f}".replace(",", "\u2009")
    return f"{int(value):,}".replace(",", "\u2009")


def brief(value: float | None) -> str | Markup:
    """A number for a large figure: from ten million on rounded, `3.80 billion`, the exact one on hover."""
    if value is None or value < 10_000_000:
        return number(value)
    large = value >= 1_000_000_000
    rounded = f"{value / 1_000_000_000:,.2f} billion" if large else f"{value / 1_000_000:.1f} million"
    return Markup('<span title="{}">{}</span>').format(number(value), rounded)


def size(count: int | None) -> str:
    """Bytes as `1.4 MB`."""
    if count is None:
        return "–"
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def share(part: float, whole: float) -> str:
    """`82 %`."""
    return "–" if not whole else f"{100 * part / whole:.0f} %"


def ago(when: str | int | None, now: int) -> Markup:
    """A time element: relative for reading, exact on hover and for programs."""
    if when is None:
        return Markup("–")
    ms = from_iso(when) if isinstance(when, str) else when
    iso = to_iso(ms)
    exact = f"{iso[:10]} {iso[11:19]} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso, exact, relative(ms, now))


def relative(ms: int, now: int) -> str:
    """`3 h ago`, `in 2 d`, `just now`."""
    seconds = (now - ms) // 1000
    ahead, seconds = seconds < 0, abs(seconds)
    for length, unit in _UNITS:
        if seconds >= length:
            amount = f"{seconds // length} {unit}"
            return f"in {amount}" if ahead else f"{amount} ago"
    return "in a moment" if ahead else "just now"


def duration(ms: int | None) -> str:
    """Milliseconds as `7 d`, `8 h`, `250 ms`."""
    if ms is None:
        return "none"
    for length, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if ms >= length and ms % length == 0:
            return f"{ms // length} {unit}"
    return f"{ms} ms"


def day(ms: int) -> str:
    """`2026-11-17`."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d}"


def moment(ms: int) -> str:
    """`2026-11-17 03:00`, UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"


def segment(text: str) -> str:
    """A ref or an id as one segment of a path."""
    quoted = quote(text, safe="")
    return quoted[:-5] + "%2Ejson" if quoted.endswith(".json") else quoted


def cut(text: str, most: int) -> str:
    """Cut a text to this many characters, after a word where one ends in the last third, and mark the cut."""
    if len(text) <= most:
        return text
    short = text[:most]
    end = most if text[most].isspace() else max(short.rfind(" "), short.rfind("\n"))
    return (short[:end] if end * 3 > most * 2 else short).rstrip() + " …"


def shell(command: str) -> Markup:
    """A command whose words are not parted at the end of a line: an option begins with a hyphen."""
    return Markup(" ").join(
        Markup('<span class="nowrap">{}</span>').format(visible(word)) for word in command.split(" ")
    )


def coded(text: str) -> Markup:
    """A text whose parts between backticks are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner
        return escape(visible(text))
    return Markup("").join(
        Markup("<code>{}</code>" if number % 2 else "{}").format(visible(part)) for number, part in enumerate(parts)
    )


def marked(text: str, words: Sequence[str]) -> Markup:
    """A text with the words of a question marked."""
    named = {word for word in words if len(word) > 1}
    wanted = sorted(
        named | {word[:-1] for word in named if len(word) > 4 and word.endswith("s")}, key=len, reverse=True
    )
    shown = visible(text)
    if not wanted:
        return escape(shown)
    found = re.compile(rf"\b(?:{'|'.join(map(re.escape, wanted))})\w{{0,3}}\b", re.IGNORECASE)
    return _join(shown, [match.span() for match in found.finditer(shown)], "mark")


def _join(text: str, spans: Iterable[tuple[int, int]], element: str) -> Markup:
    at, pieces = 0, []
    for start, end in spans:
        pieces.append(escape(text[at:start]))
        pieces.append(Markup(f"<{element}>{{}}</{element}>").format(text[start:end]))
        at = end
    return Markup("").join([*pieces, escape(text[at:])])
