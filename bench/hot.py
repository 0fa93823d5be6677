"""What stays hot: one memory of labelled talk, notes and conversations, before and after a dream, and other methods.

Lines of bench/data/talk.txt are labelled by hand. The value model was not fitted on them, but
labels of the same kind were added after one of them was missed, so they are no longer unseen. They are mixed with the
corpora of bench/data/distil (questions) and of bench/data/recall (questions and the note that answers each), so that the
memory is large enough for statements to leave. Figures, in per cent:

- must keep: of the lines labelled so, in hot memory; *rules*: of those that are instructions or preferences;
- facts: of the questions that the whole memory answers, answered by hot memory;
- in three: of the questions, those with the right note, or a line that says the same, in the first three hits of a search;
- context: the same for `context(question, budget=2000)`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import reverie
from bench.corpora import DATA, Ask, ours
from bench.survival import Question, share, survived, words
from reverie.core.dream import GateFailed
from reverie.core.entry import speaker
from reverie.distil.gates import verify
from reverie.distil.must_keep import MustKeep, find
from reverie.distil.sentences import split
from reverie.distil.source import Source

TARGETS = ("50%", "40%")
RECALL = ("personal", "work", "long")
_ENOUGH = 75
"""Per cent of a note's words that a text has when it says what the note says."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


def count(text: str) -> int:
    return len(_TOKEN.findall(text))


@dataclass(frozen=True)
class Talk:
    name: str
    sources: Sequence[Source]
    marks: Mapping[str, str]
    questions: Sequence[Question]


def talks(path: Path = DATA / "talk.txt") -> list[Talk]:
    """The labelled conversations; of `everyday.txt` the labelled memories."""
    out = []
    for block in re.split(r"^@", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, *lines = [line for line in block.splitlines() if line]
        name, *form, day = head.split()
        at = datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC)
        sources, marks, questions = [], {}, []
        for number, line in enumerate(lines):
            mark, rest = line[0], line[2:]
            if mark == "=":
                at = datetime.fromisoformat(rest).replace(hour=9, tzinfo=UTC)
                continue
            if mark == "?":
                ask, answer = rest.split("|")
                questions.append(Question(ask, (answer,)))
                continue
            said_by, _, text = rest.partition(": ") if form != ["notes"] else ("", "", rest)
            key = f"{name}-{number:03d}"
            moment = int((at + timedelta(minutes=number)).timestamp() * 1000)
            sources.append(Source(key, text, moment, said_by or None, session=name))
            marks[key] = mark
        out.append(Talk(name, sources, marks, questions))
    return out


@dataclass(frozen=True)
class Everyday:
    """Lines of one memory after a dream: kept or not, answered or not, gone or not."""

    memory: str
    must_keep: list[bool]
    facts: list[bool]
    chatter_gone: list[bool]


def everyday() -> list[Everyday]:
    """Of each memory in `everyday.txt`, after a dream by default: lines that must be kept, facts, chatter that is gone."""
    rows = []
    for talk in talks(DATA / "everyday.txt"):
        with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
            notes = memory.ref("notes")
            put(notes, talk.sources)
            notes.dream()
            text = "\n".join(shown(entry) for entry in reversed(list(notes.entries())))
        must = [MustKeep(s.id, s.content, "rule") for s in talk.sources if talk.marks[s.id] in "+*"]
        idle = [s for s in talk.sources if talk.marks[s.id] == "-"]
        whole = survived("\n".join(_line(source) for source in talk.sources), talk.questions)
        answered = [hit for hit, known in zip(survived(text, talk.questions), whole, strict=True) if known]
        gone = [not re.search(rf"(?<!\w){re.escape(one.content.rstrip(' .!'))}(?!\w)", text) for one in idle]
        kept = [state != "missing" for state in _states(talk.sources, must, text)]
        rows.append(Everyday(talk.name, kept, answered, gone))
    return rows


def _states(sources: Sequence[Source], items: Sequence[MustKeep], text: str) -> list[str]:
    report = verify(sources, text, must_keep=items, budget=10**9, input_tokens=10**9, count=count)
    return [kept.state for kept in report.must_keep]


def must_keep_share(sources: Sequence[Source]) -> float:
    """Per cent of the tokens that are judged must-keep."""
    total = sum(count(piece.text) for source in sources for piece in split(source.content))
    return 100 * sum(count(item.text) for item in find(sources)) / total


@dataclass(frozen=True)
class Mixed:
    """One memory: what is written, which lines must be kept, what is asked."""

    sources: Sequence[Source]
    must: Sequence[MustKeep]
    rules: Sequence[MustKeep]
    questions: Sequence[Question]
    asks: Sequence[tuple[Ask, str]]
    """Questions with the words of the note that answers each."""


def mixed(corpora: Sequence[tuple[Sequence[Source], Sequence[Question]]], *, asks: int = 60) -> Mixed:
    """The labelled talk, the given corpora and the notes of the recall corpora, in order of time."""
    spoken = talks()
    sources = [source for talk in spoken for source in talk.sources]
    questions = [question for talk in spoken for question in talk.questions]
    marked = [(s, talk.marks[s.id]) for talk in spoken for s in talk.sources]
    for number, (given, asked) in enumerate(corpora):
        sources += [Source(f"{number}-{s.id}", s.content, s.created_at, s.speaker, s.kind) for s in given]
        questions += asked
    answered: list[tuple[Ask, str]] = []
    for name in RECALL:
        memory = ours(name)
        texts = {note.id: note.text for note in memory.notes}
        sources += [Source(f"{name}-{n.id}", n.text, n.at, n.speaker) for n in memory.notes]
        answered += [(ask, texts[ask.gold[0]]) for ask in memory.asks if len(ask.gold) == 1]
    return Mixed(
        sources=sorted(sources, key=lambda source: (source.created_at, source.id)),
        must=[MustKeep(s.id, s.content, "rule") for s, mark in marked if mark in "+*"],
        rules=[MustKeep(s.id, s.content, "rule") for s, mark in marked if mark == "+"],
        questions=questions,
        asks=answered[:: max(1, len(answered) // asks)],
    )


def _says(text: str, note: str) -> bool:
    needed = words(note)
    return any(100 * len(needed & words(part)) >= _ENOUGH * len(needed) for part in text.split("\n") if part)


def held(sources: Sequence[Source], items: Sequence[MustKeep], text: str) -> float:
    return share([state != "missing" for state in _states(sources, items, text)])


def facts(given: Mixed, text: str) -> float:
    whole = survived("\n".join(_line(source) for source in given.sources), given.questions)
    return share([hit for hit, known in zip(survived(text, given.questions), whole, strict=True) if known])


def _line(source: Source) -> str:
    return f"{source.speaker}: {source.content}" if source.speaker else source.content


def _found(notes: reverie.Ref, given: Mixed) -> tuple[float, float]:
    three = [
        _says("\n".join(hit.text for hit in notes.search(ask.text, limit=3).hits), note) for ask, note in given.asks
    ]
    packed = [_says(notes.context(ask.text, budget=2000).text, note) for ask, note in given.asks]
    return share(three), share(packed)


def dreamt(given: Mixed, target: str) -> tuple[str, dict[str, float | int | str]]:
    """Hot memory after dreams as the nightly schedule makes them, and the figures of it."""
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        memory.set_policy(hot_target=target)
        notes = memory.ref("memory")
        put(notes, given.sources)
        before = _found(notes, given)
        night(notes)
        after = _found(notes, given)
        text = "\n".join(shown(entry) for entry in reversed(list(notes.entries())))
    return text, {
        "three_before": before[0],
        "three_after": after[0],
        "context_before": before[1],
        "context_after": after[1],
    }


def put(notes: reverie.Ref, sources: Sequence[Source]) -> None:
    """Store sources as entries, with their speakers."""
    notes.put_many(
        [
            {"id": s.id, "content": s.content, "created_at": s.created_at, "kind": s.kind}
            | ({"source": {"actor": s.speaker, **({"session": s.session} if s.session else {})}} if s.speaker else {})
            for s in sources
        ]
    )


def shown(entry: reverie.Entry) -> str:
    said_by = None if entry.kind == "dream" else speaker(entry.source)
    return f"{said_by}: {entry.content}" if said_by else entry.content


def night(notes: reverie.Ref) -> None:
    """As many parts as there are, as the nightly schedule does it."""
    while True:
        try:
            report = notes.dream(fit=True)
        except GateFailed:
            return
        if report is None or not report.left_for_later:
            return


def figures(given: Mixed, text: str) -> dict[str, float | int | str]:
    return {
        "must_keep": held(given.sources, given.must, text),
        "rules": held(given.sources, given.rules, text),
        "facts": facts(given, text),
        "hot": 100 * count(text) / sum(count(_line(source)) for source in given.sources),
    }


Rank = Callable[[Sequence[Source]], list[int]]
Cut = Callable[[Sequence[Source], Sequence[int], int], str]


def measure(given: Mixed, ranks: Mapping[str, Rank], cut: Cut) -> list[dict[str, float | int | str]]:
    """Reverie at each target, and the other ways with as many hot tokens."""
    rows = []
    for target in TARGETS:
        text, found = dreamt(given, target)
        rows.append({"system": f"reverie, hot_target {target}", **figures(given, text), **found})
        for name, rank in ranks.items():
            kept = cut(given.sources, rank(given.sources), count(text))
            rows.append({"system": name, **figures(given, kept)})
    return rows


def show(rows: Sequence[Mapping[str, float | int | str]]) -> None:
    """The table, for people."""
    print(
        f"{'one memory, after dreams':<26} must keep  rules  facts    hot  in three before/after  context before/after"
    )
    for row in rows:
        found = (
            f"{row['three_before']:>10.1f} / {row['three_after']:.1f}"
            f"  {row['context_before']:>14.1f} / {row['context_after']:.1f}"
            if "three_before" in row
            else ""
        )
        print(
            f"{row['system']:<26} {row['must_keep']:>9.1f}  {row['rules']:>5.1f}  {row['facts']:>5.1f}"
            f"  {row['hot']:>5.1f}  {found}"
        )
    print()
    print(f"{'a memory, after one dream':<26} must keep     facts  chatter gone")
    for one in everyday():
        counts = "  ".join(f"{sum(hits):>3} of {len(hits):>2}" for hits in (one.must_keep, one.facts, one.chatter_gone))
        print(f"{one.memory:<26} {counts}")
    print()
    for talk in talks():
        print(f"{talk.name}: {must_keep_share(talk.sources):.0f} % of the tokens are judged must-keep")
