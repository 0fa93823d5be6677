"""One page of figures: a table for every question that a user asks, with peers next to Reverie, from one run.

    make bench                       every question; writes docs/measured.md and its plots
    python -m bench.page --quick     fewer rounds, 2,000 entries
    python -m bench.page --out FILE  write another page; plots go to images/ next to it

Wall-clock figures are meaningful only on a machine with nothing else to do; the page says how busy it was. Processor time
and counts hold on any machine.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import corpora, distil, hot, store
from bench.peers.environment import ROOT, Child, NotAvailableError
from bench.plots import bars

PAGE = ROOT / "docs" / "measured.md"
CORPORA = ("personal", "work", "habits", "languages")
FINDERS = ("reverie", "floor", "langgraph", "mem0")
NOT_HERE = (
    "Letta, Zep and Graphiti are not in this run: they need a server, a graph database or a model that answers, and "
    "this run has neither network nor keys."
)
NAMES = store.TITLES | {"langgraph_shipped": "LangGraph", "langgraph": "LangGraph, WAL", "floor": "SQLite + FTS5"}


@dataclass
class Section:
    """A question with its answer."""

    question: str
    lead: str
    command: str
    table: list[str]
    notes: list[str] = field(default_factory=list)
    plots: dict[str, str] = field(default_factory=dict)


def rows(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """A table of Markdown; all but the first column are figures."""
    return [
        "| " + " | ".join(head) + " |",
        "|---|" + "---:|" * (len(head) - 1),
        *("| " + " | ".join(line) + " |" for line in lines),
    ]


def fast(report: dict[str, Any]) -> Section:
    """How fast is it?"""
    results = report["results"]
    peers = [peer for peer in store.PEERS if peer in results]
    lines, notes = [], []
    for title, name, figure, more in store.ROWS:
        if not any(figure in results[peer].get(name, {}) for peer in peers):
            continue
        cells = []
        for peer in peers:
            value = results[peer].get(name, {})
            if figure not in value and "error" in value:
                notes.append(f"{NAMES[peer]}, {title}: {value['error']}.")
            cells.append(
                "-" if figure not in value else f"{value[figure]:,.0f}/s" if more else f"{value[figure]:.1f} ms"
            )
        lines.append([title, *cells])
    for title, name in (
        ("processor time of a write, in us", "single"),
        ("processor time of a search, 10,000 entries, in us", "search_10000"),
    ):
        times = [results[peer].get(name, {}).get("cpu_us") for peer in peers]
        lines.append([title, *("-" if time is None else f"{time:,.0f}" for time in times)])
    notes += [f"{NAMES[peer]}: {reason}." for peer, reason in report["absent"].items()]

    def plot(title: str, name: str, figure: str, form: str) -> str:
        found = [(NAMES[peer], results[peer][name][figure]) for peer in peers if figure in results[peer].get(name, {})]
        return bars(title, found, form)

    return Section(
        "How fast is it?",
        "Durable writes, reads and searches of the same entries. Each memory has its own process and its own environment.",
        "python -m bench store",
        rows(["", *(NAMES[peer] for peer in peers)], lines),
        notes,
        {
            "writes": plot("Durable writes per second, 1 client", "single", "per_second", "{:,.0f}"),
            "clients": plot("Durable writes per second, 64 clients", "clients", "per_second", "{:,.0f}"),
            "search": plot(
                "Median search time in 10,000 entries, in ms (less is better)", "search_10000", "p50_ms", "{:.1f}"
            ),
        },
    )


def sizes_and_answers(entries: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Disk and process memory of each peer for `entries` entries, its answers from our corpora, and the absent peers."""
    found: dict[str, Any] = {}
    sizes: dict[str, Any] = {}
    absent: dict[str, str] = {}
    asked = {name: corpora.ours(name) for name in CORPORA}
    folder = Path(tempfile.mkdtemp(prefix="reverie-bench-"))
    try:
        for peer in FINDERS:
            try:
                child = Child(peer)
            except NotAvailableError as reason:
                absent[peer] = str(reason)
                continue
            print(f"size and answers, {peer}", file=sys.stderr, flush=True)
            try:
                loaded = child.ask("load", folder=str(folder / peer), entries=entries, seconds=300)
                if loaded.get("entries") == entries:
                    sizes[peer] = child.ask("size", folder=str(folder / peer))
                found[peer] = {
                    name: _judged(child, folder / f"{peer}-{name}", memory) for name, memory in asked.items()
                }
            finally:
                child.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return sizes, found, absent


def _judged(child: Child, folder: Path, memory: corpora.Memory) -> tuple[float, float]:
    """The shares of questions, in per cent, whose right note is the first hit, and whose right note is among the hits."""
    text = {note.id: note.text for note in memory.notes}
    asks = [ask for ask in memory.asks if ask.gold and ask.held_out]
    answer = child.ask(
        "answers", folder=str(folder), notes=[note.text for note in memory.notes], asked=[ask.text for ask in asks]
    )
    if "error" in answer:
        raise RuntimeError(answer["error"])
    first = third = 0
    for ask, hits in zip(asks, answer["found"], strict=True):
        right = {text[key] for key in ask.gold}
        first += bool(hits) and hits[0] in right
        third += any(hit in right for hit in hits)
    return 100 * first / len(asks), 100 * third / len(asks)


def big(sizes: dict[str, Any], entries: int) -> Section:
    """How big does it get?"""
    lines = [
        [NAMES[peer], f"{size['bytes']:,.0f}", f"{size['bytes'] / size['text']:.1f}", f"{size['process_mb']:,.0f} MB"]
        for peer, size in sizes.items()
    ]
    return Section(
        "How big does it get?",
        f"{entries:,} entries of some 110 characters. Reverie's bytes include the hash-chained log, the words and the "
        "vectors; the space that it reserves for erasing on a full disk (8 MB) is not counted.",
        "python -m bench.page",
        rows(["", "bytes per entry on disk", "times its text", "peak memory of the process"], lines),
        plots={
            "size": bars(
                "Bytes per entry on disk (less is better)",
                [(NAMES[peer], size["bytes"]) for peer, size in sizes.items()],
                "{:,.0f}",
            )
        },
    )


def well(found: dict[str, Any], absent: dict[str, str]) -> Section:
    """How well does it find?"""
    lines = [
        [NAMES[peer], *(f"{first:.0f} / {third:.0f}" for first, third in own.values())] for peer, own in found.items()
    ]
    means = [(NAMES[peer], sum(first for first, _ in own.values()) / len(own)) for peer, own in found.items()]
    return Section(
        "How well does it find?",
        "Per cent of the questions whose right note comes first / is among the first three, in four memories that this project "
        "wrote (personal notes, work, habits, fifteen languages). The questions are the held-out ones, which were looked at "
        "more than once. LangGraph and mem0 use the vectors of Reverie's own table, so that only the search around them "
        "differs; each is better with a larger model, as Reverie is (`REVERIE_EMBEDDER`). The notes are ours: expect less "
        "elsewhere.",
        "python -m bench.page; python -m bench retrieval --held-out",
        rows(["", *CORPORA], lines),
        [f"{NAMES[peer]}: {reason}." for peer, reason in absent.items()],
        {"found": bars("Right note first, in per cent, mean of four memories", means, "{:.0f}")},
    )


def survives() -> Section:
    """What survives a dream?"""
    own = [distil.load(path) for path in sorted(distil.DATA.glob("*.jsonl"))]
    ranks = {"first entries": distil.lead, "rarest words": distil.idf, "TextRank": distil.textrank}
    mixed = hot.mixed([(corpus.sources, corpus.questions) for corpus in own])
    print("what survives a dream", file=sys.stderr, flush=True)
    found = hot.measure(mixed, ranks, distil.verbatim)[: 1 + len(ranks)]
    names = [str(row["system"]).replace("reverie", "Reverie") for row in found]
    lines = [
        [name, *(f"{row[figure]:.0f} %" for figure in ("must_keep", "rules", "facts", "hot"))]
        for name, row in zip(names, found, strict=True)
    ]
    first = found[0]
    return Section(
        "What survives a dream?",
        f"One memory of {len(mixed.sources)} entries: labelled talk, notes and conversations, dreamt until nothing more "
        "leaves. The other rows keep as many words. No peer shrinks a memory without a model, so they are methods, not "
        "products. What leaves hot memory stays in cold storage: the right note is among the first three hits of a search for "
        f"{first['three_before']:.0f} % of the questions before the dream and for {first['three_after']:.0f} % after it.",
        "python -m bench distil",
        rows(
            ["", "must-keep lines", "rules and preferences among them", "questions answered", "words left hot"], lines
        ),
        plots={
            "dream": bars(
                "Must-keep lines still in hot memory, in per cent",
                [(name, float(row["must_keep"])) for name, row in zip(names, found, strict=True)],
                "{:.0f}",
            )
        },
    )


def costs(bills: list[dict[str, Any]], blocks: list[list[str]]) -> Section:
    """What does it cost?"""
    lines = [
        [
            bill["name"] if bill["name"].startswith("OpenAI") else f"Reverie {bill['name']}",
            f"{bill['sent']:,}",
            f"{bill['passes']}",
            f"{bill['billed']:,}",
            f"{bill['facts_known']} of {bill['facts']}",
        ]
        for bill in bills
    ]
    return Section(
        "What does it cost?",
        "No model and no key: a write, a search and a dream cost only processor time (above). Two things cost tokens: the "
        "memory in a prompt, and a long conversation. The first table shows what `context` adds to a prompt; the second is "
        "the bill of one long session against an emulated provider, in input tokens (a cached token counts a tenth, an output "
        "token eight), next to the Agents SDK's own compaction.",
        "python -m bench.page; python -m bench.window --part bills",
        [
            *rows(
                ["notes in the prompt", "tokens of the block", "tokens per note", "tokens of the notes alone"], blocks
            ),
            "",
            *rows(["", "tokens sent", "passes", "billed", "facts known at the end"], lines),
        ],
    )


def packed() -> list[list[str]]:
    """Rows: notes in a block that `context` packs, tokens of the block, tokens per note, tokens of the notes alone."""
    import reverie
    from reverie.providers.tokenizer import TokenCounter

    tokens = TokenCounter("o200k_base")
    texts = [f"The customer of order {4000 + n} wants delivery after {9 + n % 9}:00." for n in range(50)]
    made = []
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        notes = memory.ref("notes")
        notes.put_many(texts)
        for budget in (100, 300, 1000):
            block = notes.context("when do customers want delivery?", budget=budget)
            alone = sum(tokens.count(notes.get(one).content) for one in block.included)
            count = len(block.included)
            made.append([str(count), str(block.tokens), f"{block.tokens / count:.1f}", str(alone)])
    return made


def billed(turns: int) -> list[dict[str, Any]]:
    """The bills of one session, one for each way to keep it small."""
    from agents import set_tracing_disabled

    from bench.window import curve

    print("bills of a session", file=sys.stderr, flush=True)
    set_tracing_disabled(True)
    logging.disable(logging.ERROR)
    return [asdict(bill) | {"billed": bill.billed} for bill in curve.bills(turns, triggers=())]


def written(sections: Sequence[Section], report: dict[str, Any], out: Path, *, quick: bool) -> str:
    """The text of the page. Writes the plots to `images/` next to `out`."""
    images = out.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    machine = "; ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [
        "# Measured: one run of `make bench`",
        "",
        "Five questions, each answered by a table with other memories next to Reverie, from one run on one machine. "
        "[Benchmarks](benchmarks.md) has short answers.",
        "",
        f"Written by `make bench`{' (`--quick`)' if quick else ''}; do not edit. Machine: {machine}. Wall-clock figures "
        "mean little above a load of 1; processor time and counts hold.",
    ]
    for section in sections:
        lines += ["", f"## {section.question}", "", section.lead, "", f"    {section.command}", "", *section.table]
        if section.notes:
            lines += ["", *(f"- {note}" for note in dict.fromkeys(section.notes))]
        for name, plot in section.plots.items():
            (images / f"bench-{name}.svg").write_text(plot, encoding="utf-8")
            title = plot.split("<title>", 1)[1].split("</title>", 1)[0]
            lines += ["", f"![{title}](images/bench-{name}.svg)"]
    lines += ["", "## What was compared", "", NOT_HERE, ""]
    for peer, versions in report["versions"].items():
        lines.append(f"- {store.TITLES[peer]}: " + ", ".join(f"{name} {value}" for name, value in versions.items()))
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, 2,000 entries")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page; plots go to images/ next to it")
    given = parser.parse_args()
    entries = 2_000 if given.quick else 10_000
    sizes, found, absent = sizes_and_answers(entries)
    bills = billed(20 if given.quick else 60)
    report = store.measure(list(store.PEERS), quick=given.quick)
    sections = [
        fast(report),
        big(sizes, entries),
        well(found, absent),
        survives(),
        costs(bills, packed()),
    ]
    given.out.write_text(written(sections, report, given.out, quick=given.quick), encoding="utf-8")
    print(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
