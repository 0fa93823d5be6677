"""A memory of one or a few notes answers as surely as a large one, and nothing where it knows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import reverie
from reverie.library.memory import Memory
from reverie.library.ref import Ref

NOTE = "The customer prefers e-mail."
OTHERS = [
    "The office closes at six on Fridays.",
    "Invoices are sent on the first of the month.",
    "Ada leads the platform team.",
    "The printer on the second floor is out of toner.",
    "Lunch orders go to the bakery next door.",
    "Backups are kept for thirty days.",
    "The car park code is on the notice board.",
    "Benedikt is on holiday until Monday.",
    "The demo laptop has no camera.",
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with reverie.open(tmp_path) as opened:
        yield opened


def filled(memory: Memory, size: int) -> Ref:
    ref = memory.ref(f"notes{size}")
    more = [f"{OTHERS[n % len(OTHERS)][:-1]}, as noted in week {n}." for n in range(len(OTHERS), size - 1)]
    ref.put_many([{"content": text} for text in [NOTE, *OTHERS, *more][:size]])
    return ref


@pytest.mark.parametrize("size", [1, 2, 3, 5, 10, 30])
@pytest.mark.parametrize("question", ["how should I contact the customer?", "does the customer like mail?"])
def test_a_note_is_found_however_few_there_are(memory: Memory, size: int, question: str) -> None:
    ref = filled(memory, size)
    first = ref.search(question).hits[0]
    assert first.entry.content == NOTE
    assert not first.weak
    assert NOTE in ref.context(question, budget=200).text


@pytest.mark.parametrize("size", [1, 2, 3, 5, 10, 30])
@pytest.mark.parametrize("question", ["what is the capital of Bolivia?", "which medicine does Iris take?"])
def test_nothing_is_answered_by_a_note_about_something_else(memory: Memory, size: int, question: str) -> None:
    ref = filled(memory, size)
    assert all(hit.weak for hit in ref.search(question).hits)
    assert ref.context(question, budget=200).text == ""


def test_a_note_is_no_less_sure_alone_than_among_others(memory: Memory) -> None:
    sure = [
        filled(memory, size).search("how should I contact the customer?").hits[0].confidence for size in (1, 2, 3, 5)
    ]
    assert max(sure) - min(sure) < 0.3


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    ("notes", "question", "other"),
    [
        (["私の名前は太郎です", "会議は東京で行われます", "犬が公園で遊ぶ"], "太郎", "天気"),
        (["我喜欢机器学习", "会议在北京举行", "狗在公园里玩"], "机器学习", "天气预报"),
        (["제 이름은 민수입니다", "회의는 서울에서 열립니다", "개가 공원에서 놉니다"], "민수입니다", "날씨"),
    ],
)
def test_a_note_in_a_script_without_vectors_answers_only_with_a_word_in_common(
    memory: Memory, size: int, notes: list[str], question: str, other: str
) -> None:
    ref = memory.ref("notes")
    ref.put_many([{"content": text} for text in notes[:size]])
    found = [hit for hit in ref.search(question).hits if not hit.weak]
    assert [hit.entry.content for hit in found[:1]] == notes[:1]
    assert all(hit.weak for hit in ref.search(other).hits)
