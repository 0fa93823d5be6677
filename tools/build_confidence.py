"""Make src/reverie/search/confidence.txt: the share of right first hits by the evidence they have.

    python tools/build_confidence.py            # write it, and print how it carries over
    python tools/build_confidence.py --judge    # also over the corpora that nothing is fitted on

Every question of the corpora written after the signals were chosen (`corpora.LATER`) is put to its own memory and to
one about other things, which does not answer it: so half of the questions have no answer, as in an agent's work. The
same is done with small memories of one to twenty notes of the corpora (`corpora.samples`). Every corpus has the same
weight, and so have its own memory, the other one and the small ones. The corpora that search was developed on are left
out: search is right more often there than on unseen notes. The share of right first hits must not fall as their
evidence grows, so neighbouring groups that break this are joined (isotonic regression by pooling adjacent violators).
Each line is a step: evidence, share.

Printed for each corpus, under a table made from all the others: the confidence of the first hits that are not weak and
the share of them that is right, the share of right first hits that is not weak, and the share of questions without an
answer (about other things, and near misses) that have only weak hits.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
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
LEAST = 48
"""First hits of a step, at least."""
MOST = 0.995
"""The largest share: no hit is certain, however few of the best were wrong."""
_CANDIDATES = 60
COLUMNS = ("says", "right", "not weak", "nothing", "near miss", "elsewhere")


class Point(NamedTuple):
    """A question that was asked: evidence of the first hit, whether it is right, the most evidence of ten hits."""

    corpus: str
    kind: str
    """`few` in a small memory, `elsewhere` in a memory about other things."""
    evidence: float
    right: bool
    most: float

    @property
    def place(self) -> str:
        """Whether its own memory was asked, a small one, or one about other things."""
        return self.kind if self.kind in ("few", "elsewhere") else "own"


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
    fitted = [one for one in points if one.corpus in corpora.LATER]
    steps = pooled(fitted)
    lines = [f"{first:.3f} {share:.3f}" for first, share in zip(*steps, strict=True)]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(fitted)} questions\n" + "\n".join(lines))
    print(f"\n{'left out':12}" + "".join(f"{name:>10}" for name in COLUMNS))
    for name in dict.fromkeys(one.corpus for one in points):
        others = pooled([one for one in fitted if one.corpus != name])
        own = [one for one in points if one.corpus == name and one.kind != "few"]
        strong = [one for one in own if one.kind != "elsewhere" and between(others, one.evidence) >= WEAK]
        cells = [share([between(others, one.evidence) for one in strong]), share([one.right for one in strong])]
        cells.append(share([between(others, one.evidence) >= WEAK for one in own if one.right]))
        for kind in ("none", "near", "elsewhere"):
            cells.append(share([between(others, one.most) < WEAK for one in own if one.kind == kind]))
        print(f"{name:12}" + "".join(f"{cell:>10}" for cell in cells))


def pooled(points: Sequence[Point]) -> tuple[Sequence[float], Sequence[float]]:
    """Evidence and share of right first hits, step by step."""
    sizes = Counter((one.corpus, one.place) for one in points)
    ordered = sorted((one.evidence, one.right, 1 / sizes[one.corpus, one.place]) for one in points)
    steps: list[list[float]] = []  # [first evidence, right, asked]
    for at in range(0, len(ordered), LEAST):
        group = ordered[at : at + LEAST]
        steps.append([group[0][0], sum(weight for _, right, weight in group if right), sum(one[2] for one in group)])
        while len(steps) > 1 and steps[-2][1] / steps[-2][2] >= steps[-1][1] / steps[-1][2]:
            last = steps.pop()
            steps[-1][1] += last[1]
            steps[-1][2] += last[2]
    return [first for first, _, _ in steps], [min(right / asked, MOST) for _, right, asked in steps]


def share(said: Sequence[float]) -> str:
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
            points.append(Point(corpus.name, kind or question.kind, 0.0, False, 0.0))
            continue
        first = next(c for c in held.candidates if c.key == hits[0].key)
        right = kind != "elsewhere" and (
            first.id in question.gold or any(a.lower() in first.content.lower() for a in question.answers)
        )
        most = max(one.evidence for one in hits)
        points.append(Point(corpus.name, kind or question.kind, hits[0].evidence, right, most))
    return points


if __name__ == "__main__":
    main()
