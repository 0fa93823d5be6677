"""The searchable text of an entry, and the compared words of a question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.core.subject import MARKS
from reverie.search.languages import FUNCTION_WORDS, detect, fold

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def searchable(
    content: str, *, speaker: str | None = None, tags: Sequence[str] = (), subject: str | None = None
) -> str:
    """The text whose words are indexed and whose vector is stored: speaker, content and labels.

    It does not hold the time: a time in a question is compared with the entry's own (`dates.py`). Tags set by programs
    (`~`) and by dreams are marks: entries are filtered by them, and not found by their words.
    """
    said = f"{speaker}: {content}" if speaker else content
    if not subject and not tags:
        return said
    marks = [tag for tag in tags if not tag.startswith(MARKS)]
    labels = [label for label in (subject, *marks) if label and label not in content]
    return f"{said} ({', '.join(labels)})" if labels else said


def comparable(query: str) -> str:
    """The text whose vector represents a question: the content words, or the whole question if it has none."""
    common = FUNCTION_WORDS[detect(query)]
    kept = [word for word in _WORD.findall(query) if fold(word).replace("’", "").replace("'", "") not in common]
    return " ".join(kept) or query
