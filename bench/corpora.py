"""Corpora of questions whose answers are known: those in bench/data, and files you have.

Texts in bench/data/recall are made up for this project. A line is one of:

    @2024-03-02T09:00            when the notes that follow were made, a minute apart
    key: text                    a note
    key speaker: text            a turn of a conversation
    ?key question                a question that the note answers; `?kind:key` says what kind (typo, syn, date, order)
    ~new>old question            a question that the note `new` answers, and `old` did before
    !question                    a question that nothing answers, about things the notes do not mention
    !!question                   the same, a near miss: it names someone or something in the notes
    # ...                        a comment

Half of the questions are held out, chosen by their hash: weights and thresholds are made with the other half.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

DATA = Path(__file__).parent / "data"
LATER = (
    *("household", "project", "support", "profile", "site", "family", "abroad", "runner", "surgery", "crossing"),
    *("terrace", "oncall"),
)
"""Written when the signals had been chosen: what search does there is what it does on notes that it does not know."""
OURS = ("personal", "work", "habits", "diary", "kitchen", "languages", "tongues", "long", "asides", *LATER)
JUDGES = (
    *("studio", "lab", "polyglot", "chat", "allotment", "cycles", "firm", "repository", "darkroom", "boatyard"),
    *("advisory", "werkstatt"),
)
"""Nothing is fitted on these."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Note:
    """An entry to store."""

    id: str
    text: str
    at: int
    speaker: str | None = None
    session: str | None = None


@dataclass(frozen=True)
class Ask:
    """A question. Right is a hit whose id is in `gold`, or whose text holds one of `answers`, or the `telling` words."""

    text: str
    kind: str
    gold: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Notes that answered it before those of `gold` did."""
    answers: tuple[str, ...] = ()
    telling: frozenset[str] = frozenset()
    held_out: bool = False


@dataclass(frozen=True)
class Memory:
    """One memory and its questions."""

    name: str
    notes: list[Note]
    asks: list[Ask] = field(default_factory=list)


def ours(name: str) -> Memory:
    """A corpus of bench/data/recall."""
    notes: list[Note] = []
    asks: list[Ask] = []
    at = 0
    for line in (DATA / "recall" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        mark, rest = line[:1], line[1:]
        if mark in ("", "#"):
            continue
        if mark == "@":
            at = int(datetime.fromisoformat(rest).replace(tzinfo=UTC).timestamp() * 1000)
        elif mark == "!":
            text = rest.removeprefix("!")
            asks.append(Ask(text, "none" if text == rest else "near", held_out=_held_out(text)))
        elif mark in "?~":
            head, text = rest.split(" ", 1)
            kind, _, keys = head.rpartition(":")
            gold, _, before = keys.partition(">")
            kind = "update" if mark == "~" else kind or "fact"
            named = (tuple(gold.split(",")), tuple(filter(None, before.split(","))))
            asks.append(Ask(text, kind, *named, held_out=_held_out(text)))
        else:
            key, speaker, text = re.fullmatch(r"(\w+)(?: (\w+))?: (.*)", line).groups()  # type: ignore[union-attr]
            notes.append(Note(key, text, at, speaker))
            at += 60_000
    notes.sort(key=lambda note: note.at)
    return Memory(name, notes, asks)


def talks() -> Memory:
    """One person and an assistant over half a year: bench/data/recall/talks.txt.

    An answer is its own text between sentences of its topic, chosen by the hash of its key: 200 to 400 words. After each
    day come questions about what the pool says, so that a memory has many answers about the same things.
    """
    lines = (DATA / "recall" / "talks.txt").read_text(encoding="utf-8").splitlines()
    pools: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("+"):
            topic, _, sentence = line[1:].partition(": ")
            pools.setdefault(topic, []).append(sentence)
    notes: list[Note] = []
    asks: list[Ask] = []
    at, day, topic = 0, "", ""
    for line in [*lines, "@2025-07-01T00:00"]:
        mark, rest = line[:1], line[1:]
        if mark == "@":
            notes += _small_talk(day, topic, pools, at) if day else []
            day, at = rest, int(datetime.fromisoformat(rest).replace(tzinfo=UTC).timestamp() * 1000)
        elif mark == "!":
            asks.append(Ask(rest, "none", held_out=_held_out(rest)))
        elif mark == "?":
            head, text = rest.split(" ", 1)
            asks.append(Ask(text, "evidence", tuple(head.removeprefix("ev:").split(",")), held_out=_held_out(text)))
        elif mark not in ("", "#", "+"):
            key, speaker, pool, text = re.fullmatch(r"(\w+) (\w+)(?: \+(\w+))?: (.*)", line).groups()  # type: ignore[union-attr]
            if pool:
                topic, around = pool, _chosen(key, pools[pool], 11)
                text = " ".join([*around[:3], text, *around[3:]])
            notes.append(Note(key, text, at, speaker, day))
            at += 60_000
    return Memory("talks", notes, asks)


def _small_talk(day: str, topic: str, pools: dict[str, list[str]], at: int) -> list[Note]:
    """Questions about what a pool says and answers from it."""
    notes = []
    for number in range(4):
        about, *others = _chosen(f"{day}{number}", pools[topic], 10)
        asked = f"You once said: {about} Can you explain that again, and what else should I keep in mind?"
        for speaker, text in (("user", asked), ("assistant", " ".join(others))):
            notes.append(Note(f"{day[:10]}x{number}{speaker[0]}", text, at, speaker, day))
            at += 60_000
    return notes


SIZES = (1, 2, 3, 5, 10, 20)
"""Notes in a small memory."""


def samples(memory: Memory, size: int) -> Iterator[Memory]:
    """Small memories: the notes of a corpus dealt out by hash, `size` to each.

    A question is asked of the memory that has the note it is about. As many others have no answer there: they are about
    notes that are elsewhere, or about nothing in the corpus, and are chosen by hash. Memories without questions are left
    out.
    """
    notes = sorted(memory.notes, key=lambda note: _hash(f"{size} {note.id}"))
    about = [ask for ask in memory.asks if ask.gold and ask.kind not in ("update", "order", "evidence")]
    for at in range(0, len(notes) - size + 1, size):
        held = sorted(notes[at : at + size], key=lambda note: note.at)
        ids = {note.id for note in held}
        inside = [ask for ask in about if ids.issuperset(ask.gold)]
        outside = [ask for ask in memory.asks if ids.isdisjoint(ask.gold) and ids.isdisjoint(ask.before)]
        outside.sort(key=lambda ask: _hash(f"{size} {at} {ask.text}"))
        without = [replace(ask, kind="none", gold=()) for ask in outside[: len(inside)]]
        if inside:
            yield Memory(f"{memory.name} {size}", held, [*inside, *without])


def _chosen(key: str, pool: list[str], count: int) -> list[str]:
    return sorted(pool, key=lambda sentence: _hash(f"{key} {sentence}"))[:count]


def _held_out(question: str) -> bool:
    return _hash(question)[0] % 2 == 1


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def distilled() -> Iterator[Memory]:
    """The five conversations of bench/data/distil."""
    for path in sorted((DATA / "distil").glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        notes = [
            Note(row["id"], row["content"], _moment(row["at"]), row.get("speaker")) for row in rows if "ask" not in row
        ]
        asks = [Ask(row["ask"], "answer", answers=(row["answer"],)) for row in rows if "ask" in row]
        yield Memory(path.stem, notes, asks)


def _moment(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def locomo(path: Path) -> Iterator[Memory]:
    """Conversations of a file in LoCoMo's format: each turn a note, with the caption of its picture."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        spoken = sample["conversation"]
        numbers = sorted(int(key.split("_")[1]) for key in spoken if re.fullmatch(r"session_\d+", key))
        notes = [
            Note(
                turn["dia_id"],
                " ".join(filter(None, [turn["text"], turn.get("blip_caption", "")])),
                _spoken_at(spoken[f"session_{number}_date_time"]),
                turn["speaker"],
            )
            for number in numbers
            for turn in spoken[f"session_{number}"]
        ]
        asks = [
            Ask(
                asked["question"],
                "evidence",
                tuple(one for text in asked.get("evidence", []) for one in re.findall(r"D\d+:\d+", text)),
            )
            for asked in sample["qa"]
        ]
        yield Memory(sample["sample_id"], notes, asks)


def _spoken_at(text: str) -> int:
    return int(datetime.strptime(text.upper(), "%I:%M %p ON %d %B, %Y").replace(tzinfo=UTC).timestamp() * 1000)


def conflicts(path: Path) -> Memory:
    """Facts that later facts overtake: {facts: [{number, text}], questions: [{question, answers}]}."""
    held = json.loads(path.read_text(encoding="utf-8"))
    first = 1_700_000_000_000
    notes = [Note(str(fact["number"]), fact["text"], first + 60_000 * n) for n, fact in enumerate(held["facts"])]
    return Memory(
        "conflicts", notes, [Ask(q["question"], "current", answers=tuple(q["answers"])) for q in held["questions"]]
    )


def chats(path: Path, *, roles: tuple[str, ...] = ("user",)) -> Iterator[Memory]:
    """Users and what they said over time: {users: [{user, documents, questions}]}.

    The telling words of a question are those of the right option that no other option and not the question has.
    """
    for user in json.loads(path.read_text(encoding="utf-8"))["users"]:
        notes: list[Note] = []
        at = 1_600_000_000_000
        for document in user["documents"]:
            at += 7 * 86_400_000
            for message in document["messages"]:
                if message["role"] in roles:
                    at += 60_000
                    notes.append(Note(str(len(notes)), message["text"], at, message["role"], document["id"]))
        asks = []
        for asked in user["questions"]:
            said = {word for note in notes if note.session in asked["documents"] for word in _words(note.text)}
            right = _words(asked["options"][asked["answer"]])
            wrong = {w for key, option in asked["options"].items() if key != asked["answer"] for w in _words(option)}
            telling = (right & said) - wrong - _words(asked["question"])
            if len(telling) >= 3:
                asks.append(Ask(asked["question"], "telling", telling=frozenset(telling)))
        yield Memory(user["user"], notes, asks)


def told(asked: Ask, text: str) -> float:
    """The share of a question's telling words that a text has."""
    return len(asked.telling & _words(text)) / len(asked.telling)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def hidden(memory: Memory, chatter: list[Memory]) -> Memory:
    """A conversation among others: its questions have to be answered from many times as much text."""
    notes = list(memory.notes)
    for other in chatter:
        notes += [Note(f"{other.name}/{n.id}", n.text, n.at, n.speaker, n.session) for n in other.notes]
    notes.sort(key=lambda note: note.at)
    return Memory(f"{memory.name} hidden", notes, [ask for ask in memory.asks if ask.gold])


def stored(note: Note) -> dict[str, object]:
    """A note as it is stored."""
    source = {"actor": note.speaker, "session": note.session}
    said = {name: value for name, value in source.items() if value}
    return {"id": note.id, "content": note.text, "created_at": note.at, **({"source": said} if said else {})}
