"""Fact survival: which questions about a corpus can still be answered from a distilled text.

A question survives if one line of the text holds every word of its answer and is about the question:
it shares at least a third of the question's other words. Long lines count in windows of 60 words.
For questions about a time, the date heading above a line belongs to the line. Words are compared
without case and common endings. No model, no randomness; `control` exchanges the answers between
questions and so shows what chance would score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "s", "e", "y")
_PLAIN = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "and",
        "or",
        "but",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "with",
        "as",
        "by",
        "from",
        "what",
        "when",
        "where",
        "who",
        "whom",
        "whose",
        "which",
        "how",
        "why",
        "would",
        "could",
        "should",
        "will",
        "can",
        "may",
        "must",
        "i",
        "you",
        "he",
        "she",
        "they",
        "we",
        "his",
        "her",
        "their",
        "my",
        "your",
        "our",
        "me",
        "him",
        "them",
        "about",
        "into",
        "than",
        "then",
        "so",
        "if",
        "not",
        "no",
        "many",
        "much",
        "long",
        "which",
        "there",
        "here",
        "up",
        "out",
        "any",
        "all",
        "some",
    ]
)
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_TIME = re.compile(r"^(?:when|since when|until when|by when|before when|at what time|on which day)\b", re.IGNORECASE)
_HEADING = re.compile(r"^\[\d{1,2} [A-Z][a-z]+ \d{4}\]$")
_WINDOW = 60
_NUMBERS = {
    w: str(n)
    for n, w in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}


@dataclass(frozen=True)
class Question:
    ask: str
    answer: tuple[str, ...]  # every part must survive, each in one line
    group: str = "all"


def words(text: str) -> set[str]:
    return {_plain(w) for w in _WORD.findall(text.lower())}


def _plain(word: str) -> str:
    if word in _NUMBERS:
        return _NUMBERS[word]
    if len(word) < 4 or word in _MONTHS or not word.isalpha():
        return word.lstrip("0") or word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def units(text: str) -> list[tuple[set[str], set[str]]]:
    """(words of a line or window, words of the heading above it)"""
    out = []
    heading: set[str] = set()
    for line in text.split("\n"):
        if _HEADING.match(line):
            heading = words(line)
            continue
        parts = line.split()
        for start in range(0, max(1, len(parts) - _WINDOW // 2), _WINDOW // 2):
            window = words(" ".join(parts[start : start + _WINDOW]))
            if window:
                out.append((window, heading))
    return out


def survived(text: str, questions: Sequence[Question]) -> list[bool]:
    lines = units(text)
    holding: dict[str, set[int]] = {}
    for i, (line, heading) in enumerate(lines):
        for word in line | heading:
            holding.setdefault(word, set()).add(i)
    return [all(_holds(q.ask, part, lines, holding) for part in q.answer) for q in questions]


def _holds(ask: str, answer: str, lines: Sequence[tuple[set[str], set[str]]], holding: dict[str, set[int]]) -> bool:
    needed = {w for w in words(answer) if w not in _PLAIN} or words(answer)
    about = {w for w in words(ask) if w not in _PLAIN} - needed
    timely = bool(_TIME.match(ask))
    found = set.intersection(*(holding.get(w, set()) for w in needed))
    for i in found:
        line, heading = lines[i]
        seen = line | heading if timely else line
        if needed <= seen and len(about & line) * 3 >= len(about):
            return True
    return False


def control(questions: Sequence[Question]) -> list[Question]:
    """The same questions with each other's answers."""
    shift = 7 % max(1, len(questions))
    answers = [q.answer for q in questions]
    return [Question(q.ask, a, q.group) for q, a in zip(questions, answers[shift:] + answers[:shift], strict=True)]


def share(found: Iterable[bool]) -> float:
    values = list(found)
    return 100 * sum(values) / len(values) if values else 0.0


FUNCTION = _PLAIN | frozenset(
    ["s", "t", "ll", "re", "ve", "m", "d", "am", "just", "very", "too", "over", "more", "most"]
)


def function_word_share(text: str) -> float:
    """Per cent of a text's words that are grammar: natural English has 35 to 50, a keyword soup has few."""
    found = [w for w in _WORD.findall(text.lower()) if w.isalpha()]
    return 100 * sum(w in FUNCTION for w in found) / max(1, len(found))
