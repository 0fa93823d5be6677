"""How the statements of one note become a line."""

from __future__ import annotations

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.source import Source

DAY = 1_770_000_000_000


def text_of(content: str) -> str:
    source = Source("a", content, DAY, None)
    return ExtractiveDistiller().distil([source], output_tokens=200, count=lambda text: len(text.split())).text


def test_sentences_of_one_note_stay_sentences() -> None:
    text = text_of("The landlord prefers WhatsApp over email. His number is 07700 900461.")
    assert text.endswith("\nThe landlord prefers WhatsApp over email. His number is 07700 900461")


def test_a_full_stop_of_japanese_needs_no_other_mark() -> None:
    text = text_of("車は買わないことに決めた。駐車場が月2万円もするから。")
    assert text.endswith("\n車は買わないことに決めた。駐車場が月2万円もするから。")


def test_no_mark_follows_the_colon_of_a_list() -> None:
    text = text_of("Bring these to the border:\n\n- the green insurance card\n- Both passports of 2019")
    assert text.endswith("\nBring these to the border: the green insurance card. Both passports of 2019")


def test_reports_of_what_was_done_do_not_contradict_each_other() -> None:
    runs = [Source(str(n), f"Build {n} took {n + 40} s.", DAY + n * 86_400_000, None) for n in range(2)]
    text = ExtractiveDistiller().distil(runs, output_tokens=200, count=lambda text: len(text.split())).text
    assert "earlier" not in text
