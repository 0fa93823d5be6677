"""Split the content of an entry into the pieces that a distillate can keep or drop.

Prose is split into sentences, lists into items; fenced code stays line by line, so that no
statement is ever cut inside an identifier. A bracketed aside such as `[shows: a red bicycle]` is a
piece of its own. White space inside a piece is folded to single spaces (not in code).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from sentencex import segment

from reverie.distil.lexicon import ABBREVIATIONS
from reverie.search.languages import ENGLISH, guess


class Form(Enum):
    PROSE = "prose"
    ITEM = "item"
    CODE = "code"
    ASIDE = "aside"
    TITLE = "title"
    HEAD = "head"
    """The short heading of a list, which is part of each of its items."""


class Piece(NamedTuple):
    text: str
    form: Form
    head: str = ""
    """The short headings of the list that an item is in: `Never:`. Without them it may say the opposite."""

    @property
    def whole(self) -> str:
        """The text with its headings."""
        return f"{self.head} {self.text}" if self.head else self.text


_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_BOLD = re.compile(r"(\*\*|__)([^*_]+?):?\1:?")
_LONGEST_HEAD = 6
"""Words of a heading that is repeated with every item."""
_PRESENTS = re.compile(
    r"(?i)(?:sure|ok|okay|well|here(?:'s|’s| is| are)|hier (?:ist|sind)|voici|aquí|ecco)\b"
    r"(?!.*(?:\b(?:not|never|no)\b|n['’]t\b))"
)
"""The beginning of a heading that only presents a list: `Here are some ideas:`."""
_TITLE = re.compile(r"^\s*#{1,6}\s+")
_ASIDE = re.compile(r"\s*\[(?!REDACTED)([a-z][a-z ]{2,20}): ([^\[\]]+)\]")
_SPACE = re.compile(r"\s+")
_MANY = re.compile(r"[.!?。！？…]['\")\]]*\s*\S|[。！？]")
# Words above which a sentence is no single statement (a dump, a run-on); it is cut at marks.
LONGEST = 60
_SHORT = 24
"""Words below which a sentence is not cut at a semicolon."""


def split(content: str) -> list[Piece]:
    """Return the pieces of `content` in order; none for blank text."""
    out: list[Piece] = []
    if "\n" not in content and "[" not in content:
        _prose(content, Form.PROSE, out)
        return out
    fenced = False
    paragraph: list[str] = []
    heads: list[tuple[int, str]] = []  # of the lists at hand, each with the indentation of its line
    nested = -1  # indentation of the last item

    def flush() -> None:
        if paragraph:
            _prose(" ".join(paragraph), Form.PROSE, out)
            paragraph.clear()

    for line in content.split("\n"):
        indent = len(line) - len(line.lstrip())
        if _FENCE.match(line):
            flush()
            fenced = not fenced
        elif fenced:
            if line.strip():
                out.append(Piece(line.strip(), Form.CODE))
        elif not line.strip():
            flush()
        elif item := _ITEM.match(line):
            if len(paragraph) > 1 and paragraph[-1].rstrip().endswith((":", "：")):
                head = paragraph.pop()  # it is no part of the line above it
                flush()
                paragraph.append(head)
            flush()
            if not line[item.end() :].strip():
                continue
            while heads and heads[-1][0] >= indent:
                heads.pop()
            if out and (out[-1].form in (Form.TITLE, Form.PROSE) or (out[-1].form is Form.ITEM and nested < indent)):
                _open(heads, nested if out[-1].form is Form.ITEM else -1, out)
            nested = indent
            _prose(line[item.end() :], Form.ITEM, out, " ".join([head for _, head in heads]))
        elif title := _TITLE.match(line):
            flush()
            heads.clear()
            if text := _SPACE.sub(" ", line[title.end() :]).strip():
                out.append(Piece(text, Form.TITLE))
        else:
            if not indent:
                heads.clear()
            paragraph.append(line)
    flush()
    return out


def _open(heads: list[tuple[int, str]], indent: int, out: list[Piece]) -> None:
    """Take the last piece for the heading of a list, if it is short and reads like one."""
    last = out[-1]
    bold = _BOLD.fullmatch(last.text)
    text = bold[2] if bold else last.text
    if last.text.count(" ") >= _LONGEST_HEAD or not (bold or last.form is Form.TITLE or text.endswith((":", "："))):
        return
    if _PRESENTS.match(text):
        return
    out[-1] = last._replace(form=Form.HEAD)
    heads.append((indent, f"{text.rstrip(':： ')}:"))


def _prose(text: str, form: Form, out: list[Piece], head: str = "") -> None:
    text = _SPACE.sub(" ", text).strip()
    if not text:
        return
    asides: list[str] = []
    if "[" in text and _ASIDE.search(text):

        def take(m: re.Match[str]) -> str:
            asides.append(f"{m[1]}: {m[2].strip()}")
            return ""

        text = _ASIDE.sub(take, text).strip()
    if text:
        for raw in _rejoined(segment("en", text)) if _MANY.search(text) else [text]:
            for sentence in _missed_ends(raw.strip()):
                for half in _halves(sentence):
                    for part in _bounded(half):
                        out.append(Piece(part, form, head))
                        head = ""  # the sentences after the first explain it: `Don't: use bleach. It ruins the seal.`
    out.extend(Piece(aside, Form.ASIDE) for aside in asides)


_TAIL = 12
_TITLED = re.compile(r"\b(?:Ms|Mrs|Mr|Dr|Prof|St|No|Nr)\.\s*$")
_ORDINAL = re.compile(r"(?:^|[^\W\d_]|\d?[,;:(])\s*\b\d{1,2}\.\s*$")
_LAST_WORD = re.compile(r"\b([^\W\d_]+)\.\s*$")
_COUNTER = re.compile(r"(?:^|[:.!?;]\s+)\d{1,2}[.)]\s*$")
"""The number of a list that is written in one line."""


def _rejoined(sentences: Iterable[str]) -> list[str]:
    """Join sentences that the splitter cut after a title, `Ms. Adeyemi`, an ordinal, `am 3. Dezember`, an abbreviation,
    `11,400 euro incl. fitting`, an ellipsis, `MERGE ... RETURNING`, or a list number.
    """
    out: list[str] = []
    for sentence in sentences:
        if out and (_TITLED.search(out[-1][-_TAIL:]) or _is_ordinal(out[-1], sentence) or _goes_on(out[-1], sentence)):
            out[-1] += sentence
        elif out and (counter := _COUNTER.search(out[-1])):
            number = counter[0].lstrip(":.!?; ")
            out[-1] = out[-1].rstrip()[: -len(number.rstrip())]
            out.append(number + sentence)
        else:
            out.append(sentence)
    return [sentence for sentence in out if sentence.strip()]


def _goes_on(before: str, after: str) -> bool:
    """Whether a sentence was cut in its middle: after an abbreviation and not before a capital, or at an ellipsis
    between spaces, which replaces omitted words.
    """
    last = _LAST_WORD.search(before[-_TAIL:])
    if last is None:
        return before.rstrip().endswith(" ...")
    return last[1].lower() in ABBREVIATIONS and not after.lstrip()[:1].isupper()


def _is_ordinal(before: str, after: str) -> bool:
    """Whether the number and the full stop at the end of `before` are an ordinal, as written in many languages."""
    if not _ORDINAL.search(before[-_TAIL:]):
        return False
    return after.lstrip()[:1].islower() or guess(before + after)[0] != ENGLISH


# The splitter takes some short words for abbreviations: "... for me. It is ..."
_END = re.compile(r"\b([^\W\d_]{2,})[.!?]\s+(?=[A-Z\"'])")


def _missed_ends(text: str) -> list[str]:
    if not text:
        return []
    out = []
    start = 0
    for m in _END.finditer(text):
        if m[1].lower() not in ABBREVIATIONS and '"' not in text[start : m.start()]:
            out.append(text[start : m.end()].rstrip())
            start = m.end()
    out.append(text[start:])
    return out


_SOFT_END = re.compile(r"(?<=[;:,])\s|\s(?=[-–—]\s)|\s(?=\|\s)")


_OPENS = re.compile(r"[\"“(\[`:]")


def _halves(sentence: str) -> list[str]:
    """Split long sentences that a semicolon joins; a list after a colon, a quotation or code stays whole.

    A short sentence stays whole too: its second half often depends on the subject of the first.
    """
    opened = _OPENS.search(sentence)
    if sentence.count(" ") < _SHORT or (opened and sentence.rfind(";") > opened.start()):
        return [sentence]
    return [part for part in re.split(r";\s+", sentence) if part]


def _bounded(sentence: str) -> list[str]:
    """Cut a text too long for one statement at marks inside it, never inside a word."""
    if sentence.count(" ") < LONGEST:
        return [sentence]
    out: list[str] = []
    words: list[str] = []
    for part in _SOFT_END.split(sentence):
        fresh = part.split(" ")
        if words and len(words) + len(fresh) > LONGEST:
            out.append(" ".join(words))
            words = []
        words.extend(fresh)
        if len(words) > LONGEST:
            cuts = range(0, len(words), LONGEST)
            out.extend(" ".join(words[at : at + LONGEST]) for at in cuts[:-1])
            words = words[cuts[-1] :]
    if words:
        out.append(" ".join(words))
    return out
