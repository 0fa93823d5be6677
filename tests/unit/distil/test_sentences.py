from __future__ import annotations

import time

import pytest

from reverie.distil.sentences import LONGEST, Form, split


def test_prose_lists_code_titles_and_asides_are_told_apart() -> None:
    pieces = split(
        "# Plan\nShip it. Dr. Fox agrees.\nStill the same paragraph.\n\n- one\n2. two\n- [x] three\n"
        "```py\nx = 1\n\ny = 2\n```\nDone [shows: a red bicycle]"
    )
    assert [(p.text, p.form) for p in pieces] == [
        ("Plan", Form.TITLE),
        ("Ship it.", Form.PROSE),
        ("Dr. Fox agrees.", Form.PROSE),
        ("Still the same paragraph.", Form.PROSE),
        ("one", Form.ITEM),
        ("two", Form.ITEM),
        ("[x] three", Form.ITEM),
        ("x = 1", Form.CODE),
        ("y = 2", Form.CODE),
        ("Done", Form.PROSE),
        ("shows: a red bicycle", Form.ASIDE),
    ]


def test_short_words_end_sentences_too() -> None:
    assert [p.text for p in split("It matters to me. I ran a race.")] == ["It matters to me.", "I ran a race."]


def test_other_scripts_are_split() -> None:
    assert len(split("これは文です。次の文です。")) == 2
    assert len(split("Я живу в Москве. Он нет.")) == 2


def test_a_run_on_is_cut_between_words_only() -> None:
    text = " ".join(f"word{i}" for i in range(1000))
    pieces = split(text)
    assert " ".join(p.text for p in pieces) == text
    assert all(p.text.count(" ") < LONGEST for p in pieces)


def test_a_marker_is_no_aside() -> None:
    assert [p.text for p in split("the key [REDACTED:api_key] is out")] == ["the key [REDACTED:api_key] is out"]


def test_blank_text_has_no_pieces() -> None:
    assert split(" \n\t\n ") == []


@pytest.mark.parametrize(
    "text",
    [
        "Der Schornsteinfeger kommt am 3. Dezember.",
        "Wir wohnen im 3. Stock links.",
        "Vi ses den 4. juni.",
        "Konferencja jest 12. marca w Krakowie.",
    ],
)
def test_an_ordinal_ends_no_sentence(text: str) -> None:
    assert [piece.text for piece in split(text)] == [text]


def test_a_number_may_end_an_english_sentence() -> None:
    assert len(split("The gate is number 5. Then we left.")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "The quote is 11,400 euro incl. fitting and lasts until April",
        "Use no MERGE ... RETURNING before version 17",
        "See fig. 3 for approx. values of the pump",
    ],
)
def test_an_abbreviation_or_an_ellipsis_ends_no_sentence(text: str) -> None:
    assert [piece.text for piece in split(text)] == [text]


def test_a_list_in_one_line_keeps_its_numbers() -> None:
    found = [piece.text for piece in split("Three ideas: 1. Lisbon by tram. 2. Porto by train. 3. Coimbra on foot.")]
    assert found == ["Three ideas:", "1. Lisbon by tram.", "2. Porto by train.", "3. Coimbra on foot."]
    assert [piece.text for piece in split("I like it. it is good.")] == ["I like it.", "it is good."]


def test_a_date_after_a_weekday_is_not_cut() -> None:
    for text in (
        "Der Elternabend ist am Dienstag, 3. Februar, um 19:30 in der Kita.",
        "Oma wohnt jetzt in der Lindenstraße 4, 2. Stock.",
        "Schůzka je v úterý, 7. října v 9:00.",
    ):
        assert [piece.text for piece in split(text)] == [text]


def test_a_sentence_of_opening_brackets_is_read_once() -> None:
    """Behind each bracket the rest was searched for a semicolon: an entry of 64 KB took over a second."""

    def cost(size: int) -> float:
        text = "; " + "a " * 30 + "(" * size
        began = time.thread_time()
        split(text)
        return time.thread_time() - began

    small = max(cost(8_000), 0.002)
    assert cost(64_000) < 30 * small


def test_a_short_heading_belongs_to_the_items_of_its_list() -> None:
    pieces = split("Never:\n- reboot it\n  - by day\n\nHere are some ideas:\n- rent a boat\n\n**Open**\n* the roof")
    assert [p.whole for p in pieces if p.form is Form.ITEM] == [
        "Never: reboot it",
        "Never: by day",
        "rent a boat",
        "Open: the roof",
    ]
    shopping = split("Einkaufen: Milch, Brot\nNicht vergessen:\n- Tabletten")
    assert [p.whole for p in shopping] == ["Einkaufen: Milch, Brot", "Nicht vergessen:", "Nicht vergessen: Tabletten"]
