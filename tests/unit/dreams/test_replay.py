"""Recorded searches: kept sealed within the policy's bound, replayed before and after a dream, dropped by a forget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.dream import After, DreamPlan, DreamReport, Replay
from reverie.core.entry import Draft, Scope
from reverie.core.errors import Invalid
from reverie.core.query import Filter
from reverie.dreams import replay
from reverie.host import Host
from reverie.jobs.sweep import Sweeper
from reverie.providers.tokenizer import TokenCounter
from reverie.store.cipher import FileCipher
from reverie.store.conformance import HandClock
from reverie.store.contract import Store

REF = "notes"
QUESTION = "When does the ferry to Oslo leave?"
NOTES = (
    "The ferry to Oslo leaves at 18:40 from pier 7.",
    "Hello there, how are you today?",
    "Thanks, that was great!",
    "The spare key is with the neighbour on the third floor.",
    "Hi again! Good morning.",
    "The spare key is with the neighbour on the third floor.",
    "Ok, thank you very much!",
)


@pytest.fixture
def host(make_host: Callable[..., Host], tmp_path: Path) -> Host:
    return make_host(tokens=TokenCounter(), embedder=EMBEDDER, cipher=FileCipher(tmp_path / "key"))


def fill(host: Host, ada: Actor) -> None:
    host.entries.put(ada, REF, [Draft(text) for text in NOTES])


def kept(host: Host, ref: str = REF) -> list[str]:
    return host.searches.last("acme", ref, 100)


def rows(host: Host) -> dict[str, bytes]:
    return host.parts.store.read(Scope("acme"), lambda tx: tx.searches())


def dreamt(host: Host, ada: Actor) -> tuple[DreamReport, Replay]:
    report = host.dreams.run(ada, DreamPlan(REF))
    assert report is not None
    assert report.replay is not None
    return report, report.replay


def test_a_search_is_recorded_once_sealed_and_without_an_event(host: Host, ada: Actor, clock: HandClock) -> None:
    fill(host, ada)
    before = host.parts.store.read(Scope("acme"), lambda tx: tx.head())
    host.search.search(ada, REF, QUESTION)
    assert rows(host) == {}, "nothing is stored on the way of a search"
    clock.advance(1)
    host.search.context(ada, REF, "where is the spare key", budget=100)
    clock.advance(1)
    host.search.search(ada, REF, "when does the ferry to  Oslo leave?")
    assert kept(host) == ["when does the ferry to  Oslo leave?", "where is the spare key"]
    assert b"ferry" not in rows(host)[REF]
    assert host.parts.store.read(Scope("acme"), lambda tx: tx.head()) == before


def test_people_filters_long_texts_and_unknown_memories_leave_nothing(host: Host, ada: Actor) -> None:
    fill(host, ada)
    for door in ("cli", "console", "host"):
        host.search.search(Actor(tenant="acme", id="ada", door=door), REF, QUESTION)
    host.search.search(ada, REF, QUESTION, where=Filter(kinds=("note",)))
    host.search.search(ada, REF, "ferry " * 400)
    host.search.search(ada, "nowhere", QUESTION)
    host.search.search(Actor(tenant="rival", id="eve"), REF, QUESTION)
    host.searches.flush()
    assert rows(host) == {}
    assert "rival" not in host.tenants()


def test_secrets_are_redacted_before_a_question_is_stored_and_after(host: Host, ada: Actor) -> None:
    fill(host, ada)
    host.rules.register(ada, "door", "orchid-99-lantern")
    host.search.search(ada, REF, "is orchid-99-lantern the code of the door")
    host.search.search(ada, REF, "does violet-11-candle open the cellar")
    host.searches.flush()
    host.rules.register(ada, "cellar", "violet-11-candle")
    assert not any("lantern" in text or "candle" in text for text in kept(host))


def test_the_policy_bounds_them_and_none_drops_them(host: Host, ada: Actor, clock: HandClock) -> None:
    fill(host, ada)
    host.rules.set_policy(ada, {"recorded_searches": 3})
    for number in range(6):
        clock.advance(1)
        host.search.search(ada, REF, f"question {number}")
    assert kept(host) == ["question 5", "question 4", "question 3"]
    host.rules.set_policy(ada, {"recorded_searches": 0})
    assert rows(host) == {}
    host.search.search(ada, REF, QUESTION)
    host.searches.flush()
    assert rows(host) == {}
    with pytest.raises(Invalid):
        host.rules.set_policy(ada, {"recorded_searches": 201})


@pytest.mark.parametrize("parts", [{"read_only": True}, {"cipher": None}])
def test_nothing_is_recorded_read_only_or_unsealed(
    parts: dict[str, object], host: Host, make_host: Callable[..., Host], ada: Actor, tmp_path: Path
) -> None:
    fill(host, ada)
    other = make_host(**({"store": host.parts.store, "cipher": FileCipher(tmp_path / "key")} | parts))
    other.search.search(ada, REF, QUESTION)
    other.searches.flush()
    assert rows(host) == {}


def test_what_waits_is_stored_by_a_sweep_and_at_the_end(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(host, ada)
    host.search.search(ada, REF, QUESTION)
    Sweeper(host, "holder").due("acme")
    assert list(rows(host)) == [REF]
    host.parts.store.write(Scope("acme"), lambda tx: tx.keep_searches(None))
    host.search.search(ada, REF, QUESTION)
    assert rows(host) == {}
    monkeypatch.setattr(host.parts.store, "close", lambda: None)
    host.close()
    assert list(rows(host)) == [REF]


@pytest.mark.parametrize(("about", "mentions"), [("Oslo", True), ("dr. Vera Lind", False), ("vera lind", True)])
def test_a_forget_drops_questions_that_name_its_subject(about: str, mentions: bool, host: Host, ada: Actor) -> None:
    """Also when no entry is about the subject, in memories without one, and questions that are not stored yet."""
    fill(host, ada)
    host.entries.put(ada, "other", [Draft("Another note about a lighthouse.")])
    for ref in (REF, "other"):
        for question in (f"where does {about.upper()}  live?", "lighthouse"):
            host.search.search(ada, ref, question)
    host.searches.flush()
    host.search.search(ada, REF, f"who is {about}")
    host.forget.forget(ada, about, mentions=mentions, ref=REF)
    assert kept(host) == ["lighthouse"]
    assert len(kept(host, "other")) == 2
    host.forget.forget(ada, about, mentions=mentions)
    assert kept(host, "other") == ["lighthouse"]


def test_a_forget_without_entries_drops_questions_that_wait_to_be_stored(host: Host, ada: Actor) -> None:
    fill(host, ada)
    host.search.search(ada, REF, "Where does Quill live?")
    host.search.search(ada, REF, QUESTION)
    assert rows(host) == {}
    assert host.forget.forget(ada, "quill").certificate is None
    assert kept(host) == [QUESTION]


def test_a_forget_drops_questions_that_found_what_it_destroys(host: Host, ada: Actor) -> None:
    fill(host, ada)
    host.entries.put(ada, REF, [Draft("The visitor asked to be called back at noon.", subject="quill")])
    host.search.search(ada, REF, "whom should we call back?")
    host.search.search(ada, REF, QUESTION)
    host.searches.flush()
    host.forget.forget(ada, "quill")
    assert kept(host) == [QUESTION]


def test_a_question_of_another_process_does_not_outlive_a_forget(
    host: Host, make_host: Callable[..., Host], ada: Actor, clock: HandClock, tmp_path: Path
) -> None:
    fill(host, ada)
    other = make_host(store=host.parts.store, cipher=FileCipher(tmp_path / "key"))
    clock.advance(3_600_000)
    other.search.search(ada, REF, QUESTION)
    clock.advance(-3_600_000)  # it was ahead: what counts is the position in the log
    assert host.forget.forget(ada, "Oslo", mentions=True).certificate is not None
    other.search.search(ada, REF, "where is the spare key")
    assert kept(other) == ["where is the spare key"]


def test_a_question_of_another_process_does_not_outlive_a_forget_that_finds_no_entry(
    host: Host, make_host: Callable[..., Host], ada: Actor, tmp_path: Path
) -> None:
    fill(host, ada)
    other = make_host(store=host.parts.store, cipher=FileCipher(tmp_path / "key"))
    other.search.search(ada, REF, "what did Zelda Quist pay")
    assert host.forget.forget(ada, "Zelda Quist").certificate is None
    other.search.search(ada, REF, "where is the spare key")
    assert kept(other) == ["where is the spare key"]


def test_a_question_of_another_process_does_not_outlive_an_erase(
    host: Host, make_host: Callable[..., Host], ada: Actor, tmp_path: Path
) -> None:
    fill(host, ada)
    other = make_host(store=host.parts.store, cipher=FileCipher(tmp_path / "key"))
    other.search.search(ada, REF, QUESTION)
    host.lifecycle.erase(ada, REF, host.reader.page(ada, REF).items[0].id)
    assert kept(other) == []


def test_an_erase_drops_those_of_its_memory(host: Host, ada: Actor) -> None:
    fill(host, ada)
    host.search.search(ada, REF, QUESTION)
    host.searches.flush()
    entry = host.reader.page(ada, REF).items[0]
    host.lifecycle.erase(ada, REF, entry.id)
    assert rows(host) == {}


def test_a_dream_replays_them_before_and_after(host: Host, ada: Actor) -> None:
    fill(host, ada)
    first = host.search.search(ada, REF, QUESTION).hits[0].entry.id
    host.search.search(ada, REF, "quantum chromodynamics lattice")
    report, found = dreamt(host, ada)
    assert {one.question: one.outcome for one in found.questions} == {
        QUESTION: "kept",
        "quantum chromodynamics lattice": "unanswered",
    }
    asked = next(one for one in found.questions if one.question == QUESTION)
    assert (asked.before[0].id, asked.after[0].id, asked.place) == (first, report.output_id, 1)
    output = host.reader.get(ada, REF, str(report.output_id)).content.split("\n")
    assert asked.after[0].line is not None
    assert "18:40" in output[asked.after[0].line]
    assert found.outcomes == {"kept": 1, "unanswered": 1}
    assert host.lineage.report(ada, report.id).replay == found
    assert all(one.replay is None for one in host.lineage.reports(ada))
    stored = host.parts.store.read(Scope("acme"), lambda tx: tx.load("dream", report.id))
    assert stored is not None
    assert b"ferry" not in bytes(stored.body or b"")
    assert len(kept(host)) == 2, "a replay records nothing"


@pytest.mark.parametrize(
    ("question", "outcome"), [("Hello there, how are you today?", "cold"), ("good morning again", "cold")]
)
def test_what_left_hot_memory_is_answered_from_cold_storage(
    question: str, outcome: str, host: Host, ada: Actor
) -> None:
    fill(host, ada)
    first = host.search.search(ada, REF, question).hits[0].entry
    report, found = dreamt(host, ada)
    assert next(source.fate for source in report.sources if source.id == first.id) == "chatter"
    asked = found.questions[0]
    assert (asked.outcome, asked.before[0].id) == (outcome, first.id)
    assert (first.id in [one.id for one in asked.after if one.cold]) is (outcome == "cold")


def test_the_bytes_of_a_dream_do_not_depend_on_its_replay(
    make_host: Callable[..., Host], make_store: Callable[..., Store], ada: Actor, tmp_path: Path
) -> None:
    sums = []
    for asked in (False, True):
        store = make_store(f"{asked}.db")
        host = make_host(store=store, tokens=TokenCounter(), embedder=EMBEDDER, cipher=FileCipher(tmp_path / "k"))
        host.entries.put(ada, REF, [Draft(text, id=f"n{at}") for at, text in enumerate(NOTES)])
        if asked:
            host.search.search(ada, REF, QUESTION)
        report = host.dreams.run(ada, DreamPlan(REF))
        assert report is not None
        assert (report.replay is not None) is asked
        sums.append(report.checksum)
    assert sums[0] == sums[1]


def test_a_replay_is_bounded_in_number_and_time(host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(host, ada)
    for number in range(15):
        host.search.search(ada, REF, f"ferry question {number}")
    monkeypatch.setattr(replay, "MOST", 5)
    monkeypatch.setattr(replay, "MOST_SECONDS", -1.0)
    _, found = dreamt(host, ada)
    assert (len(found.questions), found.skipped) == (1, 4)


@pytest.mark.parametrize("fault", [Invalid("no"), OSError("disk")])
@pytest.mark.parametrize("answered", [0, 1])
def test_a_replay_that_fails_costs_no_dream(
    answered: int, fault: Exception, host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(host, ada)
    host.search.search(ada, REF, QUESTION)
    host.searches.flush()
    search, asked = host.search.search, 0

    def fails(*given: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > answered:
            raise fault
        return search(*given, **named)

    monkeypatch.setattr(host.search, "search", fails)
    report = host.dreams.run(ada, DreamPlan(REF))
    assert report is not None
    assert report.replay is None
    assert asked == answered + 1


def test_a_dream_without_a_text_replays_nothing(host: Host, ada: Actor) -> None:
    fill(host, ada)
    host.search.search(ada, REF, QUESTION)
    report = host.dreams.run(ada, DreamPlan(REF, distiller="none", after=After.ARCHIVE))
    assert report is not None
    assert report.replay is None


def test_a_forget_after_a_dream_takes_the_questions_of_its_replay(host: Host, ada: Actor) -> None:
    fill(host, ada)
    host.search.search(ada, REF, QUESTION)
    report, _ = dreamt(host, ada)
    host.forget.forget(ada, "Oslo", mentions=True)
    assert host.lineage.report(ada, report.id).replay is None
