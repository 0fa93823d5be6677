"""The rule type, and the building blocks of its patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reverie.redact.lazy import lazy
from reverie.redact.meter import VERDICT
from reverie.redact.rules.plausible import is_blank

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret-shaped text.

    `pattern` is RE2 syntax over UTF-8 bytes and never crosses a line. The first group that took part in the match is
    replaced, or the whole match if the pattern has no group.

    `extent` finds the end of a long value whose pattern matches only the beginning: counting to 256 makes a program of
    thousands of steps, too many for a fast automaton.

    `check` may refuse the matched text; `refine` may refuse it or cut it smaller, and sees its surroundings.

    `trigger` is the pattern of the filter, by default the beginning of `pattern`. It must match wherever the rule finds
    something and may match more; it is cheapest when it ends early and keeps no state.

    `locate` replaces the pattern for secrets that span lines. It also yields an empty span at each candidate, row or
    cell that it passes over, so that its work can be counted.

    A `generic` rule gives way to a specific one where both match. The triggers of rules marked `apart` are compiled
    separately: they count long runs or keep state for the rest of a line, which would multiply the states of all the
    others. The alternatives of a pattern that is `split` are searched for one by one: in one automaton they would
    multiply each other's states.

    `price` is the cost of a candidate, judged or passed over, in steps of the meter.

    `label` names the marker and the finding, by default the kind. `asked` names the checks, for the fingerprint.

    `examples` must be redacted and `near_misses` left alone; the tests check both. They are templates: `⟨w20⟩` stands
    for twenty random characters of the class `w` (see `sample.py`), so that no file here holds anything that looks
    like a live credential.
    """

    kind: str
    pattern: str
    examples: tuple[str, ...] = ()
    near_misses: tuple[str, ...] = ()
    check: Callable[[str], bool] | None = None
    refine: Callable[[bytes, int, int, int], Span | None] | None = None
    extent: Callable[[bytes, int], int] | None = None
    locate: Callable[[bytes], Iterable[Span]] | None = None
    trigger: str = ""
    generic: bool = False
    apart: bool = False
    split: bool = False
    price: int = VERDICT
    label: str = ""
    asked: str = ""

    def __post_init__(self) -> None:
        if not self.trigger:
            object.__setattr__(self, "trigger", shortened(self.pattern))
        if not self.label:
            object.__setattr__(self, "label", self.kind)

    def judge(self, data: bytes, match_start: int, start: int, end: int) -> Span | None:
        """Return the span to replace for a match of the pattern; None if it is no secret after all."""
        if self.check is not None and not self.check(data[start:end].decode("utf-8", "replace")):
            return None
        if self.is_token and is_blank(data[start:end].decode("utf-8", "replace")):
            return None
        if self.refine is not None:
            return self.refine(data, match_start, start, end)
        return start, end

    @property
    def patterns(self) -> list[str]:
        """List the patterns to search for: the pattern, or its alternatives one by one."""
        return alternatives(self.pattern) if self.split else [self.pattern]

    @property
    def is_token(self) -> bool:
        """Whether the rule is a token, known by its first characters: its trigger begins as `token` does."""
        return self.trigger.startswith(LEFT)

    @property
    def fingerprint(self) -> str:
        """Everything that decides a verdict of the rule, as one line."""
        functions = (self.check, self.refine, self.extent, self.locate)
        names = [getattr(f, "__qualname__", "") for f in functions if f is not None]
        settings = [self.label, self.asked, str(self.generic), str(self.split)]
        return "\t".join([self.kind, self.pattern, self.trigger, *settings, *names])


_RUN = 8
_COUNT = lazy(r"\{(\d+)(?:,\d*)?\}")
# The structure of a pattern; an escape or a class counts as one sign.
_SIGN = lazy(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]")


def shortened(pattern: str) -> str:
    """Return a pattern that matches wherever `pattern` does, cut after the first long repetition of each alternative.

    All triggers share one automaton, whose states are the combinations of their counts. With the long
    counts of two hundred token formats in it, random-looking text would make a new state of nearly every byte.
    """
    if all(int(count) <= _RUN for count in _COUNT.findall(pattern)):
        return pattern
    return "|".join(map(_shortened_alternative, alternatives(pattern)))


def alternatives(pattern: str) -> list[str]:
    """Split `pattern` at the bars outside groups and classes."""
    parts, depth, start = [], 0, 0
    for sign in _SIGN.finditer(pattern):
        if sign.group() == "|" and depth == 0:
            parts.append(pattern[start : sign.start()])
            start = sign.end()
        depth += (sign.group() == "(") - (sign.group() == ")")
    return [*parts, pattern[start:]]


def _shortened_alternative(pattern: str) -> str:
    head = re.match(r"((?:\(\?[a-z]+\))?" + re.escape(LEFT) + r")\((.*)\)\Z", pattern, re.S)
    if head and _balanced(head.group(2)):
        inner = "|".join(map(_shortened_alternative, alternatives(head.group(2))))
        return f"{head.group(1)}(?:{inner})"
    for count in _COUNT.finditer(pattern):
        before = pattern[: count.start()]
        if int(count.group(1)) > _RUN and _balanced(before):
            return f"{before}{{{_RUN}}}"
    return pattern


def _balanced(pattern: str) -> bool:
    depth = 0
    for sign in _SIGN.finditer(pattern):
        depth += (sign.group() == "(") - (sign.group() == ")")
        if depth < 0:
            return False
    return depth == 0


# A token may follow a word boundary, an underscore, an escaped line end (`\nghp_...`) or a percent escape.
LEFT = r"(?:\b|_|\\[nrtbf]|%[0-9A-Fa-f]{2})"
UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"


def token(body: str) -> str:
    """Return the pattern of a token that is known by its own shape."""
    return rf"{LEFT}({body})"
