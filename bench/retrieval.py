"""Does search find what answers a question? Recall of evidence, through the product's own search.

    python bench/retrieval.py                       # the small corpus beside this file
    python bench/retrieval.py --data locomo10.json  # a file in LoCoMo's format that you have

Each conversation becomes one memory; each turn one entry (text and image caption as content, the speaker as its
source, the session's time as `created_at`), written in order. Each question is asked with `search(limit=...)`.
Recall is LoCoMo's own: the share of a question's evidence turns among the first k hits, averaged over questions; a
question without evidence counts 1. Beside it stand baselines computed here from the same terms: BM25 over the turns,
and BM25 plus half the score of the turn before and after.

LoCoMo (Maharana et al., ACL 2024) is licensed CC BY-NC 4.0 and is not part of this project: measure with it if
your use allows, and do not ship it.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import reverie
from reverie.search import query_terms, searchable, terms

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
SMALL = Path(__file__).parent / "data" / "small.json"


@dataclass(frozen=True)
class Turn:
    id: str
    session: int
    speaker: str
    content: str
    created_at: int


@dataclass(frozen=True)
class Question:
    text: str
    evidence: list[str]
    category: str


@dataclass(frozen=True)
class Conversation:
    id: str
    turns: list[Turn]
    questions: list[Question]


def load(path: Path) -> list[Conversation]:
    """Conversations of a file in LoCoMo's format."""
    conversations = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        spoken = sample["conversation"]
        numbers = sorted(int(key.split("_")[1]) for key in spoken if re.fullmatch(r"session_\d+", key))
        turns = [
            Turn(
                id=turn["dia_id"],
                session=number,
                speaker=turn["speaker"],
                content=" ".join(filter(None, [turn["text"], turn.get("blip_caption", "")])),
                created_at=moment(spoken[f"session_{number}_date_time"]),
            )
            for number in numbers
            for turn in spoken[f"session_{number}"]
        ]
        questions = [
            Question(
                asked["question"],
                [one for text in asked.get("evidence", []) for one in re.findall(r"D\d+:\d+", text)],
                CATEGORIES[asked["category"]],
            )
            for asked in sample["qa"]
        ]
        conversations.append(Conversation(sample["sample_id"], turns, questions))
    return conversations


def moment(text: str) -> int:
    """'1:56 pm on 8 May, 2023' in milliseconds, read as UTC."""
    return int(datetime.strptime(text.upper(), "%I:%M %p ON %d %B, %Y").replace(tzinfo=UTC).timestamp() * 1000)


def bm25(turns: Sequence[Turn]) -> Callable[[str], list[float]]:
    """Okapi BM25 (k1 1.2, b 0.75) over the product's own terms."""
    documents = [Counter(terms(searchable(turn.content, speaker=turn.speaker))) for turn in turns]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / max(1, len(lengths))
    frequency = Counter(term for document in documents for term in document)

    def scores(query: str) -> list[float]:
        found = [0.0] * len(documents)
        for term in query_terms(query):
            holding = frequency[term]
            weight = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            for at, document in enumerate(documents):
                if count := document.get(term):
                    found[at] += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[at] / mean))
        return found

    return scores


def with_neighbours(turns: Sequence[Turn], scores: Sequence[float]) -> list[float]:
    """Each turn's score plus half of those just before and after it in its session."""
    found = list(scores)
    for at in range(1, len(turns)):
        if turns[at].session == turns[at - 1].session:
            found[at] += scores[at - 1] / 2
            found[at - 1] += scores[at] / 2
    return found


def best(turns: Sequence[Turn], scores: Sequence[float], k: int) -> list[str]:
    order = sorted(range(len(turns)), key=lambda at: (-scores[at], at))
    return [turns[at].id for at in order[:k]]


def recall(evidence: Sequence[str], hits: Sequence[str]) -> float:
    return sum(one in hits for one in evidence) / len(evidence) if evidence else 1.0


def entry(turn: Turn) -> dict[str, object]:
    """A turn as it is stored."""
    return {
        "id": turn.id,
        "content": turn.content,
        "source": {"actor": turn.speaker},
        "created_at": turn.created_at,
    }


def main() -> None:
    """Print a table: one line per system, recall in per cent overall and per category."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SMALL, help="a file in LoCoMo's format")
    parser.add_argument("--limit", type=int, default=10, help="hits per question (k)")
    options = parser.parse_args()
    conversations = load(options.data)
    results: dict[str, list[tuple[str, float]]] = {}
    by_conversation: dict[str, list[float]] = {}
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        memory = reverie.open(folder)
        for number, conversation in enumerate(conversations):
            turns = conversation.turns
            notes = memory.ref(f"bench/{number}")
            notes.put_many([entry(turn) for turn in turns])
            lexical = bm25(turns)
            for question in conversation.questions:
                started = time.perf_counter()
                found = [hit.entry.id for hit in notes.search(question.text, limit=options.limit).hits]
                seconds.append(time.perf_counter() - started)
                scores = lexical(question.text)
                answers = {
                    "reverie": found,
                    "BM25": best(turns, scores, options.limit),
                    "BM25 + neighbours": best(turns, with_neighbours(turns, scores), options.limit),
                }
                for system, hits in answers.items():
                    value = recall(question.evidence, hits)
                    results.setdefault(system, []).append((question.category, value))
                    if system == "reverie":
                        by_conversation.setdefault(conversation.id, []).append(value)
        memory.close()
    report(results, by_conversation, seconds, options.limit)


def report(
    results: dict[str, list[tuple[str, float]]],
    by_conversation: dict[str, list[float]],
    seconds: list[float],
    k: int,
) -> None:
    columns = [name for name in CATEGORIES.values() if any(name == one for one, _ in results["reverie"])]
    print(f"{'recall@' + str(k):20}{'overall':>9}" + "".join(f"{name:>13}" for name in columns))
    for system in ("BM25", "BM25 + neighbours", "reverie"):
        values = results[system]
        cells = [mean([value for name, value in values if name == column]) for column in columns]
        print(f"{system:20}{mean([value for _, value in values]):9.1f}" + "".join(f"{cell:13.1f}" for cell in cells))
    for name, values in by_conversation.items():
        print(f"  {name:18}{mean(values):9.1f}  ({len(values)} questions)")
    ordered = sorted(seconds)
    middle, high = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    print(f"search: p50 {middle * 1000:.1f} ms, p95 {high * 1000:.1f} ms, {len(ordered)} questions")


def mean(values: Sequence[float]) -> float:
    return 100 * sum(values) / max(1, len(values))


if __name__ == "__main__":
    main()
