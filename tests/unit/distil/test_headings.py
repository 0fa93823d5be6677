"""The text of a dream that is distilled again: its headings date the lines below them, and do not pile up."""

from __future__ import annotations

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.source import Source
from reverie.providers.tokenizer import TokenCounter

NOVEMBER = 1_795_000_000_000  # 18 November 2026
count = TokenCounter().count


def again(text: str) -> str:
    return ExtractiveDistiller().distil([Source("a", text, NOVEMBER)], output_tokens=500, count=count).text


def test_a_text_that_is_distilled_again_keeps_its_size_and_its_days() -> None:
    text = again("The ferry leaves at nine from pier 4.\nAna prefers tea to coffee.")
    assert text.startswith("[18 November 2026]\n")
    assert again(text) == again(again(text)) == text
    older = "[8 May 2024]\nThe ferry leaves at nine from pier 4\n[9 May 2024]\nAna prefers tea to coffee"
    assert again(older) == older


def test_a_line_in_brackets_that_is_no_day_is_a_statement() -> None:
    assert "31 February 2026" in again("[31 February 2026]\nThe ferry leaves at nine from pier 4.")
    assert "vendor" in again("[vendor]\nNever touch files below this folder.")
