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
    assert text.endswith("\nBring these to the border: the green insurance card; Both passports of 2019")


def test_reports_of_what_was_done_do_not_contradict_each_other() -> None:
    runs = [Source(str(n), f"Build {n} took {n + 40} s.", DAY + n * 86_400_000, None) for n in range(2)]
    text = ExtractiveDistiller().distil(runs, output_tokens=200, count=lambda text: len(text.split())).text
    assert "earlier" not in text


def test_an_item_keeps_the_heading_of_its_list() -> None:
    """Without it `Don't: use bleach` says the opposite, and a dose belongs to nobody."""
    text = text_of(
        "Thanks!\n\nDo:\n- rinse the tank\nDon't:\n- use bleach. It ruins the seal of pump 2.\n- open valve 4\n\nCall Ines at six."
    )
    assert text.endswith(
        "\nDo: rinse the tank. Don't: use bleach. It ruins the seal of pump 2. Don't: open valve 4. Call Ines at six"
    )
    text = text_of("## Lena\n- 5 mg at noon\n  - with food\n- **Not allowed**\n  - nuts\n\n## Tim\n- 10 mg at noon")
    assert text.endswith("\nLena: 5 mg at noon; with food. Lena: Not allowed: nuts. Tim: 10 mg at noon")


def test_equal_items_of_different_lists_are_not_merged() -> None:
    text = text_of("Before surgery:\n- drink only tea\n\nAfter surgery:\n- drink only tea\n- rest for two days")
    assert text.count("drink only tea") == 2
    assert "Before surgery: drink only tea. After surgery: drink only tea; rest for two days" in text


def test_a_done_task_does_not_read_like_an_open_one() -> None:
    assert text_of("Hi!\n- [x] pay the roofer 300 euros\n- [ ] call the bank at 9").endswith(
        "\n[x] pay the roofer 300 euros; [ ] call the bank at 9"
    )


def test_a_title_stays_with_the_text_below_it() -> None:
    assert "New plan. Ship on Monday" in text_of(
        "# Old plan\nShip on Friday by rail\n# New plan\nShip on Monday by sea"
    )


def test_a_statement_under_a_title_brings_it_along() -> None:
    plan = "# Old plan\nShip the 40 crates on Friday with Nordfracht\n\n# New plan\nShip the 40 crates on Monday with Baltic"
    prepared = ExtractiveDistiller().prepare([Source("a", plan, DAY)])
    for room in range(16, 40):
        text = ExtractiveDistiller().distil(prepared, output_tokens=room, count=lambda text: len(text.split())).text
        assert "Friday" not in text or "Old plan" in text
        assert "Monday" not in text or "New plan" in text
