"""Statements that a later one overtakes leave the text of a dream, and say so."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import pytest
from bench.updates import Notes, ours

from reverie.distil.consolidate import reconcile
from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.source import Source
from reverie.distil.updates import Utterance, updates
from reverie.providers.tokenizer import TokenCounter

DAY = 86_400_000
NOTES = ours(Path(__file__).parents[3] / "bench/data/updates.txt")
count = TokenCounter().count


def sources(*texts: str, speaker: str | None = None) -> list[Source]:
    return [Source(f"{n}", text, 1_700_000_000_000 + n * DAY, speaker) for n, text in enumerate(texts)]


def test_an_update_in_other_words_overtakes() -> None:
    given = sources("The piano lesson is on Tuesdays at four.", "The piano lesson moved to Thursdays at five.")
    made = ExtractiveDistiller().distil(given, output_tokens=200, count=count)
    assert "Tuesdays" not in made.text
    assert [fate for fate, _ in made.fates["0"]] == ["outdated"]
    assert made.statements[0].source_ids == ("1", "0")
    assert made.unkept == ()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I went to the dentist on Monday.", "I went to the dentist on Thursday."),
        ("Ticket 4711 was closed on Monday.", "Ticket 4712 was closed on Tuesday."),
        ("Mum lives in Leeds.", "Dad lives in York."),
        (
            "Build with `make dist TARGET=arm64`; plain `make` still builds for x86 only.",
            "The customer asked for a build without Bluetooth; size drops from 412 to 358 KB.",
        ),
        ("The API listens on port 8080.", "The worker listens on port 9090."),
        (
            "The weekly sync has been moved to Wednesdays at ten.",
            "Swimming has moved to Sunday mornings, the pool closes on Wednesdays.",
        ),
        (
            "Dan got the job at the water company, starts on 1 October, four days a week.",
            "Dan's new office is in Warrington; he drives there.",
        ),
    ],
)
def test_another_thing_is_no_update(older: str, newer: str) -> None:
    made = ExtractiveDistiller().distil(sources(older, newer), output_tokens=200, count=count)
    assert "earlier" not in made.text
    assert {fate for own in made.fates.values() for fate, _ in own} == {"kept"}


def test_another_speaker_overtakes_nothing() -> None:
    older, newer = "The deploy day is Wednesday.", "The deploy day is now Tuesday."
    given = [*sources(older, speaker="Ines"), Source("9", newer, 1_800_000_000_000, "Tobi")]
    made = ExtractiveDistiller().distil(given, output_tokens=200, count=count)
    assert "Wednesday" in made.text
    assert "Tuesday" in made.text


@pytest.mark.parametrize("notes", NOTES, ids=[notes.name for notes in NOTES])
def test_nothing_that_stays_is_overtaken(notes: Notes) -> None:
    found = {update.older for update in updates([Utterance(key, text) for key, text in notes.said])}
    assert found <= notes.overtaken
    assert len(found) * 10 >= len(notes.overtaken) * 7


def test_an_overtaken_statement_that_says_more_stays_behind_its_successor() -> None:
    given = sources("The piano lesson is on Tuesdays at four in room 12.", "The piano lesson moved to Thursdays.")
    made = ExtractiveDistiller().distil(given, output_tokens=400, count=count)
    earlier = "(earlier, 14 November 2023: The piano lesson is on Tuesdays at four in room 12)"
    assert f"The piano lesson moved to Thursdays {earlier}" in made.text
    assert [fate for fate, _ in made.fates["0"]] == ["outdated"]
    assert reconcile(given, ExtractiveDistiller()) == []


def test_many_statements_of_one_frame_are_not_compared_each_with_each() -> None:
    """Values of the same words overtake nothing, and each was held against all that came after it."""

    def cost(number: int) -> float:
        ends = product(["to", "of", "in", "on", "at", "by", "for", "with"], repeat=4)
        said = [
            Utterance(f"{n}", f"My plan is {' '.join(end)} red") for n, end in zip(range(number), ends, strict=False)
        ]
        began = time.thread_time()
        assert updates(said) == []
        return time.thread_time() - began

    small = max(cost(250), 0.002)
    assert cost(4_000) < 50 * small


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # A label says nothing about what was written under it before.
        ("TODO: call mum", "TODO: buy milk"),
        ("Rule: no shoes inside", "Rule: knock first"),
        ("Allergy: peanuts", "Allergy: cashews"),
        ("Preference: dark mode", "Preference: short answers"),
        ("Decision: order 7 ships on Monday.", "Decision: order 8 ships on Tuesday."),
        ("Decision: ticket 41 goes to Ana.", "Decision: ticket 42 goes to Ben."),
        ("Note: server 7 has 16 GB.", "Note: server 8 has 32 GB."),
        ("Rule: gate 3 closes at 6 pm.", "Rule: gate 4 closes at 8 pm."),
        ("Shopping list for Friday: eggs, milk", "Shopping list for Friday: bread"),
        # Somebody is many things at once, and prefers many.
        ("My son is allergic to nuts", "My son is allergic to bee stings"),
        ("My sister is pregnant", "My sister is vegetarian"),
        ("Mia is on the blue team", "Mia is on antibiotics"),
        (
            "Club Heron asked for a printable weekly plan.",
            "Club Heron reports that the plan prints on three pages instead of one.",
        ),
        ("Server web-1 has address 10.0.0.1", "Server web-2 has address 10.0.0.2"),
        ("Dose for Ben: 10 mg", "Dose for Mia: 2 mg"),
        ("Heating is set to 19 degrees at night", "Heating is set to 21 degrees during the day"),
        ("Ich bin allergisch gegen Nüsse", "Ich bin allergisch gegen Katzen"),
        ("The old mill is haunted", "The old mill is for rent"),
        ("I prefer window seats", "I prefer short answers"),
        ("I prefer tea in the morning", "I prefer coffee after lunch"),
    ],
)
def test_what_holds_at_the_same_time_is_no_update(older: str, newer: str) -> None:
    given = sources(older, newer)
    assert updates([Utterance(one.id, one.content) for one in given]) == []
    assert reconcile(given, ExtractiveDistiller()) == []
    made = ExtractiveDistiller().distil(given, output_tokens=200, count=count)
    assert {fate for own in made.fates.values() for fate, _ in own} == {"kept"}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Deadline: Monday", "Deadline: Tuesday"),
        ("The deadline is Monday", "The deadline is Friday"),
        ("Order minimum: 7 boxes", "Order minimum: 9 boxes"),
        ("Rule: gate 3 closes at 6 pm.", "Rule: gate 3 closes at 8 pm."),
        ("My favourite colour is teal", "My favourite colour is plum"),
        ("Ben is married to Ada", "Ben is married to Zoe"),
        ("The Blue Heron was founded by Ada Quill", "The Blue Heron was founded by Tom Reed"),
        ("Mara Quill is a citizen of Ruritania", "Mara Quill is a citizen of Norland"),
        ("The choir is affiliated with the school", "The choir is affiliated with the church"),
        ("I prefer window seats", "I prefer aisle seats"),
        ("The spare key is with Mrs. Lindt next door", "The spare key is in the drawer"),
    ],
)
def test_another_value_of_what_has_one_is_an_update(older: str, newer: str) -> None:
    assert updates([Utterance("1", older), Utterance("2", newer)])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Mum takes Metoprolol 50 mg in the morning.", "Mum takes Metoprolol 25 mg in the evening."),
        ("Staff meal at 16:30.", "Staff meal on Sundays at 15:00."),
        ("Sous chef is Marta.", "Sous chef on Mondays is Lee."),
        ("Tim may go home alone.", "Tim may not go home alone on Wednesdays."),
        ("The apprentice starts at 7.", "The apprentice starts at 8 on Fridays."),
        ("Backups run at 02:00.", "Backups run at 04:00 on Sundays."),
        ("The cert expires on 4 May.", "The cert for the API expires on 9 June."),
        ("Shoes: 700 km", "New shoes: 30 km"),
        ("The set opens with Ember.", "The set in Hamburg opens with Tide."),
        ("Per diem is 35 euros.", "Per diem in Norway is 60 euros."),
        ("Cells are at passage 12.", "HeLa cells are at passage 30."),
        ("Flat 3: rent 780 euros", "Rent of flat 4 is 820 euros."),
        ("Dogs are allowed in flat 3.", "Dogs are not allowed in flat 4."),
        ("Mr. Sahin owes 820 euros for March.", "Mr. Sahin owes 410 euros for April."),
        ("src/api/users.py uses the old client.", "src/api/orders.py uses the new client."),
    ],
)
def test_a_value_of_another_time_place_or_thing_is_no_earlier_one(older: str, newer: str) -> None:
    made = ExtractiveDistiller().distil(sources(older, newer), output_tokens=200, count=count)
    assert {fate for own in made.fates.values() for fate, _ in own} == {"kept"}


def test_what_two_speakers_say_of_themselves_is_no_change() -> None:
    ana, ben = "I swim 2 km before my work at the mill.", "I swim 3 km before my work at the mill."
    given = [*sources(ana, speaker="Ana"), Source("9", ben, 1_800_000_000_000, "Ben")]
    assert "earlier" not in ExtractiveDistiller().distil(given, output_tokens=200, count=count).text


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The free plan allows 3 boats.", "The free plan allows 5 boats."),
        ("We met the client in Oslo for the contract.", "We met the client in Rome for the contract."),
        ("The barn roof leaks.", "The barn roof does not leak."),
    ],
)
def test_one_other_number_or_name_or_a_negation_is_shown_beside_the_earlier_one(older: str, newer: str) -> None:
    assert "(earlier" in ExtractiveDistiller().distil(sources(older, newer), output_tokens=200, count=count).text


APART = [
    ("Anna flies to Rome on 3 May.", "Anna flies to Oslo on 9 June."),
    ("The nurse comes on Monday at 9.", "The nurse comes on Thursday at 14."),
    ("Mum is at the day clinic on Tuesdays.", "Mum is at her sister's on Sundays."),
    ("The trip costs 24 euros.", "The trip costs 12 euros for siblings."),
    ("Hourly rate is 78 euros.", "Hourly rate is 95 euros for electric cars."),
    ("Page limit is 10.", "Page limit is 12 with appendix."),
    ("The pool is open from 9 to 20.", "The pool is open from 10 to 18 in October."),
    ("Room 12 is for quiet work.", "Room 12 is locked after 15:00."),
    ("The Golf needs new pads.", "The Passat needs new pads and discs."),
    ("The Golf needs a new clutch.", "The Passat needs a new clutch."),
    ("Bus leaves at 9:00.", "Bus leaves at 7:30 on the travel day."),
    ("Mum is at her sister's on Sundays.", "Mum no longer drives."),
    ("Cleaner comes on Monday, not on Tuesday.", "Cleaner doesn't come in August."),
    ("Ana is trained in first aid.", "Ana is trained in archery."),
    ("Ben is interested in jazz.", "Ben is interested in chess."),
    ("Leo is scared of dogs.", "Leo is scared of spiders."),
    ("I use vim for code.", "I use vim for notes."),
    ("I take the train to work.", "I take the train to Leeds."),
    ("I run with Ben.", "I run with Ana."),
    ("Ana works at the bakery.", "Ana works at the school on Fridays."),
    ("The baker in town delivers on Mondays.", "The baker in town delivers on Thursdays."),
    ("The manager is on leave.", "The manager is in Rome for the fair."),
    ("Mum stopped the aspirin.", "Mum stopped the ramipril."),
    ("Ana has a new dog.", "Ben has a new dog."),
    ("Ana left early on Monday.", "Ben left early on Monday."),
    ("The dishwasher is broken.", "The washing machine is now repaired."),
    ("Dana no longer eats meat.", "Dana no longer drinks milk."),
    ("Dana eats fish.", "Dana no longer eats meat."),
    ("Dana works on Mondays.", "Dana no longer works on Fridays."),
    ("The cafe is closed on Mondays.", "The cafe is now closed on Tuesdays too."),
    ("Rent of flat 3 is 780 euros.", "Rent of flat 4 is now 820 euros."),
    ("The old printer is in room 2.", "The new printer is in room 5."),
    ("Our new intern is Lea.", "Our new cook is Tom."),
    ("The vet moved to Gartenstraße 4.", "The dentist moved to Hauptstraße 12."),
    ("Lena is on antibiotics until Friday.", "Lena is on the school bus until Friday."),
    ("The left door is locked.", "The right door is now unlocked."),
    ("The lamp in the hall is off.", "The lamp in the kitchen is now on."),
    ("The exam in maths is on 3 May.", "The exam in physics was postponed to 9 May."),
    ("Flight LH 441 leaves at 9:40.", "Flight LH 443 was delayed to 14:00."),
    ("Ana takes 5 mg at noon.", "Ana now takes 2 mg at night."),
    ("The kids sleep at grandma's on Fridays.", "The kids now go to bed at nine."),
    ("Ben drives to work.", "Ben no longer drives at night."),
    ("I drink coffee.", "I no longer drink coffee after four."),
    ("I eat meat.", "I no longer eat meat on Fridays."),
    ("The gate is locked at night.", "The gate is no longer locked on Sundays."),
    ("Bea plays tennis.", "Bea gave up tennis lessons."),
    ("The shop closes at six.", "The shop closed for holidays in May."),
    ("The bakery opens at 6.", "The bakery opens at 8 from November."),
    ("We bought milk.", "We bought bread instead."),
    ("Lou lives in Leeds.", "Lou moved the piano to York."),
    ("Ana changed the locks.", "Ana changed the tyres."),
    ("I switched the phone plan to Nord.", "I switched the power plan to Sued."),
    ("The roof was replaced in 2019.", "The windows were replaced in 2021."),
    ("Chef for lunch is Ana.", "Chef for dinner is Ben."),
    ("The captain is Ben.", "The captain of the juniors is Leo."),
    ("Deadline for photos: 3 May", "Deadline for texts: 9 May"),
    ("Deadline: 3 May", "Deadline for texts: 9 May"),
    ("Price: 30 euros", "Price for children: 12 euros"),
    ("Phone: 555 0134", "Phone at work: 555 0178"),
    ("The code is 4417.", "The code for the cellar is 9921."),
    ("My number is 555 0134.", "My number at work is 555 0178."),
    ("My email is ana@example.org.", "My email for invoices is bills@example.org."),
    ("Our dentist is Dr. Lang.", "Our dentist for the kids is Dr. Weiss."),
    ("Lunch is at 12.", "Lunch is at 13 on Fridays."),
    ("My doctor is in Leeds.", "My doctor is on holiday until May."),
    ("The owner is Mr. Lang.", "The owner is abroad until June."),
    ("The port is 80.", "The port is closed for maintenance."),
    ("The start is at 9.", "The start is delayed if it rains."),
    ("The server is in Frankfurt.", "The server is in maintenance mode."),
    ("The van is in the yard.", "The van is in good shape."),
    ("Ana is in Rome.", "Ana is in love."),
    ("Anna is from Poland.", "Anna is from the agency."),
    ("Bo is at school until 3.", "Bo is at the dentist at 4."),
    ("The patient's temperature is 38.2 at 8:00.", "The patient's temperature is 36.9 at 20:00."),
    ("Rule: the alarm is on at night.", "Rule: the alarm is on during holidays."),
    ("The limit is 5 per user.", "The limit is 50 per team."),
    ("The limit is 5 seats.", "The limit is 50 GB."),
    ("The size of the bed is 140 cm.", "The size of the room is 14 m²."),
    ("The default is dark mode on phones.", "The default is light mode on desktops."),
    ("The color of the door is red.", "The color of the door inside is white."),
    ("The fishmonger delivers on Tuesday.", "Gas delivery moved to Wednesday."),
]
"""Pairs of statements that are both true: of another time, place, person or thing, under a condition, or of a part."""


@pytest.mark.parametrize(("older", "newer"), APART)
def test_what_is_true_of_another_time_or_thing_overtakes_nothing(older: str, newer: str) -> None:
    assert updates([Utterance("1", older), Utterance("2", newer)]) == []


@pytest.mark.parametrize("turn", range(0, len(APART), 7))
def test_nothing_is_overtaken_in_a_memory_of_many_things(turn: int) -> None:
    """Rare words weigh more among many statements, and one that is shared was enough for a cue like `no longer`."""
    pairs = APART[turn:] + APART[:turn]
    said = dict.fromkeys([older for older, _ in pairs] + [newer for _, newer in pairs])
    text = dict(enumerate(said))
    found = updates([Utterance(str(number), one) for number, one in text.items()])
    assert [(text[int(one.older)], text[int(one.newer)]) for one in found] == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The bus leaves at 9:00.", "The bus leaves at 9:30."),
        ("The trip costs 24 euros.", "The trip costs 26 euros."),
        ("The trip costs 24 euros.", "The trip now costs 26 euros."),
        ("Ana lives in Leeds.", "Ana lives in York."),
        ("Ana lives in Leeds.", "Ana has moved to York."),
        ("The deadline is Friday.", "The deadline is Monday."),
        ("The meeting is on 3 May.", "The meeting is on 9 May."),
        ("Our dentist is Dr. Lang.", "Our new dentist is Dr. Weiss."),
        ("The server is hosted in Frankfurt.", "The server is hosted in Dublin."),
        ("I work at a bank.", "I work at a school."),
        ("My phone number is 555 0134.", "My phone number is 555 0178."),
        ("Price: 30 euros", "Price: 35 euros"),
        ("I keep the keys in the drawer.", "I keep the keys in the blue box."),
        ("The shop opens at 9.", "The shop now opens at 8."),
        ("Ben works for Siemens.", "Ben works for Bosch."),
        ("The limit is 60 requests per minute.", "The limit is 90 requests per minute."),
        ("The wifi code is 4417.", "The wifi code is now 9921."),
        ("Dana eats meat.", "Dana no longer eats meat."),
        ("I drink coffee.", "I gave up coffee."),
        ("Ana is married to Ben.", "Ana is married to Carl."),
        ("The course starts on Monday.", "The course starts on Tuesday."),
        ("The spare key is in the shed.", "The spare key is in the garage."),
    ],
)
def test_the_same_thing_with_another_value_is_still_overtaken(older: str, newer: str) -> None:
    assert updates([Utterance("1", older), Utterance("2", newer)])
