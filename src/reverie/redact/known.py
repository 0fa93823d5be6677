"""Secrets with a registered value: found anywhere in a text, in every form in which they are commonly encoded."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final
from urllib.parse import quote, quote_plus

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from reverie.redact.normal import fold

MIN_LENGTH: Final = 8
"""Shorter values are ignored: replacing them would destroy ordinary text."""

_FALLBACK_LABELS: Final = ("secret", "hidden", "value", "0")
_LAST_RESORT: Final = b"*"
_ROUNDS: Final = 16
# Below this many patterns, adding two registries builds one automaton, in milliseconds. Above, the automata are kept
# apart, so that a run can add its handful of secrets to a tenant's thousands at no cost.
_MERGE_BELOW: Final = 2_000


def plain_label(name: str) -> str:
    """Turn `name` into a plain identifier that is valid in a marker."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")[:64] or "secret"


def encode(text: str) -> bytes:
    """UTF-8, lone surrogates included, so that no text is refused."""
    return text.encode("utf-8", "surrogatepass")


def _base64_cores(raw: bytes) -> Iterator[bytes]:
    """The characters of base64 text that depend on `raw` alone, for each of its three possible alignments.

    Inside a longer encoded text, `raw` starts after 0, 1 or 2 bytes of a group of three; the characters it shares
    with its neighbours are left out, so the rest does not depend on the surrounding bytes.
    """
    for shift, shared in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        whole = (shift + len(raw)) * 8 // 6
        yield encoded[shared:whole]


def _forms(value: str) -> set[bytes]:
    """Return `value` as it is, URL-encoded, JSON-escaped, HTML-escaped, in hex and in base64."""
    texts = {value, value.strip(), fold(value)}
    texts |= {quote(value, safe="", errors="surrogatepass"), quote(value, errors="surrogatepass")}
    texts |= {quote_plus(value, errors="surrogatepass"), html.escape(value), html.escape(value, quote=False)}
    texts |= {re.sub("%[0-9A-F]{2}", lambda m: m.group().lower(), text) for text in list(texts) if "%" in text}
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        texts |= {escaped, escaped.replace("/", "\\/")}
    forms = {encode(text) for text in texts if len(text) >= MIN_LENGTH}
    raw = encode(value)
    forms |= {raw.hex().encode(), b"".join(b"%%%02x" % byte for byte in raw)}
    for standard in (base64.b64encode(raw), base64.b64encode(raw).rstrip(b"="), *_base64_cores(raw)):
        forms |= {standard, standard.replace(b"+", b"-").replace(b"/", b"_")}
    return forms


def _without_blanks(patterns: dict[bytes, str]) -> dict[bytes, str]:
    squeezed: dict[bytes, str] = {}
    for form, label in patterns.items():
        text = encode("".join(form.decode("utf-8", "surrogatepass").split()))
        if len(text) >= MIN_LENGTH:
            squeezed.setdefault(text, label)
    return squeezed


class _Automaton:
    """One compiled set of patterns with the label of each."""

    __slots__ = ("labels", "longest", "matcher")

    def __init__(self, patterns: dict[bytes, str]) -> None:
        self.labels = list(patterns.values())
        self.longest = max(map(len, patterns))
        self.matcher = BytesAhoCorasick(list(patterns), matchkind=MatchKind.LeftmostLongest)


class KnownSecrets:
    """An immutable registry of secret values, safe to share between threads.

    Matching is plain substring search over all values at once, leftmost and longest first, in time linear in the
    text, ignoring the case of ASCII letters. Values under eight characters are ignored; when one value is
    registered under two ids the first id is used.
    Nothing shows a value: not `repr`, not an error.
    """

    __slots__ = ("_automata", "_ids", "_markers", "_patterns", "_squeezed")

    EMPTY: ClassVar[KnownSecrets]

    def __init__(self, secrets: Iterable[tuple[str, str]] = ()) -> None:
        patterns: dict[bytes, str] = {}
        for secret_id, value in secrets:
            if len(value) >= MIN_LENGTH:
                label = plain_label(secret_id)
                for form in _forms(value):
                    patterns.setdefault(form.lower(), label)
        self._build((patterns,) if patterns else ())

    def _build(self, patterns: tuple[dict[bytes, str], ...], automata: tuple[_Automaton, ...] = ()) -> None:
        self._patterns = patterns
        self._automata = automata or tuple(map(_Automaton, patterns))
        self._ids = frozenset(label for part in patterns for label in part.values())
        self._markers: dict[str, bytes] = {}
        self._squeezed: KnownSecrets | None = None

    def __add__(self, other: KnownSecrets) -> KnownSecrets:
        """Join two registries; for a value in both, the id of the left one is used."""
        if not self._patterns or not other._patterns:
            return self if self._patterns else other
        joined = KnownSecrets()
        if sum(map(len, self._patterns + other._patterns)) < _MERGE_BELOW:
            merged: dict[bytes, str] = {}
            for part in reversed(self._patterns + other._patterns):
                merged.update(part)
            joined._build((merged,))
        else:
            joined._build(self._patterns + other._patterns, self._automata + other._automata)
        return joined

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def __repr__(self) -> str:
        return f"<KnownSecrets: {len(self._ids)} ids>"

    @property
    def ids(self) -> frozenset[str]:
        """The labels of the markers for these secrets."""
        return self._ids

    @property
    def longest(self) -> int:
        """The length in bytes of the longest form of any value."""
        return max((part.longest for part in self._automata), default=0)

    def find(self, data: bytes) -> list[tuple[int, int, str]]:
        """Find registered values in UTF-8 `data`: (start, end, label). Empty exactly when no value occurs at all."""
        found: list[tuple[int, int, str]] = []
        lower = data.lower() if self._automata else data
        for part in self._automata:
            labels = part.labels
            found += [(start, end, labels[i]) for i, start, end in part.matcher.find_matches_as_indexes(lower)]
        return found

    def replaced(self, text: str) -> str:
        """Replace every registered value in `text` by its marker; no rule is applied."""
        data = encode(text)
        for _ in range(_ROUNDS):
            found = sorted(self.find(data), key=lambda match: (match[0], -match[1]))
            if not found:
                break
            pieces: list[bytes] = []
            done = 0
            for start, end, label in found:
                if start >= done:
                    pieces += (data[done:start], self.marker(label))
                done = max(done, end)
            data = b"".join([*pieces, data[done:]])
        else:
            data = _LAST_RESORT
        return data.decode("utf-8", "replace")

    def squeezed(self) -> KnownSecrets:
        """Return the same registry with white space removed from its values, for text without white space."""
        if self._squeezed is None:
            squeezed = self
            if any(len(form.split()) > 1 for part in self._patterns for form in part):
                squeezed = KnownSecrets()
                squeezed._build(tuple(filter(None, map(_without_blanks, self._patterns))))
            self._squeezed = squeezed
        return self._squeezed

    def marker(self, label: str) -> bytes:
        """A marker for `label` in which no registered value occurs.

        A value may be part of the marker itself: a password is `REDACTED`, or an id contains its value. Then other
        labels are tried; when the frame itself holds the value, the marker is a single star.
        """
        made = self._markers.get(label)
        if made is None:
            candidates = (b"[REDACTED:%s]" % name.encode() for name in (label, *_FALLBACK_LABELS))
            made = next((marker for marker in candidates if not self.find(marker)), _LAST_RESORT)
            self._markers[label] = made
        return made


KnownSecrets.EMPTY = KnownSecrets()
