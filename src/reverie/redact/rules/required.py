"""Required strings of a pattern: a few strings, one of which is in every match.

A search for two thousand strings at once costs the same for every text. An automaton of three hundred patterns does
not: on random text nearly every byte makes a new state. So the strings are searched for first, and a pattern only on
the lines with one of its strings.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from reverie.redact.entropy import words

# The standard library's own parser of patterns; RE2 syntax is a subset of its.
parser: Final[Any] = import_module("re._parser")
sre: Final[Any] = import_module("re._constants")

STORED: Final = Path(__file__).parent / "required.json"
"""The strings of the built-in patterns, written by `tools/compile_rules.py`: computing them is slow."""

FOLDED: Final = bytes(c + 32 if 65 <= c <= 90 else c - 32 if 0xE0 <= c <= 0xFE and c != 0xF7 else c for c in range(256))
"""Folds the case of Latin-1 letters, as RE2 does for bytes; applied to both texts and strings."""

_MOST: Final = 48
_FEW: Final = 6
# Letter pairs that occur in every text, and single characters that do not.
_COMMON: Final = words(
    """
    th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne
    ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa
    ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi sc sa nr ls hc
    """
)
_RARE: Final = b"$@|[~\\%"

Strings = frozenset[bytes]
Exact = Strings | None
Part = tuple[Exact, Exact]
"""For a part of a pattern: all strings that it matches, if they are few; else strings one of which is in a match."""


def required(pattern: bytes) -> Strings:
    """Return folded strings, one of which is in every match of `pattern`; none if they would occur in any text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        exact, within = _sequence(parser.parse(pattern.decode("latin-1")))
    best = _better(_telling(exact), within)
    return best if best is not None and all(map(_is_rare, best)) else frozenset()


def key(pattern: bytes) -> str:
    """Return the key under which a pattern's strings are stored."""
    return hashlib.sha256(pattern).hexdigest()[:16]


def stored() -> dict[str, list[str]]:
    """Return the strings of the built-in patterns by key, as Latin-1."""
    return msgspec.json.decode(STORED.read_bytes(), type=dict[str, list[str]]) if STORED.exists() else {}


def all_required(patterns: Iterable[bytes]) -> list[Strings]:
    """Return the required strings of each pattern, from the file where it has them."""
    known = stored()
    return [
        frozenset(text.encode("latin-1") for text in found)
        if (found := known.get(key(pattern))) is not None
        else required(pattern)
        for pattern in patterns
    ]


def _is_rare(text: bytes) -> bool:
    """Whether `text` is rare in ordinary text."""
    if len(text) == 2:
        return b" " not in text and text[1:] != b"." and text.decode("latin-1") not in _COMMON
    return len(text) > 2 or text in _RARE


def _better(one: Exact, other: Exact) -> Exact:
    """Return the set with the longer strings; of equal ones, the smaller set."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda strings: (min(map(len, strings)), -len(strings)))


def _telling(exact: Exact) -> Exact:
    return exact if exact and b"" not in exact else None


def _sequence(nodes: Any) -> Part:
    """Join the strings of a sequence of parts, as long as each part has few of them."""
    best: Exact = None
    run: Strings = frozenset({b""})
    whole = True
    for operator, argument in nodes:
        exact, within = _part(operator, argument)
        if exact is not None and len(exact) * len(run) <= _MOST:
            run = frozenset(x + y for x in run for y in exact)
            continue
        best, whole = _better(best, _telling(run)), False
        best, run = (best, exact) if exact is not None else (_better(best, within), frozenset({b""}))
    return (run, None) if whole else (None, _better(best, _telling(run)))


def _part(operator: Any, argument: Any) -> Part:
    if operator is sre.LITERAL:
        return frozenset({FOLDED[argument : argument + 1]}), None
    if operator is sre.AT:
        return frozenset({b""}), None
    if operator is sre.IN:
        return _one_of(argument), None
    if operator is sre.SUBPATTERN:
        return _sequence(argument[-1])
    if operator is sre.BRANCH:
        return _either([_sequence(branch) for branch in argument[1]])
    if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        return _repeated(*argument)
    return None, None


def _one_of(members: Any) -> Exact:
    """Return the characters of a class, if they are few."""
    characters: set[bytes] = set()
    for operator, argument in members:
        if operator is sre.LITERAL:
            characters.add(FOLDED[argument : argument + 1])
        elif operator is sre.RANGE:
            characters |= {FOLDED[c : c + 1] for c in range(argument[0], argument[1] + 1)}
        else:
            return None
    return frozenset(characters) if len(characters) <= _FEW else None


def _either(branches: list[Part]) -> Part:
    wholes = [exact for exact, _ in branches if exact is not None]
    if len(wholes) == len(branches) and sum(map(len, wholes)) <= _MOST:
        return frozenset().union(*wholes), None
    bests = [_better(_telling(exact), within) for exact, within in branches]
    found = [best for best in bests if best is not None]
    return None, frozenset().union(*found) if len(found) == len(bests) else None


def _repeated(least: int, most: int, nodes: Any) -> Part:
    exact, within = _sequence(nodes)
    if least == 0:
        return (exact | {b""}, None) if most == 1 and exact is not None else (None, None)
    if least == most and exact is not None and len(exact) ** least <= _MOST:
        run: Strings = frozenset({b""})
        for _ in range(least):
            run = frozenset(x + y for x in run for y in exact)
        return run, None
    return None, _better(_telling(exact), within)
