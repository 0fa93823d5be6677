"""Does search find what answers a question? Through the product's own search, over many corpora.

    python -m bench retrieval                            # the corpora in bench/data
    python -m bench.retrieval --data FOLDER              # and files that you have: locomo*.json, conflicts*.json,
                                                         # personamem*.json
    python -m bench.retrieval --held-out                 # the questions that nothing was tuned with
    python -m bench.retrieval --every --only unseen      # all questions of the corpora that nothing is fitted on
    python -m bench.retrieval --system all               # one system only
    python -m bench.retrieval --ablate                   # also without each signal
    python -m bench.retrieval --only few                 # memories of one to twenty notes

One line a system: BM25 over entries, BM25 over passages, words, meaning, all signals (and all but one). One column a
figure of a corpus, in per cent: `first` (the right entry first), `in 3`, `update` (the newest fact first), `none` (a
question that nothing answers has no hit, or only weak ones), `near` (the same, for questions about someone or something
in the notes that they do not answer), `recall` (evidence among ten hits), `current` (the current
fact first), `telling` (words of the right option among ten hits), `packed` (the same in `context` of 2,000 tokens), and
the tokens of ten hits. Below `all`: the confidence that first hits say, unless they are weak, and how many of those are
right. `users` has the messages of users only, `chats` also the assistant's answers, and `... hidden` is
a corpus of ours among three of these chats. `few` has small memories, dealt out of the corpora of short notes: the share
of questions answered (the right note is a hit that is not weak), and of those without an answer that get none, by the
number of notes in a memory. `together` pools the questions of all corpora of short notes that were asked.

LoCoMo (Maharana et al., ACL 2024) is licensed CC BY-NC 4.0 and is not part of this project: measure with it if your use
allows, and do not ship it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import reverie
from bench import corpora
from reverie.app import build_embedder
from reverie.index import words
from reverie.index.parts import Part
from reverie.index.postings import ask, pack
from reverie.index.segment import build
from reverie.memory.hits import Hit
from reverie.memory.search import Search
from reverie.search.analysis import query_terms, terms
from reverie.search.confidence import WEAK
from reverie.search.passages import Passage, passages
from reverie.search.rank import WEIGHTS, Weights
from reverie.search.text import searchable

KEY = b"bench" * 6
LIMIT = 10
SIGNALS: dict[str, dict[str, float | bool]] = {
    "context": {"previous": 0.0, "following": 0.0, "before_previous": 0.0, "after_following": 0.0, "itself": 0.0},
    "time": {"time": 0.0, "dated": 0.0},
    "kind": {"kind": 0.0},
    "speaker": {"speaker": 0.0},
    "currency": {"currency": False},
    "words": {"words": 0.0},
    "meaning": {"meaning": 0.0},
    "alike": {"alike": 0.0},
}
Found = list[tuple[str, str, str, float]]
"""(id, text shown, whole content, confidence)."""
Ask = Callable[[str], Found]


def corpus(options: argparse.Namespace) -> Iterator[tuple[str, list[corpora.Memory]]]:
    """The corpora asked for, by name."""
    for name in (*corpora.OURS, *corpora.JUDGES):
        yield name, [corpora.ours(name)]
    yield "talks", [corpora.talks()]
    yield "five", list(corpora.distilled())
    yield "small", list(corpora.locomo(corpora.DATA / "small.json"))
    if options.data is None:
        return
    for path in sorted(options.data.glob("*.json")):
        if path.name.startswith("locomo"):
            yield "locomo", list(corpora.locomo(path))
        elif path.name.startswith("conflicts"):
            yield "conflicts", [corpora.conflicts(path)]
        elif path.name.startswith("personamem"):
            yield "users", list(corpora.chats(path))
            everyone = list(corpora.chats(path, roles=("user", "assistant")))
            yield "chats", everyone
            for own in (corpora.ours("long"), corpora.ours("asides"), corpora.talks()):
                yield f"{own.name} hidden", [corpora.hidden(own, everyone[:3])]


def bm25(memory: corpora.Memory, *, whole: bool) -> Ask:
    """BM25 over the product's own terms, of entries or of their passages."""
    parts = [
        (note, part)
        for note in memory.notes
        for part in ([Passage(0, len(note.text))] if whole else passages(note.text))
    ]
    rows = [
        (at, pack(terms(searchable(note.text[part.start : part.end], speaker=note.speaker)), KEY), None, None)
        for at, (note, part) in enumerate(parts)
    ]
    index = [Part(build(rows))]

    def search(question: str) -> Found:
        hits: dict[str, tuple[str, str, str, float]] = {}
        for found in words.best(index, ask(query_terms(question), KEY), 10 * LIMIT):
            note, part = parts[found.position]
            hits.setdefault(note.id, (note.id, note.text[part.start : part.end], note.text, 1.0))
        return list(hits.values())[:LIMIT]

    return search


def product(memory: reverie.Memory, ref: str, mode: str, weights: Weights) -> Ask:
    """The product's own search."""
    search, actor = Search(memory.host.parts, weights=weights), memory.actor

    def ask_it(question: str) -> Found:
        hits: Sequence[Hit] = search.search(actor, ref, question, limit=LIMIT, mode=mode).hits  # type: ignore[arg-type]
        return [(hit.entry.id, hit.text, hit.entry.content, hit.confidence) for hit in hits]

    return ask_it


def judge(asked: corpora.Ask, hits: Found) -> Iterator[tuple[str, float]]:
    """The figures to which a question counts."""
    yield "tokens", sum(len(text) for _, text, _, _ in hits) / 4.4 / 100
    ids = [one[0] for one in hits]
    if asked.kind in ("none", "near"):
        yield asked.kind, all(confidence < WEAK for *_, confidence in hits)
    elif asked.telling:
        yield "telling", corpora.told(asked, " ".join(text for _, text, _, _ in hits))
    elif asked.answers:
        right = [any(answer.lower() in content.lower() for answer in asked.answers) for _, _, content, _ in hits]
        yield ("current", bool(right and right[0])) if asked.kind == "current" else ("recall", any(right))
    elif asked.kind in ("evidence", "order"):
        yield "recall", sum(one in ids for one in asked.gold) / len(asked.gold) if asked.gold else 1.0
    else:
        yield "update" if asked.kind == "update" else "first", asked.gold[0] in ids[:1]
        yield "in 3", asked.gold[0] in ids[:3]


def right(asked: corpora.Ask, hit: tuple[str, str, str, float]) -> bool:
    """Whether a hit answers."""
    return hit[0] in asked.gold or any(answer.lower() in hit[2].lower() for answer in asked.answers)


def main() -> None:
    """Print the figures of every system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with files that you have")
    parser.add_argument("--held-out", action="store_true", help="the questions that nothing was tuned with")
    parser.add_argument("--every", action="store_true", help="all questions, held out or not")
    parser.add_argument("--embedder", default="static", help="static, minilm or multilingual")
    parser.add_argument("--only", default="", help="corpora whose names begin so, with commas; unseen: unfitted ones")
    parser.add_argument("--system", default="", help="these systems, with commas, instead of all")
    parser.add_argument("--ablate", action="store_true", help="also without each signal")
    options = parser.parse_args()
    options.only = options.only.replace("unseen", ",".join(corpora.JUDGES))
    systems = ["BM25", "BM25 passages", "words", "meaning", "all"]
    systems += [f"without {name}" for name in SIGNALS] if options.ablate else []
    systems = [system for system in systems if not options.system or system in options.system.split(",")]
    pooled: dict[str, dict[str, list[float]]] = {system: {} for system in systems}
    with (
        tempfile.TemporaryDirectory() as folder,
        reverie.open(folder, embedder=build_embedder(options.embedder)) as memory,
    ):
        for name, memories in corpus(options):
            if not name.startswith(tuple(options.only.split(","))):
                continue
            values: dict[str, dict[str, list[float]]] = {system: {} for system in systems}
            for number, one in enumerate(memories):
                ref = f"{name.replace(' ', '-')}/{number}"
                memory.ref(ref).put_many([corpora.stored(note) for note in one.notes])
                ways = {"BM25": bm25(one, whole=True), "BM25 passages": bm25(one, whole=False)}
                ways |= {mode: product(memory, ref, mode, WEIGHTS) for mode in ("words", "meaning")}
                ways["all"] = product(memory, ref, "hybrid", WEIGHTS)
                for signal, off in SIGNALS.items() if options.ablate else ():
                    ways[f"without {signal}"] = product(memory, ref, "hybrid", replace(WEIGHTS, **off))  # type: ignore[arg-type]
                for asked in one.asks:
                    if options.every or asked.held_out == options.held_out or not any(a.held_out for a in one.asks):
                        for system in systems:
                            hits = ways[system](asked.text)
                            for figure, value in judge(asked, hits):
                                values[system].setdefault(figure, []).append(float(value))
                            if system == "all" and hits and hits[0][3] >= WEAK:
                                values["all"].setdefault("says", []).append(hits[0][3])
                                values["all"].setdefault("right", []).append(float(right(asked, hits[0])))
                        if asked.telling and "all" in systems:
                            text = memory.ref(ref).context(asked.text, budget=2000).text
                            values["all"].setdefault("packed", []).append(corpora.told(asked, text))
            for system, found in values.items() if "first" in values[systems[0]] else ():
                for figure, own in found.items():
                    pooled[system].setdefault(figure, []).extend(own)
            report(name, values)
        if pooled[systems[0]]:
            report("together", pooled)
        if "few".startswith(tuple(options.only.split(","))):
            few(memory, options.held_out)


def few(memory: reverie.Memory, held_out: bool) -> None:
    """Print how memories of a few notes answer."""
    print(f"{'few':16}" + "".join(f"{size:>10}" for size in corpora.SIZES))
    values: dict[str, dict[int, list[bool]]] = {"answered": {}, "none": {}}
    for size in corpora.SIZES:
        for name in (*corpora.OURS, *corpora.JUDGES):
            for number, one in enumerate(corpora.samples(corpora.ours(name), size)):
                ref = f"few/{name}-{size}-{number}"
                memory.ref(ref).put_many([corpora.stored(note) for note in one.notes])
                ask_it = product(memory, ref, "hybrid", WEIGHTS)
                for asked in one.asks:
                    if asked.held_out == held_out:
                        strong = [hit[0] for hit in ask_it(asked.text) if hit[3] >= WEAK]
                        well = asked.gold[0] in strong if asked.gold else not strong
                        values["answered" if asked.gold else "none"].setdefault(size, []).append(well)
    for figure, found in values.items():
        print(f"  {figure:18}" + "".join(f"{100 * sum(own) / len(own):10.1f}" for own in found.values()), flush=True)


def report(name: str, values: dict[str, dict[str, list[float]]]) -> None:
    below = {figure: values.get("all", {}).pop(figure, []) for figure in ("packed", "says", "right")}
    figures = [figure for figure in next(iter(values.values())) if figure != "tokens"]
    print(f"{name:16}" + "".join(f"{figure:>10}" for figure in [*figures, "tokens"]))
    for system, found in values.items():
        cells = [100 * sum(found[figure]) / len(found[figure]) for figure in [*figures, "tokens"]]
        print(f"  {system:18}" + "".join(f"{cell:10.1f}" for cell in cells[:-1]) + f"{cells[-1]:10.0f}", flush=True)
    for figure, own in below.items():
        if own:
            print(f"  {figure:18}{100 * sum(own) / len(own):10.1f}", flush=True)


if __name__ == "__main__":
    main()
