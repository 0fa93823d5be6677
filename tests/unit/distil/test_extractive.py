from __future__ import annotations

import re

import pytest
from bench.distil import DATA, load

from reverie.distil.extractive import ExtractiveDistiller, OutputTooSmallError
from reverie.distil.source import Source

DAY = 86_400_000
START = 1_683_504_000_000  # 8 May 2023
DISTILLER = ExtractiveDistiller()


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def make(*contents: str, speaker: str | None = None, kind: str = "note", pinned: bool = False) -> list[Source]:
    return [
        Source(id=f"e{i}", content=c, created_at=START + i * DAY, speaker=speaker, kind=kind, pinned=pinned)
        for i, c in enumerate(contents)
    ]


def text_of(sources: list[Source], tokens: int = 1000) -> str:
    return DISTILLER.distil(sources, output_tokens=tokens, count=count).text


def test_days_speakers_and_anchored_dates_make_it_readable() -> None:
    said = make("Hey! I joined a pottery class yesterday.", "It was great! I made a blue bowl.", speaker="Ana")
    assert text_of(said) == (
        "[8 May 2023]\nAna: I joined a pottery class on 7 May\n[9 May 2023]\nAna: I made a blue bowl"
    )


def test_nothing_makes_nothing() -> None:
    for sources in ([], make("", "  "), make("haha!", "wow", speaker="Ana")):
        made = DISTILLER.distil(sources, output_tokens=0, count=count)
        assert (made.text, made.tokens, made.statements) == ("", 0, ())
        assert DISTILLER.minimum(sources, count=count) == 0


def test_duplicates_keep_the_newest_wording_and_a_count() -> None:
    sources = make("The disk of web-1 is full.", "the disk of web-1 is full", "The disk of web-1 is really full!")
    made = DISTILLER.distil(sources, output_tokens=100, count=count)
    assert made.text == "[10 May 2023]\nThe disk of web-1 is really full! (×3)"
    assert [(c.kept, c.merged, c.count) for c in made.collapsed] == [("e2", ("e1", "e0"), 3)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The retry limit of the queue worker is 5", "The retry limit of the queue worker is 6"),
        ("The deploy is done on the main cluster", "The deploy is not done on the main cluster"),
        ("Ana reviews the patch for the parser", "the patch for the parser Ana reviews"),
        ("The temperature in the lab is -5", "The temperature in the lab is 5"),
        ("We will meet the client in Oslo next spring", "We will meet the client in Rome next spring"),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_negation_is_no_duplicate(one: str, other: str) -> None:
    assert DISTILLER.prepare(make(one, other)).collapsed == ()


def test_the_same_words_on_another_day_are_another_fact() -> None:
    assert DISTILLER.prepare(make("Ran 5 km yesterday.", "Ran 5 km yesterday.")).collapsed == ()
    assert DISTILLER.prepare(make("Ran 5 km today.", "Ran 5 km today.")).collapsed == ()


def test_contradictions_stand_side_by_side_newest_first() -> None:
    sources = make("The free plan allows 3 boats.", "Lunch was soup.", "The free plan allows 5 boats.")
    assert "The free plan allows 5 boats (earlier, 8 May 2023: The free plan allows 3 boats)" in text_of(sources)


def test_the_claims_of_two_speakers_stand_side_by_side() -> None:
    ana, ben = (
        Source("a", "The retry limit is 5.", START, "Ana"),
        Source("b", "The retry limit is 8.", START + 5, "Ben"),
    )
    assert "The retry limit is 8 (earlier, Ana: The retry limit is 5)" in text_of([ana, ben])


def test_the_speaker_corrects_himself() -> None:
    sources = make("The retry limit is 5.", "Lunch was soup.", "The retry limit is 8.")
    assert "The retry limit is 8" in text_of(sources)
    assert "The retry limit is 5" not in text_of(sources)


def test_declared_items_are_kept_at_the_minimum() -> None:
    sources = [
        *make("We talked about many things, mostly the weather and the long trip to Oslo.", speaker="Ana"),
        Source("c", "Never deploy on Fridays, please!", START, kind="constraint"),
        Source("p", "Hello!", START, pinned=True),
        Source("t", "The parser is slow. TODO: profile parse_all() before v2.", START + 5),
    ]
    least = DISTILLER.minimum(sources, count=count, declared=True)
    text = text_of(sources, least)
    assert "Never deploy on Fridays" in text
    assert "Hello" in text
    assert "TODO: profile parse_all() before v2" in text
    assert "weather" not in text
    with pytest.raises(OutputTooSmallError) as refused:
        text_of(sources, least - 1)
    assert refused.value.minimum == least


def test_one_enormous_entry_and_many_tiny_ones() -> None:
    big = make(" ".join(f"Step {i} sets option_{i} to {i * 7}." for i in range(5000)))
    made = DISTILLER.distil(big, output_tokens=300, count=count)
    assert 250 < made.tokens <= 300
    tiny = make(*(f"ok {i}" for i in range(3000)))
    assert DISTILLER.distil(tiny, output_tokens=200, count=count).tokens <= 200


def test_the_fingerprint_names_the_algorithm_and_its_parts() -> None:
    assert re.fullmatch(r"extractive/\d+ value/\w+ sentencex/\S+", DISTILLER.fingerprint)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["(", '"', "`", "a. ", "a, ", "[A", "[abc def: ", "http://", "last ", "- ", "x"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    prepared = DISTILLER.prepare(make(unit * 40_000 + " word"))
    assert DISTILLER.minimum(prepared, count=count) >= 0


def test_nothing_is_shortened_while_there_is_room() -> None:
    said = make("Honestly, I really can't come on Friday, I have a dentist appointment.", speaker="Dora")
    assert text_of(said).endswith("Dora: Honestly, I really can't come on Friday, I have a dentist appointment")
    tight = DISTILLER.minimum(said, count=count)
    assert len(text_of(said, tight)) < len(text_of(said))


def test_courtesies_leave_however_many_words_they_have() -> None:
    said = make("Alles klar, danke dir!", "Merci beaucoup, bonne soirée à tous !", "Die Garage ist bis Mai vermietet.")
    assert text_of(said) == "[10 May 2023]\nDie Garage ist bis Mai vermietet"


def test_a_reason_stays_with_the_wish_it_explains() -> None:
    asked = "Could you plan that without hostels, since I need a private bathroom for medical reasons?"
    assert asked in text_of(make(asked, "The library opens at nine.", speaker="Ana"))
    stated = "I never fly because planes make me ill, can you find a route?"
    assert "can you" not in text_of(make(stated, "The library opens at nine.", speaker="Ana"))


def test_headings_do_not_make_a_text_longer_than_its_sources() -> None:
    things = ["ladder", "paint", "rope", "anchor", "lamp", "saw", "tent", "stove", "kayak", "drill", "map", "flag"]
    notes = make(*(f"The {thing} hangs behind the door of hall {n}." for n, thing in enumerate(things)))
    text = text_of(notes)
    assert all(note.content.rstrip(".") in text for note in notes)
    assert len(text) <= sum(len(note.content) for note in notes)
    talk = make(*(f"Thanks a lot, you are the best! {note.content}" for note in notes))
    assert text_of(talk).count("2023]") > 0


def test_things_told_apart_by_a_number_are_not_one_that_changed() -> None:
    rules = make(*(f"Never switch off lamp {n} without asking Ines first." for n in range(8)))
    assert "earlier" not in text_of(rules)
    berths = make(*(f"Lena: berth {n} has {n + 2} rings and costs {n + 30} euros." for n in range(8)))
    assert "earlier" not in text_of(berths)
    rooms = make(*(f"The room {n} costs {n + 30} euros." for n in range(8)))
    assert "earlier" not in text_of(rooms)


def test_routine_reports_leave_before_facts() -> None:
    facts = [
        "The bug was in convert(), which divided by the rate of the day before.",
        "The queue grew because one tenant exported five years at once.",
    ]
    routine = [
        "Killed query 88121 on ledger-rep-1.",
        "Version bumped to 5.3.0rc1 on trunk.",
        "Pull request 1042 opened.",
    ]
    text = text_of(make(*routine, *facts), tokens=46)
    assert all(fact.rstrip(".") in text for fact in facts)
    assert "88121" not in text


def test_what_is_left_of_the_room_holds_a_shorter_statement() -> None:
    corpus = load(DATA / "agent_run.jsonl")
    budget = corpus.tokens * 30 // 100
    made = DISTILLER.distil(corpus.sources, output_tokens=budget, count=count, whole=False)
    assert budget * 97 // 100 < made.tokens <= budget


def test_general_advice_leaves_before_what_happened() -> None:
    advice = (
        "Here are some thoughts for your garden. Raised beds of larch boards last twelve summers and spare the back."
        " Cover the compost with cardboard before the frost. Sow phacelia between the rows in August. Water the"
        " hydrangea at dawn rather than at noon. Sharpen the hoe with a flat file twice a season. You will see that a"
        " little work every week is better than a long Saturday, and that the soil rewards patience."
    )
    given = [
        Source("a", advice, START, "assistant"),
        Source("b", "We saw the heron near the old mill on the way home.", START + DAY, "user"),
    ]
    text = DISTILLER.distil(given, output_tokens=45, count=count).text
    assert "heron" in text
