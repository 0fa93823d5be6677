"""Fit the weights of currency: when a newer passage overtakes an older one (src/reverie/search/currency.py).

    python tools/fit_currency.py [FOLDER]       # FOLDER: also judge conflicts*.json that you have

The pairs are taken from the best hits of every question of our corpora (bench/data, without the held-out questions). A
pair is right if the newer passage is a changed fact and the older one the note that it replaced. It is wrong if
something newer would overtake the answer, and, with a small weight, in every other case. The weights are those of a
logistic regression; the threshold is a little below even odds, since an overtaken fact in first place is worse than an
answer in second. Prints the weights, as they are in the source, and how the pairs of each corpus are judged by weights
fitted on the others.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from dataclasses import replace

from bench import corpora

import reverie
from build_confidence import found
from reverie.search.currency import BY_WORDS, WEIGHTS, pairs
from reverie.search.kinds import kinds
from reverie.search.rank import WEIGHTS as SIGNALS
from reverie.search.rank import rank

TABLES = {"WEIGHTS": WEIGHTS, "BY_WORDS": BY_WORDS}
LENIENT = 0.45
"""By so much the sum may stay below even odds."""
OTHERS = 0.05
"""Weight of a pair that has nothing to do with the answer."""


def main() -> None:
    memories = [corpora.ours(name) for name in corpora.OURS]
    others = [corpora.conflicts(path) for folder in sys.argv[1:] for path in Path(folder).glob("conflicts*.json")]
    rows: dict[str, list[tuple[str, list[float], bool, float]]] = {"WEIGHTS": [], "BY_WORDS": []}
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        for number, one in enumerate([*memories, *others]):
            memory.ref(f"m{number}").put_many([corpora.stored(note) for note in one.notes])
            changed = {(old, asked.gold[0]) for asked in one.asks for old in asked.before}
            for asked in one.asks:
                for way, held in ways(memory, f"m{number}", asked):
                    rows[way] += [(one.name, *pair) for pair in judged(held, way, asked, changed)]
    for way, found_pairs in rows.items():
        print(way)
        show(way, found_pairs)


def ways(memory: reverie.Memory, ref: str, asked: corpora.Ask) -> Iterator[tuple[str, Any]]:
    """The candidates of a question for each table of weights; of held-out questions and those about many notes none."""
    if not asked.held_out and asked.kind not in ("order", "evidence"):
        held = found(memory, ref, asked.text)
        yield "BY_WORDS", held
        if held.closeness and not held.neighbours:
            yield "WEIGHTS", held


def show(way: str, rows: list[tuple[str, list[float], bool, float]]) -> None:
    """Print the weights, and how the pairs of each corpus are judged by weights fitted on the others."""
    names = np.array([name for name, *_ in rows])
    features = np.array([[1.0, *values] for _, values, _, _ in rows])
    right = np.array([float(right) for _, _, right, _ in rows])
    weights = np.array([0.0 if name == "conflicts" else weight for name, _, _, weight in rows])
    fitted = fit(features, right, weights)
    for name, value in zip(["ENOUGH", *TABLES[way]], [-fitted[0] - LENIENT, *fitted[1:]], strict=True):
        print(f"{name:12}{value:6.1f}")
    for name in dict.fromkeys(names):
        own = names == name
        other = fit(features[~own], right[~own], weights[~own])
        said = features[own] @ other > -LENIENT
        print(
            f"{name:12} overtakes {_share(said[right[own] > 0])} of changes, {_share(said[right[own] == 0])} of others"
        )


def judged(
    held: Any, way: str, asked: corpora.Ask, changed: Set[tuple[str, str]]
) -> list[tuple[list[float], bool, float]]:
    """(features, whether the newer one replaced the older, weight) of the pairs among the best hits of a question.

    `changed`: ids of the old and the new note of changed facts; a pair of a fact that is not asked for counts as
    neither right nor wrong.
    """
    ranked = rank(held.question, held.candidates, neighbours=held.neighbours, weights=replace(SIGNALS, currency=False))
    place = {candidate.key: at for at, candidate in enumerate(held.candidates)}
    scores = [0.0] * len(held.candidates)
    for one in ranked:
        scores[place[one.key]] = one.score
    order = [place[one.key] for one in ranked]
    best = order[:20]
    fitting = kinds(held.question.text, [held.candidates[at].content for at in best])
    most = max(fitting, default=0)
    fits = {at: fit / most for at, fit in zip(best, fitting, strict=True)} if most else None
    made = []
    spoken = bool(held.neighbours)
    closeness = held.closeness if way == "WEIGHTS" else None
    for old, new, features in pairs(
        held.question.words, held.candidates, scores, order, fits=fits, spoken=spoken, closeness=closeness
    ):
        if scores[new] < scores[old]:
            before, after = (answer(asked, held.candidates[at]) for at in (old, new))
            unknown = (after == "new") != (before == "old") or (
                held.candidates[old].id,
                held.candidates[new].id,
            ) in changed
            if before == "new" or (after == "new" and before == "old") or not unknown:
                weight = 1.0 if "new" in (before, after) else OTHERS
                made.append(([features[name] for name in TABLES[way]], after == "new" and before == "old", weight))
    return made


def answer(asked: corpora.Ask, candidate: object) -> str:
    """Whether a candidate is the answer (`new`), the one it replaced (`old`), or neither."""
    if asked.answers:
        return "new" if any(one.lower() in candidate.content.lower() for one in asked.answers) else "old"  # type: ignore[attr-defined]
    return "new" if candidate.id in asked.gold else "old" if candidate.id in asked.before else ""  # type: ignore[attr-defined]


def fit(features: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Logistic regression with a little shrinking, by Newton's method."""
    fitted = np.zeros(features.shape[1])
    shrink = np.diag([0.0, *[1.0] * (len(fitted) - 1)]) + 1e-9 * np.eye(len(fitted))
    for _ in range(50):
        said = 1 / (1 + np.exp(-features @ fitted))
        slope = features.T @ (weights * (said - right)) + shrink @ fitted
        fitted -= np.linalg.solve((features * (weights * said * (1 - said))[:, None]).T @ features + shrink, slope)
    return fitted


def _share(said: np.ndarray) -> str:
    return f"{int(said.sum())}/{len(said)}"


if __name__ == "__main__":
    main()
