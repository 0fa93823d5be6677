"""Tests whether a value is plausible for its name, and finds its end."""

from __future__ import annotations

from itertools import pairwise

from reverie.redact.entropy import remembered, word_share
from reverie.redact.lazy import lazy
from reverie.redact.rules.plausible import (
    is_code,
    is_location,
    is_password_like,
    is_placeholder,
    is_random_value,
    is_scramble,
    is_technical,
    is_term,
    is_told_value,
    without_markers,
)
from reverie.redact.rules.rule import Span

# `Clover891-Cobalt9`, `Barley69%Ember0`: passwords as people make them up.
_CHOSEN = lazy(r"^[A-Z][a-z]{2,}\d+[^\w\s]?[A-Z][a-z]{2,}\d+[^\w\s]?$")
_NUMBERED_NAME = lazy(r"[a-z]{2,12}(?:-[a-z]{2,12}){1,4}-\d+$")
_TRAILING = ".,:;!?)]}>*_\\"


def cut(data: bytes, start: int, end: int, *, quoted: bool) -> Span:
    """Cut closing punctuation, or the escape before a quote, from the end of a value."""
    raw = data[start:end]
    if quoted:
        kept = raw.rstrip(b"\\")
        return start, start + len(kept)
    kept = raw.rstrip(b"\\")
    while kept and chr(kept[-1]) in _TRAILING and chr(kept[-1]) != "!":
        closer = kept[-1:]
        opener = {b")": b"(", b"]": b"[", b"}": b"{"}.get(closer)
        if opener and opener in kept and kept.count(opener) >= kept.count(closer):
            break
        kept = kept[:-1]
    return start, start + len(kept)


# The visible part of a masked value: `sk-live-...`, `sk-live-****`.
_MASK = lazy(rb"[-_](?:\.{2,}|\xe2\x80\xa6)|[-_]\*{3,}|.\*{4,}")


def is_masked(data: bytes, start: int, end: int, whole: int) -> bool:
    """Whether the text cut off between `end` and `whole` masks the rest of the value."""
    return start < end < whole and _MASK.match(data, end - 1, whole) is not None


def judge_named(value: str, strength: str) -> bool:
    """Whether `value` is plausible as a literal given to a name of this strength."""
    return judge(value, strength, quoted=True, assigned=True) and not is_code(value)


@remembered
def judge(value: str, strength: str, *, quoted: bool, assigned: bool) -> bool:
    """Whether `value` is plausible for a key of this strength. `assigned`: set by `=` rather than described by `:`."""
    rest = without_markers(value)
    if rest != value.strip(" \t.,;:!?)]}>\"'`"):
        # Partly redacted already: the rest counts only if it could be a password by itself.
        return len(rest) >= 6 and is_password_like(rest)
    if len(value) < 4 or is_substitute(value, quoted=quoted):
        return False
    if is_scramble(value):
        return True
    if strength == "mention":
        return _is_mentioned(value, quoted=quoted)
    if strength == "secret" and not quoted and not assigned and _NUMBERED_NAME.match(value):
        return False
    if is_random_value(value) and not is_term(value):
        return True
    literal = quoted and assigned
    if " " in value.strip():
        return strength == "password" and literal and is_password_like(value) and value.count(" ") <= 3
    if strength == "password":
        return _is_password(value, literal=literal)
    return _is_secret(value, quoted=quoted, assigned=assigned)


def is_substitute(value: str, *, quoted: bool) -> bool:
    """Whether `value` is no value: a blank to be filled in, an address, the beginning of a sentence, code."""
    return is_placeholder(value) or is_location(value) or is_beginning(value) or (not quoted and is_code(value))


def _is_mentioned(value: str, *, quoted: bool) -> bool:
    """Whether `value` is clearly a secret, which a name that only mentions a credential requires."""
    if " " in value:
        return False
    return (is_random_value(value) and len(value) >= 16) or (quoted and is_told_value(value))


def _is_password(value: str, *, literal: bool) -> bool:
    """Whether the value of a name for passwords is one that a person chose."""
    if value.isdigit():
        return len(value) >= 6
    if is_technical(value):
        return False
    if is_password_like(value):
        return len(value) >= 5
    # Plain words: only where somebody assigns a literal.
    return literal and len(value) >= 6 and not is_term(value)


def _is_secret(value: str, *, quoted: bool, assigned: bool) -> bool:
    """Whether a value that is not clearly random is plausible for a name for keys, tokens and the like."""
    if is_term(value) or len(value) < 8:
        return False
    if _CHOSEN.search(value):
        return True
    literal = quoted and assigned
    share = word_share(value)
    if not (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return literal and len(value) >= 12 and share <= 0.6
    if _is_long_run(value, quoted=quoted, assigned=assigned) or _has_symbols(value, quoted=quoted, assigned=assigned):
        return True
    return share <= (0.75 if literal else 0.45) and len(value) >= (8 if quoted or assigned else 12)


def _is_long_run(value: str, *, quoted: bool, assigned: bool) -> bool:
    """Whether `value` is a long literal of letters and digits only."""
    if not quoted or not value.isalnum():
        return False
    return len(value) >= 16 if assigned else len(value) >= 20 and _changes(value) >= 4


def _has_symbols(value: str, *, quoted: bool, assigned: bool) -> bool:
    """Whether `value` has ten characters or more, with symbols among letters and digits as in no name."""
    if not assigned or len(value) < 10:
        return False
    symbols = len({c for c in value if c in "!@#$%^&*+=~?"})
    if quoted and symbols:
        return True
    return "(" not in value and (symbols >= 2 or _has_all_kinds(value))


def _has_all_kinds(value: str) -> bool:
    """Whether `value` has both letter cases and a symbol that no expression has in the middle."""
    symbols = any(c in "!@#$%^~?" for c in value)
    return symbols and len(value) >= 12 and any(map(str.islower, value)) and any(map(str.isupper, value))


def _changes(value: str) -> int:
    """Count the changes between letters and digits."""
    return sum(a.isdigit() != b.isdigit() for a, b in pairwise(value))


def is_beginning(value: str) -> bool:
    """Whether `value` is a word that more words follow: `"application:" + key`, `(leave blank)`."""
    opened = value[0] == "(" and value[1:].replace("-", "").isalpha()
    return opened or (value[-1:] in ":=" and value[:-1].replace(" ", "").isalpha())
