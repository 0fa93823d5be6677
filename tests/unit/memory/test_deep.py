"""Search behind hot memory: the sources of dreams are found when nothing hot answers, and say so."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import EMBEDDER
from tests.counting import Counted

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, DreamReport
from reverie.core.entry import Draft, Source
from reverie.core.errors import Invalid
from reverie.core.query import Filter
from reverie.host import Host
from reverie.memory.deep import wants_sources
from reverie.providers.tokenizer import TokenCounter

MakeHost = Callable[..., Host]
REF = "bot"
CHATTER = "Haha, what a zeppelin!"
TEXTS = [
    "The customer prefers e-mail to telephone calls.",
    "Invoices are sent on the first working day of the month.",
    "The warehouse in Utrecht closes at 17:30.",
    CHATTER,
]


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host(tokens=TokenCounter(), embedder=EMBEDDER)


def dream(host: Host, ada: Actor) -> DreamReport:
    host.entries.put(ada, REF, [Draft(content=text) for text in TEXTS for _ in range(2)])
    report = host.dreams.run(ada, DreamPlan(REF))
    assert report is not None
    return report


def test_what_left_is_found_when_nothing_hot_answers(host: Host, ada: Actor) -> None:
    report = dream(host, ada)
    assert "zeppelin" not in host.reader.get(ada, REF, str(report.output_id)).content
    assert all(hit.weak or not hit.cold for hit in host.search.search(ada, REF, "zeppelin", deep="never").hits)
    first = host.search.search(ada, REF, "Which zeppelin?").hits[0]
    assert (first.cold, first.dream, first.text) == (True, report.output_id, CHATTER)
    assert first.entry.id in {source.id for source in report.sources}


def test_a_hot_answer_needs_no_cold_one_and_names_its_sources(host: Host, ada: Actor) -> None:
    report = dream(host, ada)
    hits = host.search.search(ada, REF, "How does the customer want to be reached, e-mail or telephone?").hits
    assert not any(hit.cold for hit in hits)
    assert "e-mail" in hits[0].text
    opened = [host.lineage.why(ada, REF, source).content for source in hits[0].sources]
    assert opened.count(TEXTS[0]) == 2
    assert all(str(text).rstrip(".") in hits[0].text for text in opened)
    assert report.output_id == hits[0].entry.id


def test_always_shows_both_and_a_filter_holds_for_both(host: Host, ada: Actor) -> None:
    dream(host, ada)
    hits = host.search.search(ada, REF, "warehouse in Utrecht", deep="always", limit=20).hits
    assert {hit.cold for hit in hits if "Utrecht" in hit.text} == {False, True}
    assert next(hit.cold for hit in hits if not hit.weak) is False
    assert host.search.search(ada, REF, "warehouse in Utrecht", deep="always", where=Filter(kinds=("task",))).hits == []
    with pytest.raises(Invalid):
        host.search.search(ada, REF, "warehouse", deep="perhaps")  # type: ignore[arg-type]


def test_undo_forget_and_later_dreams_are_seen_at_once(host: Host, ada: Actor) -> None:
    report = dream(host, ada)
    assert host.search.search(ada, REF, "Which zeppelin?").hits[0].cold
    host.lineage.undo(ada, report.id)
    hits = host.search.search(ada, REF, "Which zeppelin?", deep="always").hits
    assert hits
    assert not any(hit.cold for hit in hits)
    host.entries.put(ada, REF, [Draft(content="Ana owns a purple zeppelin, wow!", subject="ana")] * 2)
    assert host.dreams.run(ada, DreamPlan(REF)) is not None
    assert any(hit.cold for hit in host.search.search(ada, REF, "purple zeppelin", deep="always").hits)
    host.forget.forget(ada, "ana")
    found = host.search.search(ada, REF, "purple zeppelin", deep="always", limit=50).hits
    assert not any("purple" in hit.text for hit in found)


def test_context_and_lists_stay_hot(host: Host, ada: Actor) -> None:
    dream(host, ada)
    assert CHATTER not in host.search.context(ada, REF, "Which zeppelin?", budget=500).text
    assert [entry.kind for entry in host.reader.page(ada, REF).items] == ["dream"]


def test_a_source_that_is_surer_comes_before_a_hot_hit(host: Host, ada: Actor) -> None:
    host.entries.put(ada, REF, [Draft(content=text) for text in (CHATTER, *TEXTS[1:3]) for _ in range(2)])
    host.dreams.run(ada, DreamPlan(REF))
    host.entries.put(ada, REF, [Draft(content="What a balloon ride needs is a permit of the town.")])
    hits = host.search.search(ada, REF, "haha what a zeppelin").hits
    assert (hits[0].cold, hits[0].text) == (True, CHATTER)


@pytest.mark.parametrize(
    ("kind", "confidence", "weak", "asked"),
    [("note", 0.9, False, False), ("note", 0.6, False, True), ("note", 0.9, True, True), ("dream", 0.9, False, True)],
)
def test_only_an_original_that_is_surely_an_answer_needs_no_sources(
    kind: str, confidence: float, weak: bool, asked: bool
) -> None:
    hit: Any = SimpleNamespace(weak=weak, confidence=confidence, entry=SimpleNamespace(kind=kind))
    assert wants_sources([hit]) is asked


def test_a_source_and_a_line_that_says_part_of_it_are_one_hit(host: Host, ada: Actor) -> None:
    asked = "The exercises for the knee help a lot. How do I prevent it from hurting again next winter?"
    host.entries.put(ada, REF, [Draft(content=text) for text in (*TEXTS[:3], *TEXTS[:3], asked)])
    report = host.dreams.run(ada, DreamPlan(REF))
    assert report is not None
    assert asked not in host.reader.get(ada, REF, str(report.output_id)).content
    hits = host.search.search(ada, REF, "How do I prevent it from hurting again next winter?").hits
    assert [hit.cold for hit in hits if "knee" in hit.text] == [True]


def test_a_prompt_gets_the_lines_of_sources_that_answer_and_not_those_of_other_speakers(host: Host, ada: Actor) -> None:
    texts = (
        "Thank you so much for the marvellous zeppelin! The hangar key is kept in locker 14.",
        "Invoices are sent on the first working day of the month.",
        "The warehouse in Utrecht closes at 17:30.",
    )
    host.entries.put(
        ada,
        REF,
        [Draft(content=text, source=Source(actor=f"mate {n}")) for n, text in enumerate(texts) for _ in range(2)],
    )
    report = host.dreams.run(ada, DreamPlan(REF))
    assert report is not None
    assert "zeppelin" not in host.reader.get(ada, REF, str(report.output_id)).content
    packed = host.search.context(ada, REF, "marvellous zeppelin", budget=500)
    assert "locker 14" in packed.text
    assert "Invoices" not in packed.text
    assert "zeppelin" not in packed.text  # cold storage stays out of prompts
    assert packed.tokens <= 500


def test_a_search_reads_a_dream_once_however_many_of_its_lines_and_sources_are_hits(
    make_host: MakeHost, make_store: Callable[..., Any], ada: Actor
) -> None:
    store = Counted(make_store())
    host = make_host(store=store, tokens=TokenCounter(), embedder=EMBEDDER)
    texts = [f"Berth {n} of the harbour is let to the yacht of captain {n * 7}." for n in range(40)]
    host.entries.put(ada, REF, [Draft(content=text) for text in texts for _ in range(2)])
    assert host.dreams.run(ada, DreamPlan(REF)) is not None

    def calls(limit: int) -> int:
        before = store.calls
        assert len(host.search.search(ada, REF, "Which yacht of the harbour has a berth?", limit=limit).hits) == limit
        return store.calls - before

    calls(20)
    assert calls(20) - calls(4) <= 16  # for each further source the dreams it is in
