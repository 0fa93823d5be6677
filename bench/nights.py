"""Thirty nights of a growing memory: what it still holds, and what it costs.

    python -m bench nights                 # the five corpora in bench/data/distil, in one memory
    python -m bench.nights --locomo FILE   # a file in LoCoMo's format that you have

Every night a thirtieth of a corpus is written, and the memory is dreamt as by the nightly schedule. Measured at the end:
`must keep`, the share of statements judged must-keep that are still in hot memory; `answers`, the share of questions that
hot memory answers; `in three`, the share whose answer is in the first three hits of a search, which goes deep where hot
memory answers weakly; hot tokens, their share of all that was written, and bytes on disk.

Side by side, with as many hot tokens: the first entries, those with the rarest words (idf), those most like the others
(TextRank), and summarise-and-delete: every night a TextRank extract of the last extract and the new entries.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import reverie
from bench.distil import DATA, Corpus, count, idf, lead, line, load, load_locomo, textrank, verbatim
from bench.hot import night, shown
from bench.survival import share, survived
from reverie.distil.gates import verify
from reverie.distil.must_keep import MustKeep, find
from reverie.distil.source import Source

NIGHTS = 30
TARGETS = ("50%", "40%")


@dataclass(frozen=True)
class Result:
    kept: list[bool]
    answers: list[bool]
    in_three: list[bool]
    hot: int
    disk: int


def together(corpora: Sequence[Corpus]) -> Corpus:
    """One memory of several corpora, in order of time: alone each is too small for anything to leave."""
    sources = [replace(s, id=f"{c.name}-{s.id}") for c in corpora for s in c.sources]
    ordered = sorted(sources, key=lambda source: (source.created_at, source.id))
    return Corpus("together", ordered, [question for corpus in corpora for question in corpus.questions])


def parts(sources: Sequence[Source], nights: int) -> list[Sequence[Source]]:
    return [sources[len(sources) * n // nights : len(sources) * (n + 1) // nights] for n in range(nights)]


def held(sources: Sequence[Source], items: Sequence[MustKeep], text: str) -> list[bool]:
    """Which must-keep statements a text has, by the gate that dreams pass."""
    report = verify(sources, text, must_keep=items, budget=10**9, input_tokens=10**9, count=count)
    return [kept.state != "missing" for kept in report.must_keep]


def dreamt(corpus: Corpus, items: Sequence[MustKeep], target: str, nights: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        with reverie.open(folder) as memory:
            memory.set_policy(hot_target=target)
            notes = memory.ref("memory")
            for part in parts(corpus.sources, nights):
                notes.put_many(
                    [
                        {"id": s.id, "content": s.content, "created_at": s.created_at, "kind": s.kind}
                        | ({"source": {"actor": s.speaker, "session": s.session}} if s.speaker else {})
                        for s in part
                    ]
                )
                night(notes)
            text = "\n".join(shown(entry) for entry in reversed(list(notes.entries())))
            in_three = [
                any(survived("\n".join(hit.text for hit in notes.search(question.ask, limit=3).hits), [question]))
                for question in corpus.questions
            ]
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return Result(held(corpus.sources, items, text), survived(text, corpus.questions), in_three, count(text), disk)


def chosen(rank: Callable[[Sequence[Source]], list[int]]) -> Callable[[Corpus, int, int], str]:
    return lambda corpus, hot, _: verbatim(corpus.sources, rank(corpus.sources), hot)


def summarised(corpus: Corpus, hot: int, nights: int) -> str:
    """Every night an extract of the last extract and what is new; the rest is deleted."""
    left: list[Source] = []
    for number, part in enumerate(parts(corpus.sources, nights), 1):
        left += part
        most, used = hot * number // nights, 0
        keep: set[int] = set()
        for i in textrank(left):
            if used + count(line(left[i])) <= most:
                used += count(line(left[i]))
                keep.add(i)
        left = [left[i] for i in sorted(keep)]
    return verbatim(left, lead(left), hot)


BASELINES: dict[str, Callable[[Corpus, int, int], str]] = {
    "lead": chosen(lead),
    "idf": chosen(idf),
    "textrank": chosen(textrank),
    "summarise and delete": summarised,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="a file in LoCoMo's format, in place of the five corpora")
    parser.add_argument("--quick", action="store_true", help="ten nights")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args()
    nights = 10 if given.quick else NIGHTS
    corpora = load_locomo(given.locomo) if given.locomo else [together([load(p) for p in sorted(DATA.glob("*.jsonl"))])]
    total = sum(corpus.tokens for corpus in corpora)
    must = [find(corpus.sources) for corpus in corpora]
    rows: list[dict[str, object]] = []

    def add(system: str, results: Sequence[Result]) -> None:
        hot = sum(result.hot for result in results)
        asked = [hit for result in results for hit in result.in_three]
        rows.append(
            {
                "system": system,
                "must_keep": round(share([one for result in results for one in result.kept]), 1),
                "answers": round(share([one for result in results for one in result.answers]), 1),
                "in_three": round(share(asked), 1) if asked else None,
                "hot_tokens": hot,
                "hot_share": round(100 * hot / total, 1),
                "disk_bytes": sum(result.disk for result in results),
            }
        )

    whole = ["\n".join(line(s) for s in corpus.sources) for corpus in corpora]
    add(
        "everything",
        [
            Result(held(c.sources, m, t), survived(t, c.questions), [], c.tokens, len(t))
            for c, m, t in zip(corpora, must, whole, strict=True)
        ],
    )
    for target in TARGETS:
        made = [dreamt(corpus, items, target, nights) for corpus, items in zip(corpora, must, strict=True)]
        add(f"reverie, hot_target {target}", made)
        for name, system in BASELINES.items():
            texts = [system(corpus, result.hot, nights) for corpus, result in zip(corpora, made, strict=True)]
            add(
                name,
                [
                    Result(held(c.sources, m, text), survived(text, c.questions), [], count(text), len(text.encode()))
                    for c, m, text in zip(corpora, must, texts, strict=True)
                ],
            )
    if given.json:
        print(json.dumps({"nights": nights, "tokens": total, "rows": rows}, indent=2))
        return 0
    print(f"{nights} nights, {total} tokens written")
    print(f"{'system':<26} must keep  answers  in three  hot tokens  share  disk bytes")
    for row in rows:
        three = "" if row["in_three"] is None else row["in_three"]
        print(
            f"{row['system']:<26} {row['must_keep']:>9}  {row['answers']:>7}  {three:>8}"
            f"  {row['hot_tokens']:>10}  {row['hot_share']:>5}  {row['disk_bytes']:>10}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
