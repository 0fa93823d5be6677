"""Random memories, dreamt: the budget holds, the minimum is exact, undo is identity, and nights come to an end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.stores import on_one_store, open_store

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, DreamReport, GateFailed, Selector, TokenBudgetExceeded
from reverie.core.entry import Draft, Entry, Source
from reverie.core.query import Filter
from reverie.host import Host
from reverie.providers.static import StaticEmbedder
from reverie.providers.tokenizer import TokenCounter
from reverie.redact import Redactor
from reverie.services import Services
from reverie.store.conformance import HandClock

SOAK = bool(os.environ.get("REVERIE_SOAK"))
HOUR = 3_600_000
ADA = Actor(tenant="acme", id="ada")
REF = "notes"

redactor, embedder, tokens = cache(Redactor), cache(StaticEmbedder), cache(lambda: TokenCounter("o200k_base"))


class World:
    """A host on a clock that moves when told to."""

    def __init__(self, target: str) -> None:
        self.clock = HandClock()
        store = open_store(target, clock=self.clock)
        self.host = Host(
            Services(store=store, redactor=redactor(), embedder=embedder(), tokens=tokens(), clock=self.clock)
        )

    def fill(self, drafts: list[Draft]) -> None:
        self.host.entries.put(ADA, REF, drafts)

    def readable(self) -> list[tuple[Any, ...]]:
        """Everything a reader sees, in order. Versions are not memory: they count changes."""
        page = self.host.reader.page(ADA, REF, Filter(), limit=1000)
        return [seen(entry) for entry in page.items]

    def found(self) -> list[list[tuple[str, float]]]:
        """What a few searches give, with scores."""
        answers = []
        for query in ("which port does the service use", "Lisbon", "decided deadline", "quiet lake"):
            hits = self.host.search.search(ADA, REF, query, limit=20).hits
            answers.append([(hit.entry.id, round(float(hit.score), 6)) for hit in hits])
        return answers

    def dream(self, budget: int | None = None, *, fit: bool = False) -> DreamReport | None:
        """A dream; None when there is nothing to do, or nothing to be gained."""
        try:
            return self.host.dreams.run(ADA, DreamPlan(ref=REF, budget=budget, fit=fit))
        except GateFailed as fault:
            if fault.details.get("gates") == ["smaller"]:
                return None
            raise


def seen(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.id,
        entry.kind,
        entry.content,
        entry.tags,
        entry.subject,
        dict(entry.attributes),
        entry.source,
        entry.state,
        entry.archived,
        entry.pinned,
        entry.held,
        entry.created_at,
        entry.expires_at,
    )


SENTENCES = st.one_of(
    st.builds("We decided to run service {} on port {}.".format, st.integers(1, 9), st.integers(7000, 7009)),
    st.builds(
        "Ana moved to {} in {} 2023.".format, st.sampled_from(["Lisbon", "Porto"]), st.sampled_from(["May", "June"])
    ),
    st.builds("{} must never deploy on Fridays.".format, st.sampled_from(["We", "The team"])),
    st.builds("I promised Ben the report by {}.".format, st.sampled_from(["Friday", "Monday", "3 May"])),
    st.builds("The parser does {}handle tabs; see parse_all().".format, st.sampled_from(["", "not "])),
    st.sampled_from(
        [
            "Thanks, that was lovely!",
            "Good morning, everyone.",
            "How many words is it?",
            "About 21,000.",
            "The lake was quiet and the light was soft.",
            "See https://example.com/tabs for the long answer.",
            "日本語のメモ。会議は三時です。",
            "- [ ] call Ana back\n- [x] send the invoice 4711",
            "```python\nprint('hello')\n```",
        ]
    ),
    st.text(min_size=1, max_size=40).filter(lambda text: "\x00" not in text and text.strip() != ""),
)


@st.composite
def drafts(draw: st.DrawFn, least: int = 2, most: int = 24) -> list[Draft]:
    start = HandClock().now() - 2000 * HOUR
    made = []
    for number in range(draw(st.integers(least, most))):
        sentences = draw(st.lists(SENTENCES, min_size=1, max_size=4))
        made.append(
            Draft(
                content=" ".join(sentences),
                kind=draw(st.sampled_from(["note", "note", "note", "decision", "constraint", "checkpoint"])),
                tags=tuple(draw(st.lists(st.sampled_from(["red", "blue", "team:x"]), unique=True, max_size=2))),
                subject=draw(st.sampled_from([None, None, "ana", "ben"])),
                attributes=draw(st.sampled_from([{}, {"confidence": 0.5}])),
                source=Source(
                    actor=draw(st.sampled_from(["", "Ana", "Ben"])), session=draw(st.sampled_from([None, "s1"]))
                ),
                created_at=start + number * draw(st.sampled_from([0, 1, 24])) * HOUR,
                expires_at=draw(st.sampled_from([None, None, None, HandClock().now() + HOUR])),
                pinned=draw(st.sampled_from([False] * 5 + [True])),
            )
        )
    return made


@pytest.fixture
def world(engine: str, request: pytest.FixtureRequest) -> Iterator[type[World]]:
    made: list[World] = []
    postgres = request.getfixturevalue("postgres") if engine == "postgres" else None
    url = postgres.make_database() if postgres else ":memory:"

    class Tracked(World):
        def __init__(self) -> None:
            if postgres and made:
                made.pop().host.close()
                assert postgres.empty_database(url)
            super().__init__(url)
            made.append(self)

    yield Tracked
    for one in made:
        one.host.close()
    if postgres:
        postgres.drop_database(url)


def examples(count: int, *, soak: int) -> Any:
    return settings(
        max_examples=soak if SOAK else count,
        deadline=None,
        derandomize=not SOAK,
        database=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink) if SOAK else (Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@examples(6, soak=600)
@given(memory=drafts(), budget=st.sampled_from([None, 300, 1000]), later=st.booleans())
def test_dream_then_undo_is_identity(world: type[World], memory: list[Draft], budget: int | None, later: bool) -> None:
    one = world()
    one.fill(memory)
    before, found, index = one.readable(), one.found(), one.host.archives.index(ADA)
    try:
        report = one.dream(budget)
    except TokenBudgetExceeded:
        report = None
    if report is None:
        assert one.readable() == before
        return
    assert report.tokens_used <= report.budget
    again = None
    if later:  # a dream of the dream, undone first
        indexed = one.host.archives.index(ADA)
        one.fill(
            [Draft(content="The port of service 3 is 7003 now. " * 3), Draft(content="Service 3, port 7003. " * 3)]
        )
        try:
            again = one.dream()
        except TokenBudgetExceeded:
            again = None
        if again is not None:
            one.host.lineage.undo(ADA, again.id)
            assert one.host.archives.index(ADA) == indexed
        for entry in one.host.reader.page(ADA, REF, Filter(), limit=1000).items:
            if entry.content.startswith(("The port of service 3", "Service 3, port")):
                one.host.lifecycle.erase(ADA, REF, entry.id)
    one.host.lineage.undo(ADA, report.id)
    assert one.readable() == before
    assert one.found() == found
    assert one.host.archives.index(ADA) == index
    assert one.host.audit.verify(ADA).ok
    if not later:  # and the same dream again has the same bytes
        repeated = one.dream(budget)
        assert repeated is not None
        assert repeated.checksum == report.checksum


@on_one_store
@examples(6, soak=600)
@given(memory=drafts())
def test_the_minimum_is_exact(world: type[World], memory: list[Draft]) -> None:
    one = world()
    one.fill(memory)
    plan = DreamPlan(ref=REF)
    estimate = one.host.dreams.plan(ADA, plan)
    if estimate.sources < 2 or not estimate.feasible:
        return
    least = estimate.minimum_required
    before = one.readable()
    with pytest.raises(TokenBudgetExceeded) as refused:
        one.host.dreams.run(ADA, DreamPlan(ref=REF, budget=least - 1))
    assert refused.value.details == {"budget": least - 1, "minimumRequired": least}
    assert one.readable() == before
    report = one.host.dreams.run(ADA, DreamPlan(ref=REF, budget=least))
    assert report is not None
    assert report.tokens_used <= least


@on_one_store
@examples(4, soak=300)
@given(memory=drafts(least=10, most=60), budget=st.sampled_from([250, 500, 1500]))
def test_nights_shrink_a_memory_within_budget_and_end(world: type[World], memory: list[Draft], budget: int) -> None:
    one = world()
    one.fill(memory)
    count = tokens().count
    size = sum(count(entry[2]) for entry in one.readable())
    pinned = {entry[0] for entry in one.readable() if entry[9] and entry[12] is None}
    for night in range(200):
        try:
            report = one.dream(budget, fit=True)
        except TokenBudgetExceeded:  # not even two memories fit
            break
        if report is None:
            break
        assert report.tokens_used <= budget
        now = sum(count(entry[2]) for entry in one.readable())
        assert pinned <= {entry[0] for entry in one.readable()}
        assert report.output_tokens < report.tokens_before
        one.clock.advance(24 * HOUR if night % 2 else HOUR)
        size = now
    else:
        raise AssertionError(f"two hundred nights were not enough ({size} tokens are left)")
    assert one.host.audit.verify(ADA).ok


@on_one_store
@examples(6, soak=300)
@given(memory=drafts(least=4, most=16), tag=st.sampled_from(["red", "blue"]), age=st.sampled_from([0, 100, 300]))
def test_only_what_is_selected_is_taken(world: type[World], memory: list[Draft], tag: str, age: int) -> None:
    one = world()
    one.fill(memory)
    before = {entry[0]: entry for entry in one.readable()}
    plan = DreamPlan(ref=REF, selector=Selector(tags=(tag,), older_than_ms=age * HOUR, kinds=("note",)))
    try:
        report = one.host.dreams.run(ADA, plan)
    except GateFailed:
        report = None
    after = {entry[0]: entry for entry in one.readable()}
    taken = {source.id for source in report.sources} if report else set()
    for entry_id, entry in before.items():
        if entry_id in taken:
            assert tag in entry[3]
            assert entry[1] == "note"
            assert not entry[9]
            assert one.clock.now() - entry[11] >= age * HOUR
            assert entry_id not in after
        else:
            assert after[entry_id] == entry
