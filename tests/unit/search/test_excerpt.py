"""The excerpt of a long passage begins with the sentence that answers."""

from __future__ import annotations

from time import process_time

from reverie.search.passages import excerpt, passages

NOTE = "\n".join(
    [
        "The kitchen",
        "- The fitter measures the room on Monday.",
        "- The old oven is picked up by the council.",
        "- Delivery of the worktop moved to June.",
        "- Never let the dog in while the sealant dries.",
    ]
)


def test_it_begins_with_the_sentence_that_has_most_words_of_the_question() -> None:
    found = excerpt(NOTE, "who picks up the oven?", width=60)
    assert found.startswith("… The old oven is picked up")
    assert found.endswith("sealant dries.")


def test_words_of_similar_meaning_count() -> None:
    assert excerpt(NOTE, "when is the worktop delivered", width=60).startswith("… Delivery of the worktop")


def test_a_sentence_near_the_end_keeps_what_fits_before_it() -> None:
    found = excerpt(NOTE, "where is the dog?", width=95)
    assert found.startswith("… Delivery of the worktop")
    assert found.endswith("sealant dries.")


def test_a_long_first_sentence_that_answers_is_not_cut_away() -> None:
    note = "The pump in the cellar was replaced by the plumber from Ghent last spring. It was loud. It is not."
    assert excerpt(note, "who replaced the pump?", width=40) == note


def test_a_long_text_without_spaces_is_cut_at_once() -> None:
    began = process_time()
    parts = passages("a" * 2_000_000)
    assert process_time() - began < 5  # 25 s when each cut looked for a space to the end of the text
    assert (parts[0].start, parts[-1].end) == (0, 2_000_000)


def test_a_text_that_shows_the_answer_stays_as_it_is() -> None:
    assert excerpt(NOTE, "who measures the room?", width=60) == NOTE
    assert excerpt(NOTE, "something else", width=60) == NOTE
    assert excerpt(NOTE, "the dog", width=500) == NOTE
    assert excerpt("", "the dog", width=0) == ""
