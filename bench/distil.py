"""How much survives distilling? Fact survival at 10, 20 and 30 per cent of the tokens, what stays hot after dreams, and
entries per second.

    python -m bench.distil                        # the five corpora in bench/data/distil
    python -m bench.distil --locomo FILE          # and a file in LoCoMo's format that you have
    python -m bench.distil --locomo FILE --write DIR   # also write the texts, DIR/<id>.b10.txt ...

Beside the model-free distiller stand three baselines that keep entries verbatim, under the same date
headings and the same budget: the first entries (lead), those with the rarest words for their length
(idf), those most like the others (TextRank). Tokens are words and marks here, so that figures compare
with published ones; throughput is measured with the exact o200k count.

LoCoMo (Maharana et al., ACL 2024) is licensed CC BY-NC 4.0 and is not part of this project: measure
with it if your use allows, and do not ship it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench import hot
from bench.survival import Question, control, function_word_share, share, survived, words
from reverie.distil.dates import day_of, spell
from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.source import Source
from reverie.providers.tokenizer import TokenCounter

DATA = Path(__file__).parent / "data" / "distil"
BUDGETS = (10, 20, 30)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}
_TOKEN = re.compile(r"\w+|[^\w\s]")


def count(text: str) -> int:
    return len(_TOKEN.findall(text))


@dataclass(frozen=True)
class Corpus:
    name: str
    sources: list[Source]
    questions: list[Question]

    @property
    def tokens(self) -> int:
        return sum(count(line(s)) for s in self.sources)


def line(source: Source) -> str:
    return f"{source.speaker}: {source.content}" if source.speaker else source.content


def load(path: Path) -> Corpus:
    sources = []
    questions = []
    for row in map(json.loads, path.read_text("utf-8").splitlines()):
        if "ask" in row:
            questions.append(Question(row["ask"], (row["answer"],)))
        else:
            at = int(datetime.fromisoformat(row["at"]).timestamp() * 1000)
            sources.append(Source(row["id"], row["content"], at, row["speaker"], row["kind"]))
    return Corpus(path.stem, sources, questions)


def load_locomo(path: Path) -> list[Corpus]:
    out = []
    for sample in json.loads(path.read_text("utf-8")):
        talk = sample["conversation"]
        sessions = sorted((k for k in talk if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:]))
        sources = []
        for session in sessions:
            at = datetime.strptime(talk[f"{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for turn in talk[session]:
                caption = turn.get("blip_caption")
                number = len(sources)
                sources.append(
                    Source(
                        id=f"{number:05d}",
                        content=turn["text"] + (f" [shows: {caption}]" if caption else ""),
                        created_at=int(at.timestamp() * 1000) + number,
                        speaker=turn["speaker"],
                        session=session,
                    )
                )
        questions = []
        for qa in sample["qa"]:
            if qa["category"] in CATEGORIES and "answer" in qa:
                answer = str(qa["answer"])
                parts = re.split(r",|;|\band\b", answer) if qa["category"] == 1 else [answer]
                parts = [p for p in parts if words(p)] or [answer]
                questions.append(Question(qa["question"], tuple(parts), CATEGORIES[qa["category"]]))
        out.append(Corpus(sample["sample_id"], sources, questions))
    return out


# Ways to choose entries: sources in, indices out, best first.


def lead(sources: Sequence[Source]) -> list[int]:
    return list(range(len(sources)))


def idf(sources: Sequence[Source]) -> list[int]:
    bags = [words(s.content) for s in sources]
    seen = Counter(w for bag in bags for w in bag)
    density = [
        sum(math.log((len(bags) + 1) / (seen[w] + 0.5)) for w in bag) / (count(line(s)) + 4)
        for s, bag in zip(sources, bags, strict=True)
    ]
    return sorted(range(len(sources)), key=lambda i: (-density[i], i))


def textrank(sources: Sequence[Source]) -> list[int]:
    bags = [words(s.content) for s in sources]
    having: dict[str, list[int]] = {}
    for i, bag in enumerate(bags):
        for w in bag:
            having.setdefault(w, []).append(i)
    links: list[Counter[int]] = [Counter() for _ in bags]
    for members in having.values():
        if len(members) * 5 <= len(bags):
            for i in members:
                links[i].update(j for j in members if j != i)
    edges = [
        {j: n / (math.log(len(bags[i]) + 1) + math.log(len(bags[j]) + 1)) for j, n in row.items()}
        for i, row in enumerate(links)
    ]
    rank = [1.0] * len(bags)
    total = [sum(row.values()) or 1.0 for row in edges]
    for _ in range(20):
        rank = [0.15 + 0.85 * sum(w / total[j] * rank[j] for j, w in row.items()) for row in edges]
    return sorted(range(len(bags)), key=lambda i: (-rank[i], i))


def verbatim(sources: Sequence[Source], order: Sequence[int], budget: int) -> str:
    """The chosen entries as they are, in order, under a heading per day, while they fit."""
    chosen: list[int] = []
    days: set[str] = set()
    used = 0
    for i in order:
        heading = f"[{spell(day_of(sources[i].created_at))}]"
        size = count(line(sources[i])) + (0 if heading in days else count(heading))
        if used + size <= budget:
            used += size
            days.add(heading)
            chosen.append(i)
    out: list[str] = []
    for i in sorted(chosen):
        heading = f"[{spell(day_of(sources[i].created_at))}]"
        if heading in days:
            days.discard(heading)
            out.append(heading)
        out.append(line(sources[i]).replace("\n", " "))
    return "\n".join(out)


def distilled(corpus: Corpus) -> Callable[[int], str]:
    distiller = ExtractiveDistiller()
    prepared = distiller.prepare(corpus.sources)
    least = distiller.minimum(
        prepared, count=count, declared=True
    )  # what its author declared binding may need a little more
    return lambda budget: distiller.distil(prepared, output_tokens=max(budget, least), count=count, whole=False).text


def baseline(rank: Callable[[Sequence[Source]], list[int]]) -> Callable[[Corpus], Callable[[int], str]]:
    def ready(corpus: Corpus) -> Callable[[int], str]:
        order = rank(corpus.sources)
        return lambda budget: verbatim(corpus.sources, order, budget)

    return ready


SYSTEMS: dict[str, Callable[[Corpus], Callable[[int], str]]] = {
    "reverie": distilled,
    "lead": baseline(lead),
    "idf": baseline(idf),
    "textrank": baseline(textrank),
}


def measure(corpora: Sequence[Corpus], label: str, write: Path | None) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, system in SYSTEMS.items():
        ready = [system(c) for c in corpora]
        for budget in BUDGETS:
            found: list[bool] = []
            chance: list[bool] = []
            grammar = []
            groups: dict[str, list[bool]] = {}
            for corpus, make in zip(corpora, ready, strict=True):
                text = make(corpus.tokens * budget // 100)
                hits = survived(text, corpus.questions)
                found += hits
                chance += survived(text, control(corpus.questions))
                grammar.append(function_word_share(text))
                for question, hit in zip(corpus.questions, hits, strict=True):
                    groups.setdefault(question.group, []).append(hit)
                if write and name == "reverie":
                    (write / f"{corpus.name}.b{budget}.txt").write_text(text, "utf-8")
            rows.append(
                {
                    "corpus": label,
                    "system": name,
                    "budget": budget,
                    "survival": round(share(found), 1),
                    "chance": round(share(chance), 1),
                    "function_words": round(sum(grammar) / len(grammar), 1),
                    "questions": len(found),
                    **({"by": {g: round(share(v), 1) for g, v in sorted(groups.items())}} if len(groups) > 1 else {}),
                }
            )
    return rows


def varied(corpora: Sequence[Corpus], size: int) -> list[Source]:
    """`size` entries made from the corpora: every round adds words of its own, a tenth are repeats."""
    rng = random.Random(5)
    base = [s for c in corpora for s in c.sources]
    out = []
    for i in range(size):
        source = base[i % len(base)]
        own = "" if rng.random() < 0.1 else f" Reference {i}, shelf {rng.randrange(10**6)}."
        out.append(
            replace(source, id=f"{i:08d}", content=source.content + own, created_at=source.created_at + i * 60_000)
        )
    return out


def throughput(corpora: Sequence[Corpus], sizes: Sequence[int]) -> list[dict[str, object]]:
    counter = TokenCounter()
    counter.count("warm")
    rows: list[dict[str, object]] = []
    for size in sizes:
        sources = varied(corpora, size)
        budget = sum(count(s.content) for s in sources) // 5
        distiller = ExtractiveDistiller()
        wall, cpu = time.perf_counter(), time.process_time()
        prepared = distiller.prepare(sources)
        ready = time.process_time() - cpu
        distiller.distil(prepared, output_tokens=budget, count=counter.count)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        rows.append(
            {
                "entries": size,
                "cpu_seconds": round(cpu, 2),
                "prepare_seconds": round(ready, 2),
                "wall_seconds": round(wall, 2),
                "entries_per_second": round(size / cpu),
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="a file in LoCoMo's format")
    parser.add_argument("--write", type=Path, help="a folder for the distilled texts of --locomo")
    parser.add_argument("--quick", action="store_true", help="leave out 100,000 entries")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args()
    own = [load(p) for p in sorted(DATA.glob("*.jsonl"))]
    rows = [row for corpus in own for row in measure([corpus], corpus.name, None)]
    rows += measure(own, "all five", None)
    if given.locomo:
        if given.write:
            given.write.mkdir(parents=True, exist_ok=True)
        rows += measure(load_locomo(given.locomo), "locomo", given.write)
    speed = throughput(own, (1_000, 10_000) if given.quick else (1_000, 10_000, 100_000))
    kept = hot.measure(
        hot.mixed([(corpus.sources, corpus.questions) for corpus in own]),
        {"lead": lead, "idf": idf, "textrank": textrank},
        verbatim,
    )
    if given.json:
        print(json.dumps({"survival": rows, "throughput": speed, "hot": kept}, indent=2))
        return 0
    print(f"{'corpus':<10} {'system':<9} " + " ".join(f"{b:>4}%" for b in BUDGETS) + "   function words   chance")
    for i in range(0, len(rows), len(BUDGETS)):
        part = rows[i : i + len(BUDGETS)]
        figures = " ".join(f"{r['survival']:>5}" for r in part)
        grammar = " ".join(f"{r['function_words']:>5}" for r in part)
        chance = " ".join(f"{r['chance']:>5}" for r in part)
        print(f"{part[0]['corpus']:<10} {part[0]['system']:<9} {figures}   {grammar}   {chance}")
    print()
    hot.show(kept)
    print()
    for row in speed:
        print(
            f"{row['entries']:>7} entries: {row['entries_per_second']} per second"
            f" ({row['cpu_seconds']} s of one core, {row['prepare_seconds']} s of it to prepare)"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
