"""The built-in embedder: a table of word-piece vectors that needs no library but numpy.

The vector of a text is the sum of the rows of its word pieces, scaled to length 127 and rounded to int8. The rows
are integers and are added as integers; the one square root and one division that follow are exactly rounded
by IEEE 754, element by element. So the same text has the same 256 bytes on every machine, whatever its vector
unit, and a stored vector may be compared by its hash.

Comparison is just as stable. A dot product of two such vectors is a sum of 256 products of at most 127 * 127,
so every partial sum stays below 2**22 and is exactly representable in float32: a float32 matrix product over
these vectors is exact in any order of summation, by any BLAS.

`MANIFEST.json` records the origin of the table, its licence and its making.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import sys
from collections.abc import Sequence
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from reverie.core.lazy import np
from reverie.core.pause import paced
from reverie.providers.static.wordpiece import WordPiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIMENSIONS = 256
LENGTH = 127
"""The Euclidean length of every vector, so that dot product / LENGTH**2 is the cosine."""

_SEGMENT = 256
"""Rows added before widening: 256 * 127 still fits an int16."""

_FEW = 512
"""Pieces that a process adds up without numpy, in a few milliseconds: a command that stores one entry saves the import,
which takes a hundred. A process that stores more imports it after some thirty texts.
"""

_BATCH = 512
"""Texts handled at once, so that the gathered rows stay near the processor."""


class DamagedTableError(RuntimeError):
    """The embedding table on disk is not that of this release. Reinstall the package."""


class StaticEmbedder:
    """Text to int8[256], deterministic and local.

    `name` contains the hash of the table: vectors made under different names must not be compared. Loading
    reads about 8 MB and checks its hashes; an instance may be shared between threads.
    """

    dimensions = DIMENSIONS
    by_word = True
    """A vector costs microseconds, so a search may compare single words."""

    def __init__(self) -> None:
        folder = resources.files(__name__)
        manifest = json.loads(folder.joinpath("MANIFEST.json").read_text(encoding="utf-8"))
        data = {name: folder.joinpath(name).read_bytes() for name in manifest["files"]}
        for name, facts in manifest["files"].items():
            if hashlib.sha256(data[name]).hexdigest() != facts["sha256"]:
                raise DamagedTableError(f"{name} does not match MANIFEST.json; reinstall reverie")
        self.name: str = f"{manifest['name']}/{manifest['files']['table.npy']['sha256'][:12]}"
        self._file = data["table.npy"]
        self._rows: int = manifest["rows"]
        self._pieces = 0
        self._wordpiece = WordPiece(data["vocabulary.txt"].decode("utf-8").splitlines())

    @cached_property
    def _table(self) -> NDArray[np.int8]:
        """The rows of the file; sums need a wider type."""
        table = np.frombuffer(self._file, dtype=np.int8, offset=len(self._file) - self._rows * DIMENSIONS)
        return table.reshape(self._rows, DIMENSIONS)

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per text, in order; a text without any known word gets the zero vector."""
        if len(texts) == 1:
            own = self._wordpiece.rows(texts[0])
            self._pieces += len(own) + 1
            return [self._embed_one(own) if "numpy" in sys.modules or self._pieces > _FEW else self._embed_few(own)]
        vectors: list[bytes] = []
        for start in range(0, len(texts), _BATCH):
            sums = self._sums([self._wordpiece.rows(text) for text in paced(texts[start : start + _BATCH])])
            packed = _to_int8(sums).tobytes()
            vectors.extend(packed[at : at + DIMENSIONS] for at in range(0, len(packed), DIMENSIONS))
        return vectors

    def _embed_one(self, own: list[int]) -> bytes:
        """Embed one text with the same integers and roundings in fewer calls: 6 us instead of 24."""
        if not own or len(own) > _SEGMENT:
            return _to_int8(self._sums([own])).tobytes()
        wide = np.add.reduce(self._table.take(own, axis=0), axis=0, dtype=np.int16).astype(np.float64)
        square = float(np.dot(wide, wide))  # exact: integers far below 2^53
        scaled: NDArray[Any] = np.rint(wide * (LENGTH / (math.sqrt(square) if square else 1.0)))
        return scaled.astype(np.int8).tobytes()

    def _embed_few(self, own: list[int]) -> bytes:
        """Compute the same bytes without numpy, for a process without it: a command that stores one entry."""
        file = self._file
        start = len(file) - self._rows * DIMENSIONS  # the rows follow a header
        begins = [start + row * DIMENSIONS for row in own]
        rows = [memoryview(file[at : at + DIMENSIONS]).cast("b") for at in begins]
        sums = [sum(column) for column in zip(*rows, strict=True)] or [0] * DIMENSIONS
        square = sum(number * number for number in sums)
        scale = LENGTH / (math.sqrt(square) if square else 1.0)
        return struct.pack(f"{DIMENSIONS}b", *(round(number * scale) for number in sums))

    def _sums(self, rows: list[list[int]]) -> NDArray[np.int32]:
        """Return the exact sum of the rows of each text."""
        take, add = self._table.take, np.add.reduce
        sums = [
            add(take(own, axis=0), axis=0, dtype=np.int16) if 0 < len(own) <= _SEGMENT else self._long_sum(own)
            for own in rows
        ]
        return np.array(sums, dtype=np.int32)

    def _long_sum(self, own: list[int]) -> NDArray[np.int32]:
        total = np.zeros(DIMENSIONS, dtype=np.int32)
        for at in range(0, len(own), _SEGMENT):
            total += np.add.reduce(self._table.take(own[at : at + _SEGMENT], axis=0), axis=0, dtype=np.int16)
        return total


def _to_int8(sums: NDArray[np.int32]) -> NDArray[np.int8]:
    """Scale each row to LENGTH, rounding half to even; a zero row stays zero."""
    wide = sums.astype(np.int64)
    squares = np.einsum("ij,ij->i", wide, wide)
    lengths = np.sqrt(squares.astype(np.float64))
    scales = LENGTH / np.where(squares == 0, 1.0, lengths)
    scaled: NDArray[Any] = np.rint(sums * scales[:, None])
    return scaled.astype(np.int8)
