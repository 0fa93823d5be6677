"""Fit the value model of the distiller on the labelled statements, and print how well it does.

    python tools/fit_value.py            # fit and write src/reverie/distil/value.npz
    python tools/fit_value.py --check    # only measure: cross-validation on two halves

Two halves are chosen by a hash of the text. Each half is judged by a model that never saw it; those are the figures
printed. The model that is written is fitted on both halves; its limits come from the cross-validation.
"""

from __future__ import annotations

import argparse
import hashlib
import io
from importlib import resources
from pathlib import Path

import numpy as np

from reverie.distil import value
from reverie.distil.must_keep import is_weighty

ROOT = Path(__file__).parent.parent
LABELS = ROOT / "bench/data/statements.tsv"
MODEL = ROOT / "src/reverie/distil/value.npz"
DIMENSIONS = 256
SCALES = np.concatenate(
    [
        np.full(DIMENSIONS, 0.034),
        np.full(value.BUCKETS, 5 / value.UNIT),
        np.full(value.FEATURES - value.BUCKETS, 1 / value.UNIT),
    ]
)
PENALTY, STEPS = 0.001, 300
PRECISION, OTHERS, CERTAIN = 0.85, 0.8, 0.96
"""Of must-keep (in English, in other languages) and of chatter, on statements the model never saw: the limits are the
lowest that reach them."""


def labelled() -> list[tuple[str, str, str]]:
    """Language, class, text."""
    rows = [line.split("\t") for line in LABELS.read_text(encoding="utf-8").splitlines() if line]
    return [(language, name, text) for language, name, text in rows]


def vectors() -> tuple[np.ndarray, dict[str, int]]:
    """The static table, and the row of every whole word in it."""
    folder = resources.files("reverie.providers.static")
    table = np.load(io.BytesIO(folder.joinpath("table.npy").read_bytes())).astype(np.int64)
    names = folder.joinpath("vocabulary.txt").read_text(encoding="utf-8").splitlines()
    return table, {name: row for row, name in enumerate(names) if value.words_of(name) == [name]}


class Rows:
    """Statements as features: the mean of their vectors, dense, and the few of the surface that apply, sparse."""

    def __init__(self, texts: list[str], table: np.ndarray, known: dict[str, int]) -> None:
        means, found = [], []
        for text in texts:
            words = value.words_of(text)
            rows = [known[word] for word in words if word in known]
            means.append(table[rows].mean(axis=0) if rows else np.zeros(DIMENSIONS))
            found.append(value.surface(text, words, value.language_of(text)))
        self.dense = np.array(means, dtype=np.float32)
        self.columns = [np.fromiter(row, dtype=np.int64) for row in found]
        self.sizes = [np.fromiter(row.values(), dtype=np.float32) for row in found]

    def chosen(self, numbers: np.ndarray) -> Rows:
        part = object.__new__(Rows)
        part.dense = self.dense[numbers]
        part.columns = [self.columns[number] for number in numbers]
        part.sizes = [self.sizes[number] for number in numbers]
        return part

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns and sizes of all statements, one after the other, and where each begins: all have a feature."""
        starts = np.cumsum([0, *(len(row) for row in self.columns[:-1])])
        return np.concatenate(self.columns), np.concatenate(self.sizes), starts

    def scores(self, weights: np.ndarray) -> np.ndarray:
        columns, sizes, starts = self.flat()
        sparse = np.add.reduceat(weights[DIMENSIONS:][columns] * sizes[:, None], starts)
        return self.dense @ weights[:DIMENSIONS] + sparse


def half(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0] % 2


def softmax(rows: Rows, targets: np.ndarray) -> np.ndarray:
    """Weights of a softmax regression over scaled features: full batches, Adam, an L2 penalty, rarer classes weighed
    up."""
    scales = SCALES.astype(np.float32)
    dense = rows.dense * scales[:DIMENSIONS]
    columns, sizes, starts = rows.flat()
    sizes = (sizes * scales[DIMENSIONS:][columns])[:, None]
    order = np.argsort(columns, kind="stable")
    holders = np.repeat(np.arange(len(starts)), np.diff([*starts, len(columns)]))[order]
    ordered = sizes[order]
    present, firsts = np.unique(columns[order], return_index=True)
    wanted = np.eye(len(value.CLASSES), dtype=np.float32)[targets]
    share = (1 / np.maximum(1, wanted.sum(0)))[targets] ** np.float32(0.5)
    share = (share / share.mean())[:, None] / len(targets)
    weights = np.zeros((len(SCALES), wanted.shape[1]), dtype=np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    slope = np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        logits = dense @ weights[:DIMENSIONS]
        logits += np.add.reduceat(weights[DIMENSIONS:][columns] * sizes, starts)
        logits -= logits.max(1, keepdims=True)
        chance = np.exp(logits)
        chance /= chance.sum(1, keepdims=True)
        wrong = (chance - wanted) * share
        slope[:] = PENALTY * weights
        slope[:DIMENSIONS] += dense.T @ wrong
        slope[DIMENSIONS + present] += np.add.reduceat(wrong[holders] * ordered, firsts)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        weights -= 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def fit(rows: Rows, names: list[str]) -> np.ndarray:
    """Weights of the raw features in units of 1 / QUANTUM, one column per class."""
    found = softmax(rows, np.array([value.CLASSES.index(name) for name in names]))
    return found * SCALES[:, None] * value.QUANTUM


def rates(truth: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    return (truth & found).sum() / max(1, found.sum()), (truth & found).sum() / max(1, truth.sum())


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--check", action="store_true", help="measure only, write nothing")
    asked.add_argument("--misses", action="store_true", help="print the statements judged wrongly")
    options = asked.parse_args()
    rows = labelled()
    names, texts = [row[1] for row in rows], [row[2] for row in rows]
    english = np.array([row[0] == "en" for row in rows])
    table, known = vectors()
    given = Rows(texts, table, known)
    side = np.array([half(text) for text in texts])
    scores = np.zeros((len(rows), 2), dtype=np.int64)
    for held in (0, 1):
        seen, unseen = np.flatnonzero(side != held), np.flatnonzero(side == held)
        weights = fit(given.chosen(seen), [names[i] for i in seen])
        found = value.chances(np.rint(given.chosen(unseen).scores(weights)).astype(np.int64))
        scores[side == held, 0] = found[:, : len(value.MUST_KEEP)].sum(axis=1)
        scores[side == held, 1] = found[:, -len(value.LOW) :].sum(axis=1)
    must = np.array([name in value.MUST_KEEP for name in names])
    low = np.array([name in value.LOW for name in names])
    rules = np.array([is_weighty(text) for text in texts])
    limits = []
    above = np.zeros((len(rows), 2), dtype=bool)
    print("each half judged by a model fitted on the other")
    for label, own, wanted in (("English", english, PRECISION), ("other languages", ~english, OTHERS)):
        pair = best(must[own], scores[own, 0], wanted), best(low[own], scores[own, 1], CERTAIN)
        limits += pair
        above[own] = scores[own] > pair
        model, noise = rates(must[own], above[own, 0]), rates(low[own], above[own, 1])
        lost = int((must & above[:, 1])[own].sum())
        print(f"{label}: {int(own.sum())} statements, {int(must[own].sum())} must be kept")
        print(f"  must-keep, model     precision {model[0]:.2f}  recall {model[1]:.2f}")
        print("  must-keep, patterns  precision {:.2f}  recall {:.2f}".format(*rates(must[own], rules[own])))
        print(f"  chatter and status   precision {noise[0]:.2f}  recall {noise[1]:.2f}  (must-keep among them: {lost})")
    for name in value.CLASSES:
        own = np.array([other == name for other in names])
        kept = [f"{100 * above[own & part, 0].mean():.0f} %" for part in (english, ~english)]
        print(f"  {name:14} {int(own.sum()):4} statements, judged must-keep: {kept[0]} English, {kept[1]} others")
    if options.misses:
        for i in np.argsort(scores[:, 0]):
            if above[i, 0] != must[i] or (must[i] and above[i, 1]):
                print(f"  {'kept ' if above[i, 0] else 'left '} {names[i]:14} {above[i, 1]!s:5} {texts[i]}")
    if not options.check:
        weights = fit(given, names)
        scores = table @ weights[:DIMENSIONS]
        order = sorted(known, key=lambda word: known[word])
        unit = max(1, int(np.ceil(np.abs(scores).max() / 127)))
        step = max(1, int(np.ceil(np.abs(weights[DIMENSIONS:]).max() / 32767)))
        out = io.BytesIO()
        np.savez_compressed(
            out,
            words=np.frombuffer("\n".join(order).encode(), dtype=np.uint8),
            scores=np.rint(scores[[known[word] for word in order]] / unit).astype(np.int8),
            surface=np.rint(weights[DIMENSIONS:] / step).astype(np.int16),
            limits=np.array([unit, step, *limits]),
        )
        MODEL.write_bytes(out.getvalue())
        print(f"wrote {MODEL.relative_to(ROOT)}, sha256 {hashlib.sha256(out.getvalue()).hexdigest()[:12]}")


def best(truth: np.ndarray, scores: np.ndarray, precision: float) -> int:
    """The lowest limit above which `precision` of the statements are right."""
    order = np.argsort(-scores, kind="stable")
    share = np.cumsum(truth[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(share >= precision)
    return int(scores[order[enough[-1]]]) - 1


if __name__ == "__main__":
    main()
