"""Binary codes of vectors, which select the vectors worth comparing when there are very many.

A code has one bit for each dimension: whether the vector is above the mean there. A question is first compared with all
codes, in the dimensions that matter for it: those where its value times the mean deviation is large. Then the vectors
of the nearest codes are compared exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from reverie.core.lazy import np

if TYPE_CHECKING:
    import numpy.typing as npt

FEWEST = 4096
"""Number of vectors from which a segment has codes. Smaller segments are compared exactly."""
BLOCK = 16_384

Codes: TypeAlias = "npt.NDArray[np.uint64]"
Floats: TypeAlias = "npt.NDArray[np.float32]"


def coded(data: npt.NDArray[np.int8], centre: Floats | None = None) -> tuple[Floats, Codes]:
    """Mean and mean deviation of each dimension, and the codes; both empty when there are few vectors."""
    count, dimensions = data.shape
    if count < FEWEST:
        return np.zeros((0, dimensions), dtype=np.float32), np.zeros((0, count), dtype=np.uint64)
    if centre is None:
        some = data[:: max(1, count // 65_536)].astype(np.float32)
        mean = some.mean(axis=0)
        centre = np.stack([mean, np.abs(some - mean).mean(axis=0)])
    lines = -(-dimensions // 64)
    codes = np.empty((lines, count), dtype=np.uint64)
    for at in range(0, count, BLOCK):
        codes[:, at : at + BLOCK] = _bits(data[at : at + BLOCK] > centre[0], lines)
    return centre, codes


def _bits(above: npt.NDArray[np.bool_], lines: int) -> Codes:
    packed = np.packbits(above, axis=1)
    padded = np.zeros((len(above), lines * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(padded.view(np.uint64).T)


class EncodedQuery:
    """A question in a form that is compared with codes of the same mean and mean deviation.

    The weight of a dimension is the question's value there times the mean deviation. `rough` uses only dimensions of
    large weight in the first half, which varies most; `fine` uses all dimensions, with weights in four steps.
    """

    def __init__(self, query: Floats, centre: Floats) -> None:
        weights = query * centre[1]
        large = np.abs(weights)
        self._lines = -(-len(query) // 64)
        ordered = np.sort(large)
        matters = large >= ordered[int(len(large) * 0.7)] / 2
        self._half = -(-self._lines // 2)
        matters[min(255, self._half * 64) :] = False
        top = max(float(ordered[int(len(large) * 0.95)]), 1e-9)
        levels = np.minimum(np.rint(large / top * 3), 3).astype(np.int64)
        lines = _bits(np.stack([weights > 0, matters, levels & 1 == 1, levels & 2 == 2]), self._lines).T
        self._signs, self._mask, *self._planes = lines
        self._unit = top / 3
        self._zero = float(query @ centre[0]) + self._unit * int(levels.sum())

    def rough(self, codes: Codes) -> npt.NDArray[np.uint8]:
        """Estimate the distance of each code."""
        far = np.zeros(codes.shape[1], dtype=np.uint8)
        bits, counts = np.empty(BLOCK, dtype=np.uint64), np.empty(BLOCK, dtype=np.uint8)
        for at in range(0, len(far), BLOCK):
            sums = far[at : at + BLOCK]
            own, count = bits[: len(sums)], counts[: len(sums)]
            for line in range(self._half):
                np.bitwise_xor(codes[line, at : at + BLOCK], self._signs[line], out=own)
                np.bitwise_and(own, self._mask[line], out=own)
                np.bitwise_count(own, out=count)
                np.add(sums, count, out=sums)
        return far

    def fine(self, codes: Codes, rows: npt.NDArray[np.intp]) -> Floats:
        """Estimate the product of the question with each of these vectors."""
        sums = [np.zeros(len(rows), dtype=np.uint16) for _ in self._planes]
        bits, counts = np.empty(len(rows), dtype=np.uint64), np.empty(len(rows), dtype=np.uint8)
        for line in range(self._lines):
            own = codes[line].take(rows)
            own ^= self._signs[line]
            for plane, far in zip(self._planes, sums, strict=True):
                np.bitwise_and(own, plane[line], out=bits)
                np.bitwise_count(bits, out=counts)
                far += counts
        low, high = sums
        return np.float32(self._zero) - np.float32(2 * self._unit) * (low + np.float32(2) * high)


def nearest(far: npt.NDArray[np.uint8], wanted: int) -> npt.NDArray[np.intp]:
    """The places of approximately `wanted` nearest codes. The threshold comes from a sample of every sixteenth."""
    sample = far[::16]
    kept = min(len(sample) - 1, -(-wanted // 16))
    return np.flatnonzero(far <= np.partition(sample, kept)[kept])
