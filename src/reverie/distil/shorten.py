"""Shorten a sentence without changing its meaning.

Only whole tokens are left out and the others keep their order: greetings, thanks, forms of address, fillers and
empty judgements, and the speaker's own `I` at the beginning of a clause, since the speaker's name
precedes the line. A clause with a negation or a condition is never left out of a sentence that
stays, nor is a token with a digit, a link, code or a redaction marker.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from reverie.distil.lexicon import (
    ARTICLES,
    BOUND,
    CONDITIONS,
    EVALUATIVE,
    INTENSIFIERS,
    INTERJECTIONS,
    NUMBERS,
    OPENERS,
    POLITE,
    PRONOUNS,
    word_set,
)
from reverie.distil.tokens import Token

_BREAKS = frozenset(",;:—–-!?….")
_TRIM = _BREAKS | frozenset("*•|>")
_TURNS = frozenset({"and", "but", "so"})
_REQUESTS = word_set("please can could would will do don't if unless when but")
_EMPTY_SUBJECTS = frozenset(
    {"it", "it's", "its", "that's", "that", "this", "i'm", "i", "they're", "you", "you're", "we", "so"}
)
_BOUNDED = ARTICLES | NUMBERS | word_set("my your his her its our their this that these those for with to")
"""Words before which `just` means only: `Use just the blue cable`."""
_SELF = frozenset({"i", "i'm", "i've"})
_OPENING = INTERJECTIONS - {"nope", "nah"}
_SUBJECTS = (
    ARTICLES
    | PRONOUNS
    | word_set("i'm i've i'd i'll it's that's we're we've we'll they're they'll you're he's she's no not")
)
_LINKS = frozenset({"and", "but", "or", "so", "then", "also", "plus"})
_IDIOMS = (("can't", "wait"), ("no", "worries"), ("no", "problem"), ("not", "bad"), ("no", "doubt"))


def vocatives(speakers: Set[str]) -> frozenset[str]:
    """Return the names by which speakers may be addressed, and their prefixes (Mel for Melanie)."""
    out: set[str] = set()
    for speaker in speakers:
        for name in speaker.lower().split():
            out.update(name[:n] for n in range(3, len(name) + 1))
    return frozenset(out)


def shorten(tokens: Sequence[Token], names: Set[str], *, spoken: bool, whole: bool = False) -> list[Token]:
    """Return the tokens worth keeping; empty if the sentence is only chatter.

    `whole`: no clause is left out. A must-keep statement may depend on the plainest of them ("ask me for it").
    """
    if not any(t.telling or t.hard for t in tokens):
        return []
    body = _without_opening(tokens, names)
    parts = clauses(body)
    keep = [_is_informative(part, names) for part in parts]
    if not any(keep):
        return []
    last = len(parts) - 1
    kept: list[Token] = []
    for i, part in enumerate(parts):
        if not keep[i] and not whole:
            after = next((parts[j] for j in range(i + 1, last + 1) if keep[j]), None)
            keep[i] = after is not None and _lends_subject(part, after, names)
        if not keep[i] and not whole:
            follows = _first_word(parts[i + 1]) if i < last and keep[i + 1] else ""
            if not (
                _is_binding(part) or (i == 0 and follows in BOUND) or _is_listed(parts, i, names) or _labels(parts, i)
            ):
                continue
        kept.extend(part)
    out = _trimmed(_without_fillers(kept, spoken=spoken))
    if _stars(out) < _stars(tokens):  # no half of an emphasis stays
        return [t._replace(gap=t.gap or _opens_gap(out, i)) for i, t in enumerate(out) if not _doubled(out, i)]
    return out


def _first_word(part: Sequence[Token]) -> str:
    return next((t.lower for t in part if t.word), "")


def _without_opening(tokens: Sequence[Token], names: Set[str]) -> Sequence[Token]:
    """Return the tokens without greetings and forms of address at the beginning."""
    i, n = 0, len(tokens)
    while i < n:
        j = i
        while j < n and (tokens[j].lower in _OPENING or _is_address(tokens[j], names)):
            j += 1
        if j == i:
            if tokens[i].word or tokens[i].text not in _TRIM:
                break
            i += 1
        elif j == n or not tokens[j].word or (j == i + 1 and tokens[i].lower in OPENERS):
            i = j
        else:
            break
    return tokens[i:]


def _is_address(token: Token, names: Set[str]) -> bool:
    return token.capital and token.lower in names


def clauses(tokens: Sequence[Token]) -> list[list[Token]]:
    """Cut a sentence at marks (a mark opens the clause after it) and before `and it was ...`.

    Brackets and quotations stay whole.
    """
    out: list[list[Token]] = [[]]
    worded = False  # the clause at hand has a word
    depth = 0
    aside = False
    quoted = False
    # A bracket after a space opens a clause of its own, which can be dropped; one inside a word (`f(x)`) does not.
    # Marks inside brackets and quotations do not cut: half a quotation would put words into someone's mouth.
    for i, t in enumerate(tokens):
        text = t.text
        ends = False
        if t.word and t.lower not in _TURNS:
            worded = True
        elif text in "([{":
            if depth == 0 and not quoted and t.gap and out[-1]:
                out.append([])
                worded = False
            aside = aside or (depth == 0 and not quoted and t.gap)
            depth += 1
        elif text in ")]}":
            depth = max(0, depth - 1)
            ends = aside and depth == 0
            aside = aside and not ends
        elif text in '"“”':
            quoted = not quoted if text == '"' else text == "“"
        elif depth == 0 and not quoted and worded:
            mark = text in _BREAKS and (t.gap or text in ",;:—–…!?.")
            turn = t.word and i + 1 < len(tokens) and tokens[i + 1].lower in _EMPTY_SUBJECTS
            if mark or turn:
                out.append([])
            worded = t.word or not mark
        elif t.word:
            worded = True
        out[-1].append(t)
        if ends:
            out.append([])
            worded = False
    # A tail without a word (a closing mark) belongs to the clause before it.
    if not out[-1] or (len(out) > 1 and not worded):
        rest = out.pop()
        if out:
            out[-1].extend(rest)
    return out


def _is_informative(part: Sequence[Token], names: Set[str]) -> bool:
    telling = False
    for t in part:
        if t.hard:
            return True
        if t.telling and not telling:
            telling = not _is_address(t, names)
    return telling and not (len(part) < 10 and _first_word(part) in POLITE)


def _is_binding(part: Sequence[Token]) -> bool:
    """Whether leaving the clause out could change the meaning of the others."""
    lows = [t.lower for t in part if t.word]
    if not CONDITIONS.isdisjoint(lows):
        return True
    if any(t.negates for t in part):
        return not any(lows[i : i + 2] == list(idiom) for idiom in _IDIOMS for i in range(len(lows) - 1))
    return False


def _lends_subject(part: Sequence[Token], after: Sequence[Token], names: Set[str]) -> bool:
    """Whether thanks or wishes name what the next clause is about: `Congratulations on the twins, born on 4 May`."""
    if not any(t.telling and not _is_address(t, names) for t in part):
        return False
    opens = next((t for t in after if t.word and t.lower not in _LINKS), None)
    return opens is not None and not opens.capital and opens.lower not in _SUBJECTS and opens.lower not in _REQUESTS


def _labels(parts: Sequence[Sequence[Token]], i: int) -> bool:
    """Whether a clause says what holds of the next one: `After: no driving`, `Do: ring twice`."""
    return i + 1 < len(parts) and parts[i + 1][0].text == ":" and _first_word(parts[i]) not in INTERJECTIONS


def _is_listed(parts: Sequence[Sequence[Token]], i: int, names: Set[str]) -> bool:
    """Whether a clause is an element between the commas of a list: `sisterhood, love, and dreams`."""
    if not 0 < i < len(parts) - 1:
        return False
    part, after = parts[i], parts[i + 1]
    words = [t for t in part if t.word]
    return (
        part[0].text == "," == after[0].text
        and len(words) <= 2
        and not any(t.lower in INTERJECTIONS or _is_address(t, names) for t in words)
    )


def _without_fillers(tokens: Sequence[Token], *, spoken: bool) -> list[Token]:
    out: list[Token] = []
    n = len(tokens)
    quoted = False
    own = False  # the sentence opened with the speaker's `I`, so an `and I` continues it
    for i, t in enumerate(tokens):
        low = t.lower
        if t.text in '"“”':
            quoted = not quoted
        if not quoted and t.word:
            after = tokens[i + 1] if i + 1 < n else None
            if after is not None and after.word and not (out and out[-1].negates):
                if low in INTENSIFIERS and not after.hard and not (low == "just" and after.lower in _BOUNDED):
                    continue
                if low in ("so", "pretty", "quite") and after.lower in EVALUATIVE:
                    continue
            if spoken and low in _SELF and not _introduces(tokens, i):
                if not out or out[-1].lower in OPENERS or out[-1].text in "-–—;":
                    own = True
                    continue
                if own and out[-1].lower in _LINKS:
                    continue
            if spoken and low == "am" and i and tokens[i - 1].lower == "i" and not _introduces(tokens, i):
                continue
        out.append(t)
    return out


def _introduces(tokens: Sequence[Token], i: int) -> bool:
    """Whether a name follows: `I'm Noor` introduces the speaker, `Noor` alone addresses someone."""
    after = [t for t in tokens[i + 1 : i + 3] if t.lower != "am"]
    return bool(after) and after[0].capital and tokens[i].lower != "i've"


def _trimmed(tokens: list[Token]) -> list[Token]:
    """Strip marks and linking words from both ends; a question keeps its mark."""
    start, end = 0, len(tokens)
    while start < end and ((not tokens[start].word and tokens[start].text in _TRIM) or tokens[start].lower in _LINKS):
        start += 1
    asked = end > 0 and tokens[-1].text == "?"
    while end > start and not tokens[end - 1].word and tokens[end - 1].text in _TRIM:
        end -= 1
    out = tokens[start:end]
    if out and asked:
        out.append(tokens[-1])
    return out


def _stars(tokens: Sequence[Token]) -> int:
    return sum(t.text == "*" for t in tokens)


def _opens_gap(tokens: Sequence[Token], i: int) -> bool:
    """Whether white space precedes the stars before a token."""
    while i > 0 and _doubled(tokens, i - 1) and not tokens[i].gap:
        i -= 1
    return tokens[i].gap


def _doubled(tokens: Sequence[Token], i: int) -> bool:
    """Whether a token is half of `**`."""
    if tokens[i].text != "*":
        return False
    before = i > 0 and not tokens[i].gap and tokens[i - 1].text == "*"
    return before or (i + 1 < len(tokens) and not tokens[i + 1].gap and tokens[i + 1].text == "*")
