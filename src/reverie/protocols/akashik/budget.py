"""Units within a token budget: whole while they fit, then shortened at the end of a word."""

from __future__ import annotations

import re
from collections.abc import Callable

from reverie.core.ports import TokenCounter

MARK = " …"
_SPACE = re.compile(r"\s+")
_SENTENCE = re.compile(r"[.!?。！？]+(?=\s|$)|\n")
SUMMARY_TOKENS = 48
SMALLEST = 8
"""Minimum tokens of a shortened unit; with fewer it says nothing."""


def counting(tokens: TokenCounter | None) -> Callable[[str], int]:
    """Return the token counter: the host's tokenizer, or four characters per token."""
    return tokens.count if tokens is not None else lambda text: (len(text) + 3) // 4


def cut(content: str, length: int | None) -> str:
    """The first `length` characters, marked as shortened."""
    return content if length is None else content[:length].rstrip() + MARK


def shortened(content: str, allowed: int, count: Callable[[str], int]) -> int | None:
    """Return the length of the longest prefix of `content` that ends at a word and fits `allowed` tokens together with
    the ellipsis mark; None when not even a few words fit.
    """
    ends = [match.start() for match in _SPACE.finditer(content) if match.start() > 0]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if count(cut(content, ends[middle - 1])) <= allowed:
            low = middle
        else:
            high = middle - 1
    return ends[low - 1] if low else None


def gist(content: str, count: Callable[[str], int]) -> int | None:
    """Return the end of a summary: after the first sentence or after `SUMMARY_TOKENS`; None when `content` is no longer
    than that.
    """
    first = _SENTENCE.search(content)
    end = first.end() if first and content[first.end() :].strip() else len(content)
    if count(content[:end]) > SUMMARY_TOKENS:
        return shortened(content, SUMMARY_TOKENS, count)
    return end if end < len(content) else None


def fit(
    contents: list[str], budget: int | None, count: Callable[[str], int]
) -> tuple[list[tuple[int, int | None]], int]:
    """Choose from `contents`, best first, up to the budget: (index, length or None for whole), and the tokens used."""
    chosen: list[tuple[int, int | None]] = []
    used = 0
    for index, content in enumerate(contents):
        size = count(content)
        if budget is None or used + size <= budget:
            chosen.append((index, None))
            used += size
            continue
        room = budget - used
        length = shortened(content, room, count) if room >= SMALLEST else None
        if length is not None:
            chosen.append((index, length))
            used += count(cut(content, length))
        if budget - used < SMALLEST:
            break
    return chosen, used
