"""Fit the weights of currency: when a newer passage overtakes an older one (src/reverie/search/currency.py).

    python tools/fit_currency.py [FOLDER]       # FOLDER: also conflicts*.json that you have

Every question about a changed fact gives pairs of the best hits that are right (the new note overtakes the old one) and
pairs that are wrong (something newer would overtake the answer). The five weights are a logistic regression over them,
and the sum that is enough is a little below even odds: an overtaken fact in the first place is worse than an answer in
the second. Prints the weights, and for each corpus how its own pairs are judged by weights fitted on the others. The
weights in the source were chosen from such fits by hand and differ from those that are printed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from dataclasses import replace

from bench import corpora

import reverie
from build_confidence import found
from reverie.search.currency import COMPARED, WEIGHTS, pairs
from reverie.search.rank import WEIGHTS as SIGNALS
from reverie.search.rank import rank

LENIENT = 1.0
"""By so much the sum may stay below even odds."""
OTHERS = 0.3
"""Weight of a pair of conflicts*.json, which has as many as all corpora together."""


def main() -> None:
    memories = [corpora.ours(name) for name in corpora.OURS]
    for folder in sys.argv[1:]:
        memories += [corpora.conflicts(path) for path in sorted(Path(folder).glob("conflicts*.json"))]
    rows: list[tuple[str, list[float], bool]] = []
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        for number, one in enumerate(memories):
            memory.ref(f"m{number}").put_many([corpora.stored(note) for note in one.notes])
            for asked in one.asks:
                rows += [(one.name, *pair) for pair in judged(memory, f"m{number}", asked)]
    names = np.array([name for name, _, _ in rows])
    features = np.array([[1.0, *values] for _, values, _ in rows])
    right = np.array([float(right) for _, _, right in rows])
    weights = np.where(names == "conflicts", OTHERS, 1.0)
    fitted = fit(features, right, weights)
    for name, value in zip(["ENOUGH", *WEIGHTS], [-fitted[0] - LENIENT, *fitted[1:]], strict=True):
        print(f"{name:10}{value:6.1f}")
    for name in dict.fromkeys(names):
        own = names == name
        other = fit(features[~own], right[~own], weights[~own])
        said = features[own] @ other > -LENIENT
        changed, others = _share(said[right[own] > 0]), _share(said[right[own] == 0])
        print(f"{name:12} overtakes {changed} of changes, {others} of others")


def judged(memory: reverie.Memory, ref: str, asked: corpora.Ask) -> list[tuple[list[float], bool]]:
    """(features, whether the newer one is the answer) of the pairs among the best hits of a question that matter."""
    if asked.held_out or not (asked.gold or asked.kind == "current") or asked.kind in ("order", "evidence"):
        return []
    held = found(memory, ref, asked.text)
    ranked = rank(held.question, held.candidates, neighbours=held.neighbours, weights=replace(SIGNALS, currency=False))
    place = {candidate.key: at for at, candidate in enumerate(held.candidates)}
    scores = [0.0] * len(held.candidates)
    for one in ranked:
        scores[place[one.key]] = one.score
    best = sorted((place[one.key] for one in ranked[:COMPARED]), key=lambda at: held.candidates[at].position)
    made = []
    for old, new, features in pairs(held.question.words, held.candidates, scores, best):
        if scores[new] < scores[old]:
            before, after = (answer(asked, held.candidates[at]) for at in (old, new))
            if before != after and (after == "new" or before == "new"):
                made.append(([features[name] for name in WEIGHTS], after == "new" and before == "old"))
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
