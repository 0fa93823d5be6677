"""Questions as people ask them, over a handful of notes, with default settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.memory.hits import SearchResult

ACTOR = Actor(tenant="home", id="local:test")
NOTES = (
    (300, "My boss is Tobias."),
    (200, "We bought a green sofa at Nordhaus for 650 euros."),
    (100, "Team lunch is on Wednesdays at Casa Lina."),
    (60, "I moved to the marketing team, my boss is now Karin."),
    (30, "Team lunch is on Thursdays now, same place."),
    (9, "Met Aylin about the podcast; she wants to record on Tuesdays."),
    (1, "Called the plumber about the leaking tap in the guest bathroom."),
)


@pytest.fixture
def ask(make_host: Callable[..., Host], clock: Callable[[], int]) -> Callable[..., SearchResult]:
    host = make_host(embedder=EMBEDDER)
    now = clock.now()  # type: ignore[attr-defined]
    host.entries.put(ACTOR, "me", [Draft(text, created_at=now - days * MS_PER_DAY) for days, text in NOTES])
    return lambda query, **more: host.search.search(ACTOR, "me", query, explain=True, **more)


def answers(result: SearchResult) -> list[str]:
    return [hit.text for hit in result if not hit.weak]


def why(result: SearchResult, place: int = 0) -> str:
    assert result.explanation is not None
    return "; ".join(result.explanation.hits[place].why)


def test_a_synonym_and_a_misspelling_are_found_and_explained(ask: Callable[..., SearchResult]) -> None:
    found = ask("Where is our couch from?")
    assert answers(found) == [NOTES[1][1]]
    assert "couch (as sofa)" in why(found)
    found = ask("the plummer and the tap")
    assert answers(found) == [NOTES[6][1]]
    assert "plummer (as plumber)" in why(found)


def test_a_question_and_a_note_in_other_everyday_words(make_host: Callable[..., Host]) -> None:
    host = make_host(embedder=EMBEDDER)
    notes = ("Anna has moved to 48 Crookes Lane.", "Our doctor is Banerjee.", "The vet saw Momo.", "Bread at Hobson's.")
    host.entries.put(ACTOR, "me", [Draft(text) for text in notes])
    for question, note in (("Where does Anna live?", 0), ("Who is our GP?", 1), ("Which veterinarian?", 2)):
        assert answers(host.search.search(ACTOR, "me", question))[0] == notes[note]


def test_a_state_that_began_later_comes_before_the_one_it_ended(make_host: Callable[..., Host]) -> None:
    host = make_host(embedder=EMBEDDER)
    notes = (
        "Feature flag `new_billing` is off in production until the audit is done.",
        "The cache of the catalogue lives for 15 minutes.",
        "Feature flag `new_billing` is on for everyone since release 4.18.",
    )
    host.entries.put(ACTOR, "me", [Draft(text) for text in notes])
    found = host.search.search(ACTOR, "me", "is new_billing enabled?")
    assert answers(found) == [notes[2], notes[0]]
    assert found[1].older == found[0].entry.id


def test_what_is_current_comes_first_and_only_what_is_overtaken_is_older(ask: Callable[..., SearchResult]) -> None:
    found = ask("when is the team lunch?")
    assert answers(found)[:2] == [NOTES[4][1], NOTES[2][1]]
    older = {hit.text: hit.older for hit in found}
    assert older[NOTES[2][1]] == found[0].entry.id
    assert older[NOTES[3][1]] is None  # it shares the word team, and nothing else
    assert answers(ask("Who is my boss?"))[0] == NOTES[3][1]


def test_a_long_remark_finds_what_it_has_words_in_common_with(ask: Callable[..., SearchResult]) -> None:
    remark = (
        "The kitchen renovation dragged on through the whole autumn and the neighbours complained twice, the budget is nearly "
        "gone, and on top of it water was dripping again last night, so I should call the plumber about the bathroom."
    )
    assert answers(ask(remark)) == [NOTES[6][1]]
    unrelated = remark.replace("call the plumber about the bathroom", "repaint the shutters before winter arrives")
    assert answers(ask(unrelated)) == []


def test_a_question_about_a_time_is_answered_by_what_was_made_then(ask: Callable[..., SearchResult]) -> None:
    found = ask("what did I do yesterday?")
    assert answers(found) == [NOTES[6][1]]
    assert "the time that the question names" in why(found)
    assert set(answers(ask("what happened in the last 10 days"))) == {NOTES[6][1], NOTES[5][1]}
    assert answers(ask("was habe ich gestern gemacht?"))[:1] == [NOTES[6][1]]
    assert answers(ask("who called about the tap yesterday?"))[:1] == [NOTES[6][1]]


def test_a_time_finds_entries_that_neither_words_nor_meaning_would(
    make_host: Callable[..., Host], clock: Callable[[], int]
) -> None:
    host, now = make_host(embedder=EMBEDDER), clock.now()  # type: ignore[attr-defined]
    many = [Draft(f"Did this and that again, round {n}.", created_at=now - 50 * MS_PER_DAY) for n in range(200)]
    host.entries.put(ACTOR, "me", [*many, Draft("Gave the geraniums away.", created_at=now - MS_PER_DAY)])
    assert host.search.search(ACTOR, "me", "what did I do yesterday?")[0].text == "Gave the geraniums away."


def test_nonsense_has_no_answer(ask: Callable[..., SearchResult]) -> None:
    for question in ("How tall is Mount Everest?", "zxqv blorp", "Who won the chess match?"):
        assert answers(ask(question)) == []


def test_context_is_the_same_bytes_in_two_processes(tmp_path):
    program = (
        "import reverie, sys\n"
        "with reverie.open(sys.argv[1]) as memory:\n"
        "    notes = memory.ref('notes')\n"
        "    if not notes.search('counter'):\n"
        "        notes.put_many([{'content': f'The counter of kitchen {n % 7} is grey oak, {n} centimetres.',"
        " 'created_at': 1_700_000_000_000 + n} for n in range(40)])\n"
        "    print(*[notes.context('Which counter is grey?', budget=300).text for _ in range(2)], sep='\\n--\\n')\n"
    )
    texts = []
    for seed in ("1", "77"):
        run = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "memory")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        texts += run.stdout.rstrip("\n").split("\n--\n")
    assert len(texts) == 4
    assert "grey oak" in texts[0]
    assert len(set(texts)) == 1


class Reader:
    """An embedder that is no table of words, and notes what it was asked."""

    name, dimensions = "reader", 4

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.texts += texts
        return [bytes([127, 0, 0, 0])] * len(texts)


def test_a_model_reads_a_question_as_a_whole(make_host: Callable[..., Host]) -> None:
    reader = Reader()
    make_host(embedder=reader).search.search(ACTOR, "me", "Who may not eat gluten?")
    assert reader.texts == ["Who may not eat gluten?"]


def test_a_change_in_other_words_comes_before_the_note_that_it_overtakes(make_host, clock):
    """The newer note has no word of the question: it names the firm of the older one and is close to it in meaning."""
    host = make_host(embedder=EMBEDDER)
    told = (
        (90, "The boiler is repaired by Hartmann, 0151 77"),
        (80, "The dentist is on Monday at nine"),
        (70, "Heating oil was delivered, 800 litres"),
        (60, "Bought winter tyres"),
        (50, "Paint for the hall is in the cellar"),
        (5, "Hartmann went out of business; heating work is done by Kessel & Co now"),
    )
    host.entries.put(ACTOR, "me", [Draft(text, created_at=clock.now() - days * MS_PER_DAY) for days, text in told])
    first, second, *_ = found = host.search.search(ACTOR, "me", "Who repairs our boiler?", explain=True)
    assert (first.text, second.text) == (told[-1][1], told[0][1])
    assert (first.older, second.older) == (None, first.entry.id)
    assert "put before an older hit about the same matter" in found.explanation.hits[0].why
