"""Make src/reverie/search/confidence.txt: the share of right first hits by how much evidence they have.

    python tools/build_confidence.py

Every question of our own corpora (bench/data; held-out questions are not asked) is put to its own memory and to one
that holds something else, where nothing answers it: so half of the questions have no answer, as in the life of an
agent. The same for small memories, of one to twenty notes of the corpora (`corpora.samples`). The share of right
answers among first hits must not fall as their evidence grows, so neighbouring groups that break this are joined
(isotonic regression by pooling adjacent violators). One line a step: evidence, share.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import corpora

import reverie
from reverie.core.entry import Scope
from reverie.core.query import Filter
from reverie.search.rank import rank

TARGET = Path(__file__).parent.parent / "src" / "reverie" / "search" / "confidence.txt"
LEAST = 16
"""First hits of a step, at least."""


def main() -> None:
    memories = [*map(corpora.ours, corpora.OURS), corpora.talks()]
    memories += [*corpora.distilled(), *corpora.locomo(corpora.DATA / "small.json")]
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        for number, one in enumerate(memories):
            memory.ref(f"m{number}").put_many([corpora.stored(note) for note in one.notes])
        points = []
        for number, one in enumerate(memories):
            points += ask(memory, f"m{number}", one)
            points += [(value, False) for value, _ in ask(memory, f"m{(number + 1) % len(memories)}", one)]
        for name in corpora.OURS:
            for size in corpora.SIZES:
                for number, one in enumerate(corpora.samples(corpora.ours(name), size)):
                    memory.ref(f"{name}{size}/{number}").put_many([corpora.stored(note) for note in one.notes])
                    points += ask(memory, f"{name}{size}/{number}", one)
    points.sort()
    steps: list[list[float]] = []  # [first evidence, right, asked]
    for at in range(0, len(points), LEAST):
        group = points[at : at + LEAST]
        steps.append([group[0][0], sum(right for _, right in group), len(group)])
        while len(steps) > 1 and steps[-2][1] / steps[-2][2] >= steps[-1][1] / steps[-1][2]:
            last = steps.pop()
            steps[-1][1] += last[1]
            steps[-1][2] += last[2]
    lines = [f"{first:.3f} {right / asked:.3f}" for first, right, asked in steps]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(points)} questions\n" + "\n".join(lines))


def ask(memory: reverie.Memory, ref: str, corpus: corpora.Memory) -> list[tuple[float, bool]]:
    """(evidence, whether it is right) of the first hit of every question."""
    recall = memory.host.search
    found = []
    for question in corpus.asks:
        if question.held_out:
            continue
        vector, _ = recall._vector(question.text, "hybrid")

        def body(tx, question=question, vector=vector):  # type: ignore[no-untyped-def]
            return recall._candidates(tx, tx, question.text, vector, Filter(), 60, "hybrid", "UTC")

        held = memory.host.parts.store.read(Scope("default", ref), body)
        first = rank(held.question, held.candidates, neighbours=held.neighbours, limit=1)
        for one in first:
            candidate = next(c for c in held.candidates if c.key == one.key)
            right = candidate.id in question.gold or any(
                a.lower() in candidate.content.lower() for a in question.answers
            )
            found.append((one.evidence, right))
    return found


if __name__ == "__main__":
    main()
