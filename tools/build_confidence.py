"""Make src/reverie/search/confidence.txt: the share of right first hits by how much evidence they have.

    python tools/build_confidence.py            # write it, and print how it carries over
    python tools/build_confidence.py --judge    # also over the corpora that nothing is fitted on

Every question of our own corpora (bench/data; held-out questions are not asked) is put to its own memory and to one
that holds something else, where nothing answers it: so half of the questions have no answer, as in the life of an
agent. The same for small memories, of one to twenty notes of the corpora (`corpora.samples`). The share of right
answers among first hits must not fall as their evidence grows, so neighbouring groups that break this are joined
(isotonic regression by pooling adjacent violators). One line a step: evidence, share.

Printed for each corpus, under a table made from all the others: how many right first hits are not weak, and how many
questions without an answer, about other things and near misses, have only weak hits.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import corpora

import reverie
from reverie.core.entry import Scope
from reverie.core.query import Filter
from reverie.search.confidence import WEAK, between
from reverie.search.rank import rank

TARGET = Path(__file__).parent.parent / "src" / "reverie" / "search" / "confidence.txt"
LEAST = 16
"""First hits of a step, at least."""
MOST = 0.995
"""The largest share: no hit is certain, however few of the best were wrong."""
_CANDIDATES = 60


class Point(NamedTuple):
    """A question that was asked: evidence of the first hit, whether it is right, the most evidence of ten hits."""

    corpus: str
    kind: str
    """`few` in a small memory, `elsewhere` in a memory about other things."""
    evidence: float
    right: bool
    most: float
    held_out: bool


def main() -> None:
    judges = corpora.JUDGES if "--judge" in sys.argv else ()
    memories = [corpora.ours(name) for name in (*corpora.OURS, *judges)]
    memories += [corpora.talks(), *corpora.distilled(), *corpora.locomo(corpora.DATA / "small.json")]
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        for number, one in enumerate(memories):
            memory.ref(f"m{number}").put_many([corpora.stored(note) for note in one.notes])
        points: list[Point] = []
        for number, one in enumerate(memories):
            points += ask(memory, f"m{number}", one)
            points += ask(memory, f"m{(number + 1) % len(memories)}", one, kind="elsewhere")
        for name in corpora.OURS:
            for size in corpora.SIZES:
                for number, one in enumerate(corpora.samples(corpora.ours(name), size)):
                    memory.ref(f"{name}{size}/{number}").put_many([corpora.stored(note) for note in one.notes])
                    few = ask(memory, f"{name}{size}/{number}", one, kind="few")
                    points += [point._replace(corpus=name) for point in few]
    fitted = [one for one in points if one.corpus not in corpora.JUDGES and not one.held_out]
    steps = pooled((one.evidence, one.right) for one in fitted)
    lines = [f"{first:.3f} {share:.3f}" for first, share in zip(*steps, strict=True)]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(fitted)} questions\n" + "\n".join(lines))
    print(f"\n{'left out':12}{'not weak':>10}{'nothing':>10}{'near miss':>10}{'elsewhere':>10}")
    for name in dict.fromkeys(one.corpus for one in points):
        others = pooled((one.evidence, one.right) for one in fitted if one.corpus != name)
        own = [one for one in points if one.corpus == name and one.kind != "few"]
        right = [between(others, one.evidence) >= WEAK for one in own if one.right]
        cells = [share(right)]
        for kind in ("none", "near", "elsewhere"):
            cells.append(share([between(others, one.most) < WEAK for one in own if one.kind == kind]))
        print(f"{name:12}" + "".join(f"{cell:>10}" for cell in cells))


def pooled(points: Iterable[tuple[float, bool]]) -> tuple[Sequence[float], Sequence[float]]:
    """Evidence and share of right first hits, step by step."""
    ordered = sorted(points)
    steps: list[list[float]] = []  # [first evidence, right, asked]
    for at in range(0, len(ordered), LEAST):
        group = ordered[at : at + LEAST]
        steps.append([group[0][0], sum(right for _, right in group), len(group)])
        while len(steps) > 1 and steps[-2][1] / steps[-2][2] >= steps[-1][1] / steps[-1][2]:
            last = steps.pop()
            steps[-1][1] += last[1]
            steps[-1][2] += last[2]
    return [first for first, _, _ in steps], [min(right / asked, MOST) for _, right, asked in steps]


def share(said: Sequence[bool]) -> str:
    return f"{100 * sum(said) / len(said):.1f}" if said else ""


def found(memory: reverie.Memory, ref: str, question: str) -> Any:
    """The candidates of a question, as a search ranks them."""
    recall = memory.host.search
    vector, _ = recall._vector(question, "hybrid")

    def body(tx):  # type: ignore[no-untyped-def]
        return recall._candidates(tx, tx, question, vector, Filter(), _CANDIDATES, "hybrid", "UTC")

    return memory.host.parts.store.read(Scope("default", ref), body)


def ask(memory: reverie.Memory, ref: str, corpus: corpora.Memory, kind: str | None = None) -> list[Point]:
    """The first hit of every question."""
    points = []
    for question in corpus.asks:
        held = found(memory, ref, question.text)
        hits = rank(held.question, held.candidates, neighbours=held.neighbours, limit=10, closeness=held.closeness)
        if not hits:
            points.append(Point(corpus.name, kind or question.kind, 0.0, False, 0.0, question.held_out))
            continue
        first = next(c for c in held.candidates if c.key == hits[0].key)
        right = kind != "elsewhere" and (
            first.id in question.gold or any(a.lower() in first.content.lower() for a in question.answers)
        )
        most = max(one.evidence for one in hits)
        points.append(Point(corpus.name, kind or question.kind, hits[0].evidence, right, most, question.held_out))
    return points


if __name__ == "__main__":
    main()
