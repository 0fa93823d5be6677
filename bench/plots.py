"""Bars as SVG, without a library: one plot a question, readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDE, _LEFT, _ROW, _TOP = 720, 200, 26, 34
_OWN, _OTHERS, _INK = "#2f6f8f", "#9aa5ad", "#777"


def bars(title: str, rows: Sequence[tuple[str, float]], form: str, *, own: str = "Reverie") -> str:
    """Horizontal bars from zero; `form` writes a value, such as `{:,.0f}/s`. Rows of `own` have a colour."""
    most = max((value for _, value in rows), default=0) or 1
    height = _TOP + _ROW * len(rows) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<text x="0" y="18" font-weight="600" fill="{_INK}">{escape(title)}</text>',
    ]
    for number, (name, value) in enumerate(rows):
        y = _TOP + _ROW * number
        width = max(1.0, (_WIDE - _LEFT - 110) * value / most)
        colour = _OWN if name.startswith(own) else _OTHERS
        lines += [
            f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end" fill="{_INK}">{escape(name)}</text>',
            f'<rect x="{_LEFT}" y="{y + 2}" width="{width:.1f}" height="18" rx="2" fill="{colour}"/>',
            f'<text x="{_LEFT + width + 6:.1f}" y="{y + 15}" fill="{_INK}">{escape(form.format(value))}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
