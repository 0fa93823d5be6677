"""The redactor: text in; text without secrets and counts of findings out.

One pass finds spans in three ways: known values, look-alike markers, and the rule table. Overlapping spans become one
marker. A replacement can create a new secret (a known value that contains part of a marker, for example), so passes
over the changed parts are repeated until nothing changes. That fixed point is the promise: the result of `text` holds
no registered value in any of its forms, and redacting it again changes nothing.

Termination: count 1 for a character outside markers, 2 for a marker whose label we wrote, 3 for any other marker.
Every replacement lowers the sum. A registry built to delay the end runs into `_WIDEN_AFTER` and `_GIVE_UP_AFTER`.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from reverie.core.pause import paced, pause
from reverie.redact import decode, markers, tree
from reverie.redact.entropy import forget_candidates
from reverie.redact.escapes import ESCAPE, escaped, unescape
from reverie.redact.known import KnownSecrets, encode
from reverie.redact.matches import LONG_VALUE, LONG_WORD, matches
from reverie.redact.meter import BYTES_COPIED, FIND, PLACE, RULE, Meter
from reverie.redact.normal import DISGUISE, fold, unfold
from reverie.redact.spans import (
    Range,
    Span,
    around,
    batches,
    blocks,
    byte_offsets,
    character_offsets,
    core,
    lines_of,
    merge,
    replaced,
    swarm,
    to_line_ends,
    whole_characters,
    widened,
)
from reverie.redact.tree import JSON

if TYPE_CHECKING:
    from reverie.redact.filter import PatternFilter
    from reverie.redact.rules.rule import Rule

ALGORITHM: Final = "13"
"""Part of the version; raise it when the same rules would give another answer."""

KNOWN: Final = "known-secret"
FORM_LEAK: Final = "form-leak"
DENSE: Final = "dense-secret"
"""Label of a suspect in a text so full of credential words that each word is judged by itself."""

# Labels written by earlier versions; stored markers still have them.
_FORMER: Final = frozenset({"told-in-words", "told-pair", "foreign-secret"})
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
_WIDEN_AFTER: Final = 8
_GIVE_UP_AFTER: Final = 16
# A notation within a notation is decoded; deeper nesting is not.
_DEPTH: Final = 2
# A block with this many dense markers was judged word by word before, and is again.
_WAS_DENSE: Final = 64
_DENSE_MARKER: Final = markers.PREFIX + DENSE.encode() + b"]"
_BETWEEN: Final = b"\n\n\n"
# From this block size on (bytes), other threads get a turn before each rule.
_LARGE: Final = 16 * 1024
# In a text that ran dry, a multi-line rule reads this many bytes beyond its block.
_REACH: Final = 4 * 1024


@dataclass(frozen=True, slots=True)
class Redaction:
    """Redacted text, and the number of findings by kind. Findings never carry a value."""

    text: str
    findings: Mapping[str, int]


# Ranks. A BYOK marker hides its whole content; a known secret is named by its id; then the rules in table order.
_BYOK, _KNOWN, _RULE, _VARIANT, _GENERIC, _DENSE = 0, 1, 10, 1_000, 2_000, 3_000


class Redactor:
    """Finds and replaces secrets. Immutable; safe to share between threads."""

    def __init__(self, rules: Sequence[Rule] | None = None) -> None:
        self._given = rules

    # The table is loaded and compiled at the first text: a process that only reads memory never needs it.

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        if self._given is not None:
            return tuple(self._given)
        from reverie.redact import RULES

        return RULES

    @cached_property
    def _patterns(self) -> list[list[bytes]]:
        return [[pattern.encode() for pattern in rule.patterns] for rule in self._rules]

    @cached_property
    def triggers(self) -> list[bytes]:
        """List the patterns of the prefilter: triggers of the rules, then those for leaked markers and encoded text."""
        return [
            *(rule.trigger.encode() for rule in self._rules),
            markers.LEAK,
            DISGUISE,
            ESCAPE,
            decode.ENCODED,
            decode.RUN,
        ]

    # Indices of the last five in that list.
    _leak = cached_property(lambda self: len(self._rules))
    _disguise = cached_property(lambda self: len(self._rules) + 1)
    _escape = cached_property(lambda self: len(self._rules) + 2)
    _encoded = cached_property(lambda self: len(self._rules) + 3)
    _run = cached_property(lambda self: len(self._rules) + 4)

    @cached_property
    def _generic(self) -> frozenset[int]:
        return frozenset(index for index, rule in enumerate(self._rules) if rule.generic)

    @cached_property
    def _copies(self) -> dict[int, Callable[[bytes, KnownSecrets, Meter, int], Iterable[Span]]]:
        """Map triggers for encoded text to the methods that scan a decoded copy and yield spans of the original."""
        return {
            self._disguise: self._disguised,
            self._escape: self._escaped,
            self._encoded: self._decoded,
            self._run: self._unpacked,
        }

    @cached_property
    def _trusted(self) -> frozenset[str]:
        return frozenset({rule.label for rule in self._rules} | _FORMER | {markers.BYOK, markers.SOURCE, DENSE})

    @cached_property
    def _filter(self) -> PatternFilter:
        from reverie.redact.filter import (
            PatternFilter,  # with the strings of its patterns: not for a command that reads
        )

        groups: tuple[list[tuple[int, bytes]], ...] = ([], [], [], [])
        for index, trigger in enumerate(self.triggers):
            rule = self._rules[index] if index < len(self._rules) else None
            group = 0 if rule and rule.is_token else 1 if rule and rule.generic else 2
            if (rule and rule.apart) or index == self._run:
                group = 3
            groups[group].append((index, trigger))
        return PatternFilter(groups)

    @cached_property
    def version(self) -> str:
        """A fingerprint of the rule table and the algorithm: equal versions redact equally."""
        fingerprint = "\n".join([ALGORITHM, *(rule.fingerprint for rule in self._rules)])
        return f"{ALGORITHM}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:12]}"

    def text(self, text: str, known: KnownSecrets = KnownSecrets.EMPTY) -> Redaction:
        """Redact `text`. Never raises, on any input; linear time."""
        data = encode(text)
        spans, dry = self._scan(data, blocks(data), known)
        if not spans:
            return Redaction(text, _NOTHING)
        findings: Counter[str] = Counter()
        passes = 0
        while spans:
            passes += 1
            if passes > _GIVE_UP_AFTER:
                spans = [Span(0, len(data), _KNOWN, spans[0].label, spans[0].kind)]
            elif passes > _WIDEN_AFTER:
                spans = to_line_ends(data, spans)
            findings.update(span.kind for span in spans)
            data, changed = replaced(data, spans, known)
            fresh = around(data, changed, known.longest)
            # The share of a dense text that is judged depends on where it begins.
            regions = blocks(data) if dry else fresh
            spans, more = self._scan(data, regions, known, passes, fresh if dry else None)
            dry = dry or more
        forget_candidates()
        return Redaction(data.decode("utf-8", "surrogatepass"), MappingProxyType(dict(findings)))

    def many(self, texts: Sequence[str], known: KnownSecrets = KnownSecrets.EMPTY) -> list[Redaction]:
        """Exactly `[text(t) for t in texts]`, fast when most texts are clean."""
        changed = self.changed(texts, known)
        return [changed.get(text) or Redaction(text, _NOTHING) for text in texts]

    def changed(self, texts: Sequence[str], known: KnownSecrets = KnownSecrets.EMPTY) -> dict[str, Redaction]:
        """Return the redaction of every text with a finding. The batch is filtered as one text."""
        results: dict[str, Redaction] = {}
        for batch in paced(batches([text.encode("utf-8", "surrogatepass") for text in texts])):
            starts, joined = batch.starts, batch.joined
            suspects: set[int] = set()
            for start, end, _ in known.find(joined):
                suspects.update(range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)))
            for index, ranges in self._filter.match(joined).items():
                # No trigger matches across a line, and texts are joined by line ends.
                search, position = markers.compiled(self.triggers[index]).search, 0
                for start, end in ranges:
                    position = max(position, start)
                    while position < end and (match := search(joined, position, end)) is not None:
                        at = bisect_right(starts, match.start())
                        suspects.add(at - 1)
                        position = starts[at] if at < len(starts) else len(joined)
            for suspect in paced([texts[batch.first + i] for i in suspects]) if suspects else ():
                redaction = self.text(suspect, known)
                if redaction.findings:
                    results[suspect] = redaction
        return results

    def value(self, value: JSON, known: KnownSecrets = KnownSecrets.EMPTY) -> tuple[JSON, Mapping[str, int]]:
        """Redact every string in `value`, keys included; also return the findings of all of them.

        Keys that become equal are numbered, so that nothing is lost. A string under a key such as
        `password` is judged together with that key.
        """
        texts = list(tree.strings(value))
        distinct = list(dict.fromkeys(texts))
        clean = dict(zip(distinct, self.many(distinct, known), strict=True))
        findings: Counter[str] = Counter()
        for text in texts:
            findings.update(clean[text].findings)

        def names(node: dict[str, JSON]) -> dict[str, str]:
            renamed = {key: key for key in node if not clean[key].findings}
            taken = set(renamed)
            tried: dict[str, int] = {}
            for key in node:
                if clean[key].findings:
                    renamed[key] = self._fresh(clean[key].text, taken, tried, known)
                    taken.add(renamed[key])
            return {key: renamed[key] for key in node}

        lines: dict[tuple[str, str], str] = {}

        def look(key: str | None, text: str) -> str:
            redacted = clean[text].text
            if key is not None and (line := _line(key, redacted)):
                lines[key, redacted] = line
            return redacted

        renaming = names if findings else None
        rebuilt = tree.rebuild(value, look, renaming)
        judged = zip(lines, self.many(list(lines.values())), strict=True)
        suspects = {pair for pair, redaction in judged if redaction.findings}
        if not suspects:
            return rebuilt, MappingProxyType(dict(findings))

        def string(key: str | None, text: str) -> str:
            redacted = clean[text].text
            if key is None or (key, redacted) not in suspects:
                return redacted
            return self._under(key, redacted, known, findings)

        rebuilt = tree.rebuild(value, string, renaming)
        return rebuilt, MappingProxyType(dict(findings))

    def _fresh(self, key: str, taken: set[str], tried: dict[str, int], known: KnownSecrets) -> str:
        """Return `key` if it is free, else its first numbered form that is free and needs no redaction.

        `tried`: the last number used for each key, below which no form is free any more.
        """
        number = tried.get(key, 0) + 1
        candidate = key if number == 1 else f"{key} ({number})"
        while candidate in taken or (number > 1 and self.text(candidate, known).findings):
            number += 1
            candidate = f"{key} ({number})"
        tried[key] = number
        return candidate

    def _under(self, key: str, text: str, known: KnownSecrets, findings: Counter[str]) -> str:
        """Redact `text` as the value of `key`, if a rule finds it up to its end in the line `"key": "text"`."""
        line = encode(_line(key, text))
        start = len(line) - 1 - len(encode(text))
        for span in self._scan(line, [(0, len(line))], KnownSecrets.EMPTY)[0]:
            if span.start >= start and span.end == len(line) - 1:
                findings[span.kind] += 1
                made = line[start : span.start] + known.marker(span.label)
                return self.text(made.decode("utf-8", "surrogatepass"), known).text
        return text

    def _scan(
        self,
        data: bytes,
        regions: Sequence[Range],
        known: KnownSecrets,
        earlier: int = 0,
        fresh: Sequence[Range] | None = None,
    ) -> tuple[list[Span], bool]:
        """Return the spans to replace within line-aligned `regions` of `data`, disjoint and in order, and whether the
        budget of the text ran dry. `earlier`: number of passes before this one; `fresh`: the parts that they changed.
        """
        spans = list(_registered(data, regions, known)) if known else []
        located: set[int] = set()
        meter = Meter(earlier=earlier)
        if earlier and sum(end - start for start, end in regions) < len(data):
            meter.earn(len(data))
        for start, end in regions:
            chunk = data if end - start == len(data) else data[start:end]
            meter.earn(len(chunk), start)
            if chunk.count(_DENSE_MARKER) >= _WAS_DENSE:
                meter.dry = meter.ran_dry = True
            skipped = located | self._generic if meter.dry else located
            if hits := self._touched(self._filter.match(chunk, skipped=skipped), fresh, start):
                first, last = core(data, (start, end))
                found = self._spans(data, chunk, start, hits, known, meter, _DEPTH)
                spans.extend(span for span in found if span.end > first and span.start < last)
                # Multi-line rules have read the text from here to its end, unless they were broken off.
                located.update(hit for hit in hits if not meter.ran_dry and self._spans_lines(hit))
        for start, end in widened(regions, len(data)):
            part = data if end - start == len(data) else data[start:end]
            if decode.continues(part):
                spans.extend(self._continued(part, start, known, meter, earlier + 1))
        return (self._settle(data, spans, known) if spans else spans), meter.ran_dry

    def _touched(
        self, hits: dict[int, list[Range]], fresh: Sequence[Range] | None, start: int
    ) -> dict[int, list[Range]]:
        """Return the hits in the block at `start` that touch a fresh part. Generic rules keep all of their hits: how
        many places they have judged depends on the budget."""
        if fresh is None:
            return hits
        ends = [end - start for _, end in fresh]
        starts = [begin - start for begin, _ in fresh]

        def new(first: int, last: int) -> bool:
            at = bisect_right(ends, first)
            return at < len(starts) and starts[at] < last

        kept = {}
        for index, ranges in hits.items():
            if index in self._generic or index == self._leak:
                kept[index] = ranges
            elif touched := [span for span in ranges if new(*span)]:
                kept[index] = touched
        return kept

    def _spans(
        self,
        data: bytes,
        chunk: bytes,
        offset: int,
        hits: Mapping[int, Sequence[Range]],
        known: KnownSecrets,
        meter: Meter,
        depth: int,
    ) -> Iterator[Span]:
        """Yield the finds in `chunk`, which begins at `offset` of `data`. `depth`: levels of decoding left; below
        `_DEPTH` the chunk itself is a decoded copy.
        """
        left: set[Range] = set()
        for index, ranges in hits.items():
            if len(chunk) > _LARGE:
                pause()
            generic = index in self._generic
            meter.work(min(RULE, len(chunk) >> 4))
            meter.work(PLACE * len(ranges), generic=generic)
            always = index == self._leak or (self._spans_lines(index) and not generic)
            if always or not (meter.dry if generic else meter.spent):
                yield from self._find(index, ranges, data, chunk, offset, known, meter, depth)
            if meter.spent and not (always or generic):
                left.update(ranges)  # Judging it would cost more than the block is worth.
        if meter.dry:
            from reverie.redact.dense import suspects

            for s, e in chain(left, suspects(chunk)):
                yield Span(offset + s, offset + e, _DENSE, DENSE, DENSE)

    def _find(
        self,
        index: int,
        ranges: Sequence[Range],
        data: bytes,
        chunk: bytes,
        offset: int,
        known: KnownSecrets,
        meter: Meter,
        depth: int,
    ) -> Iterator[Span]:
        """Yield the finds of one rule, or of one kind of decoded copy."""
        if index == self._leak:
            # A marker in a decoded copy is no marker in the text.
            for leak in markers.find_leaks(chunk, canonical=depth < _DEPTH):
                rank = _BYOK if leak.label == markers.BYOK else _VARIANT
                spent = not meter.work(FIND)
                end = max(leak.end, ranges[-1][1]) if spent else leak.end
                yield Span(offset + leak.start, offset + end, rank, leak.label, FORM_LEAK)
                if spent:
                    break
        elif index in self._copies:
            copies = self._copies[index]
            for start, lines in [(0, chunk)] if index == self._disguise else lines_of(chunk, ranges):
                for span in copies(lines, known, meter, depth - 1):
                    yield span._replace(start=offset + start + span.start, end=offset + start + span.end)
        else:
            yield from self._by_rule(index, data, chunk, offset, ranges, meter)

    def _spans_lines(self, index: int) -> bool:
        """Whether `index` is that of a multi-line rule."""
        return index < len(self._rules) and self._rules[index].locate is not None

    def _copied(
        self, plain: bytes, known: KnownSecrets, meter: Meter, depth: int, near: Sequence[int] | None = None
    ) -> list[Span]:
        """Return the finds in a decoded copy, and in copies of that copy, by rule and by registered value. `near`:
        search only around these places."""
        meter.work(len(plain) // BYTES_COPIED)
        hits = self._filter.match(plain, near)
        if depth <= 0:
            hits = {i: ranges for i, ranges in hits.items() if i not in self._copies}
        found = [span for span in self._spans(plain, plain, 0, hits, known, meter, depth) if span.end > span.start]
        return found + [Span(s, e, _KNOWN, label, KNOWN) for s, e, label in known.find(plain)]

    def _by_rule(
        self, index: int, data: bytes, chunk: bytes, offset: int, ranges: Sequence[Range], meter: Meter
    ) -> Iterator[Span]:
        """Yield the finds of one rule."""
        rule = self._rules[index]
        rank = (_GENERIC if rule.generic else _RULE) + index
        found = self._located(rule, data, offset, len(chunk), meter)
        if rule.locate is None:
            patterns = map(markers.spans, self._patterns[index])
            found = chain.from_iterable(matches(rule, pattern, chunk, ranges, meter) for pattern in patterns)
        for s, e in found:
            yield Span(offset + s, offset + e, rank, rule.label, rule.label)

    def _located(self, rule: Rule, data: bytes, offset: int, size: int, meter: Meter) -> Iterator[Range]:
        """Yield the finds of a multi-line rule in a block and in all that follows it.

        In a text that ran dry, each block is searched in its own turn. When the steps run out, the rest of the block is
        redacted, unless the rule is generic: then the words of the block are judged by themselves."""
        end = offset + size + _REACH if meter.ran_dry else len(data)
        for start, stop in rule.locate(data[offset:end]) if rule.locate else ():
            price = rule.price
            if start < stop:
                long = rule.generic and stop - start >= LONG_VALUE
                yield start, LONG_WORD.match(data, offset + stop).end() - offset if long else stop
                price += FIND
            if start < size:
                goes_on = meter.work(price, generic=rule.generic)
            else:
                goes_on = meter.look_ahead(offset + start, price)
            if not goes_on:
                if not rule.generic:
                    yield start, min(len(data) - offset, max(start, size) + _REACH)
                return

    def _disguised(self, chunk: bytes, known: KnownSecrets, meter: Meter, depth: int) -> Iterator[Span]:
        """Scan the folded copy of `chunk`; yield spans of the chunk itself."""
        text = chunk.decode("utf-8", "surrogatepass")
        folded = fold(text)
        if folded == text:
            return
        plain = encode(folded)
        found = self._copied(plain, known, meter, depth)
        if not found:
            return
        edges = sorted({edge for span in found for edge in span[:2]})
        as_character = dict(zip(edges, character_offsets(plain, edges), strict=True))
        characters = [(as_character[span.start], as_character[span.end]) for span in found]
        original = unfold(text, characters)
        edges = sorted({edge for span in original for edge in span})
        as_byte = dict(zip(edges, byte_offsets(text, edges), strict=True))
        for span, (start, end) in zip(found, original, strict=True):
            yield span._replace(start=as_byte[start], end=as_byte[end])

    def _escaped(self, lines: bytes, known: KnownSecrets, meter: Meter, depth: int) -> Iterator[Span]:
        """Scan the unescaped copy of `lines`; yield spans of the lines themselves."""
        plain, at = unescape(lines)
        for span in self._copied(plain, known, meter, depth, at):
            yield span._replace(start=escaped(at, span.start), end=escaped(at, span.end))

    def _decoded(self, lines: bytes, known: KnownSecrets, meter: Meter, depth: int) -> Iterator[Span]:
        """Scan the decoded copy of `lines`; yield spans of the lines themselves."""
        copy = decode.decode(lines)
        meter.work(2 * len(copy.pieces))
        near = [piece[0] for piece in copy.pieces]
        for span in self._copied(copy.plain, known, meter, depth, near) if near else ():
            start, end = copy.original(span.start, span.end)
            yield span._replace(start=start, end=end)

    def _unpacked(self, lines: bytes, known: KnownSecrets, meter: Meter, depth: int) -> Iterator[Span]:
        """Yield the runs of base64 or hex that hold a secret, whole."""
        runs = list(decode.runs(lines))
        if not runs:
            return
        # One copy of all, for one look; a paragraph each, so that no rule sees two of them as one.
        plain = _BETWEEN.join([text for _, _, text in runs])
        starts = list(accumulate((len(text) + len(_BETWEEN) for _, _, text in runs), initial=0))
        best: dict[int, Span] = {}
        for span in self._copied(plain, known, meter, depth):
            for at in range(bisect_right(starts, span.start) - 1, bisect_left(starts, span.end)):
                if at not in best or span.rank < best[at].rank:
                    best[at] = span
        for at, span in best.items():
            start, end, _ = runs[at]
            yield span._replace(start=start, end=end)

    def _continued(self, part: bytes, at_byte: int, known: KnownSecrets, meter: Meter, earlier: int) -> Iterator[Span]:
        """Yield tokens and values that an indented line break splits; `part` begins at `at_byte` of the text."""
        copies = list(decode.continued(part))
        if not copies:
            return
        joined = b"\n".join(copy.plain for _, copy in copies) + b"\n"
        starts = list(accumulate((len(copy.plain) + 1 for _, copy in copies), initial=0))
        hits = self._filter.match(joined).items()
        notations = (self._run, self._encoded)
        tokens = {i: ranges for i, ranges in hits if i in notations or (i < self._leak and self._rules[i].is_token)}
        own = Meter(len(part), earlier)
        found = list(self._spans(joined, joined, 0, tokens, known, own, 1))
        meter.ran_dry = meter.ran_dry or own.ran_dry
        found += [Span(s, e, _KNOWN, label, KNOWN) for s, e, label in known.squeezed().find(joined)]
        for span in found:
            at = bisect_right(starts, span.start) - 1
            offset, copy = copies[at]
            first, last = span.start - starts[at], min(span.end - starts[at], len(copy.plain))
            if any(first < gap[0] < last for gap in copy.pieces):
                start, end = copy.original(first, last)
                yield span._replace(start=at_byte + offset + start, end=at_byte + offset + end)

    def _settle(self, data: bytes, spans: list[Span], known: KnownSecrets) -> list[Span]:
        """Return the spans disjoint and in order: grown to whole characters and markers, merged where they overlap.

        A span that would only replace markers by a marker is dropped, unless it lies inside one with an untrusted
        label.
        """
        canonical = [(m.start(), m.end(), m.group(1)) for m in markers.canonical(data)]
        starts = [marker[0] for marker in canonical]
        grown: list[Span] = []
        for span in spans:
            start, end = whole_characters(data, span.start, span.end)
            if not canonical:
                grown.append(span if (start, end) == span[:2] else span._replace(start=start, end=end))
                continue
            first = max(bisect_right(starts, start) - 1, 0)
            covered = [m for m in canonical[first : bisect_right(starts, end - 1)] if m[1] > start]
            if covered:
                inside = start > covered[0][0] or end < covered[-1][1]
                start, end = min(start, covered[0][0]), max(end, covered[-1][1])
                only_markers = sum(e - s for s, e, _ in covered) == end - start
                if only_markers and span.kind != KNOWN:
                    trusted = any(self._is_trusted(m[2].decode("ascii"), known) for m in covered)
                    if trusted or not inside:
                        continue
            grown.append(span if (start, end) == span[:2] else span._replace(start=start, end=end))
        return swarm(merge(grown))

    def _is_trusted(self, label: str, known: KnownSecrets) -> bool:
        return label in self._trusted or label in known.ids


def _line(key: str, text: str) -> str:
    """Return the line in which a value is judged together with its key; empty where the two make no such line."""
    # A redacted key is no context: it would not have been one before it was redacted.
    if "[REDACTED:" in key or len(text) > LONG_VALUE or '"' in text or "\n" in text or '"' in key or "\n" in key:
        return ""
    return f'"{key}": "{text}"'


def _registered(data: bytes, regions: Sequence[Range], known: KnownSecrets) -> Iterator[Span]:
    """Yield the registered values within the regions."""
    whole = len(regions) > 1 and regions[0][0] == 0 and regions[-1][1] == len(data)
    for start, end in [(0, len(data))] if whole else regions:
        for s, e, label in known.find(data[start:end]):
            yield Span(start + s, start + e, _KNOWN, label, KNOWN)
