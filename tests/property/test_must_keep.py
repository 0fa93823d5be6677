"""Whatever is dreamt, under whatever target and budget: no must-keep statement leaves hot memory, and hot memory never
grows by a dream that fits its part."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, GateFailed, TokenBudgetExceeded
from reverie.core.entry import Draft, Source
from reverie.distil.gates import verify
from reverie.distil.must_keep import find
from reverie.distil.plan import hot_texts, to_sources
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter

count = TokenCounter().count
NAMES = st.sampled_from(["Ines", "Tobi", "Zoë", "the cat", "staging"])
NUMBERS = st.integers(1, 4000)
STATEMENTS = st.one_of(
    st.builds("{} is allergic to peanuts.".format, NAMES),
    st.builds("Never restart server {} on a Friday.".format, NUMBERS),
    st.builds("I prefer seat {}, can you book it for {}?".format, NUMBERS, NAMES),
    st.builds("We decided on port {} because {} asked for it.".format, NUMBERS, NAMES),
    st.builds("The report for {} is due on {} May; send it to Ana, do not print it.".format, NAMES, st.integers(1, 28)),
    st.builds("Backup finished in {} s.".format, NUMBERS),
    st.builds("The walk with {} along the river was nice, about {} steps.".format, NAMES, NUMBERS),
    st.sampled_from(
        [
            "Thanks a lot!",
            "Good morning!",
            "ok",
            "Haha, wow.",
            "我不吃牛肉，请推荐鸡肉。",
            "Bitte nie vor zehn anrufen.",
        ]
    ),
)
ENTRIES = st.lists(st.lists(STATEMENTS, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=40)


NUMBERED = itertools.count()


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host(tokens=TokenCounter())


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ENTRIES,
    st.sampled_from(["1%", "40%", "50%", "100%", "1", "300"]),
    st.sampled_from([None, 600, 1500]),
    st.booleans(),
)
def test_no_must_keep_statement_leaves_hot_memory(
    host: Host, ada: Actor, texts: list[str], target: str, budget: int | None, fit: bool
) -> None:
    ref = f"bot-{next(NUMBERED)}"
    host.rules.set_policy(ada, {"hot_target": target})
    drafts = [Draft(content=text, source=Source(actor=("Ann", "Bob")[n % 2])) for n, text in enumerate(texts)]
    host.entries.put(ada, ref, drafts)
    originals = host.reader.page(ada, ref, limit=1000).items
    for _ in range(2):
        before = sum(map(count, hot_texts(host.reader.page(ada, ref, limit=1000).items)))
        try:
            report = host.dreams.run(ada, DreamPlan(ref, budget=budget, fit=fit))
        except (GateFailed, TokenBudgetExceeded):
            break
        after = sum(map(count, hot_texts(host.reader.page(ada, ref, limit=1000).items)))
        if report is None:
            assert after == before
        else:
            assert after < before
    sources = to_sources(originals)
    hot = "\n".join(entry.content for entry in host.reader.page(ada, ref, limit=1000).items)
    report = verify(sources, hot, must_keep=find(sources), budget=10**9, input_tokens=10**9, count=count)
    assert [kept.item.text for kept in report.must_keep if kept.state == "missing"] == []
