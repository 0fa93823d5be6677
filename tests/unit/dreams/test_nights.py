"""Thirty nights of a growing memory: what must be kept stays hot, hot memory stays small, a night without news changes
nothing, and every line leads to original words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, GateFailed
from reverie.core.entry import Draft, Entry, Source
from reverie.distil.gates import verify
from reverie.distil.must_keep import find
from reverie.distil.plan import to_sources
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.store.conformance import HandClock

DAY = 86_400_000
REF = "bot"
NIGHTS = 30
TARGET = 1500
count = TokenCounter().count
THINGS = ("lamp", "gate", "crane", "valve", "panel", "rotor", "hinge")


@pytest.fixture(scope="session")
def engine() -> str:
    """One store: the nights are about the text that dreams write, and it is the same on both."""
    return "sqlite"


def written(night: int) -> list[str]:
    thing = THINGS[night % len(THINGS)]
    return [
        f"Never switch off {thing} {night} without asking Ines first.",
        f"I prefer reports about {thing} {night} by e-mail.",
        "Good morning, everyone!",
        f"Check finished in {30 + night % 9} s, 0 errors.",
        f"The {thing} looked a little dusty under the roof of hall {night % 5} in the afternoon light.",
        f"Somebody had parked a bicycle near the {thing}, and the wind had turned it over twice.",
        f"A group of visitors walked past the {thing} and took pictures of the old brick wall.",
        "Thanks, that helped a lot.",
    ]


def hot(host: Host, ada: Actor) -> list[Entry]:
    return host.reader.page(ada, REF, limit=1000).items  # type: ignore[return-value]


def run(host: Host, ada: Actor) -> int:
    """As many parts as there are; returns how many dreams were made."""
    made = 0
    while True:
        try:
            report = host.dreams.run(ada, DreamPlan(REF, fit=True))
        except GateFailed:
            return made
        if report is None:
            return made
        assert report.gates["must_keep"]["missing"] == 0
        made += 1


def missing(host: Host, ada: Actor, originals: Sequence[Entry]) -> list[str]:
    """Must-keep statements of all that was ever written that hot memory does not have."""
    sources = to_sources(originals)
    text = "\n".join(entry.content for entry in hot(host, ada))
    report = verify(sources, text, must_keep=find(sources), budget=10**9, input_tokens=10**9, count=count)
    return [kept.item.text for kept in report.must_keep if kept.state == "missing"]


def test_thirty_nights(make_host: Callable[..., Host], ada: Actor, clock: HandClock) -> None:
    host = make_host(tokens=TokenCounter())
    host.rules.set_policy(ada, {"hot_target": str(TARGET), "nightly": "off"})
    originals: list[Entry] = []
    dreams = 0
    for night in range(NIGHTS):
        receipts = host.entries.put(ada, REF, [Draft(content=text) for text in written(night)])
        originals += [host.reader.get(ada, REF, receipt.id) for receipt in receipts]
        clock.advance(DAY)
        if night % 2:  # every second night is enough to show it
            dreams += run(host, ada)
        if night % 6 == 5:
            assert missing(host, ada, originals) == []
            before = [(entry.id, entry.version) for entry in hot(host, ada)]
            assert run(host, ada) == 0, "a second dream over unchanged memory"
            assert [(entry.id, entry.version) for entry in hot(host, ada)] == before
    assert dreams >= NIGHTS // 3
    all_tokens = sum(count(entry.content) for entry in originals)
    must_keep = sum(count(item.text) for item in find(to_sources(originals)))
    left = sum(count(entry.content) for entry in hot(host, ada))
    assert left <= max(TARGET, must_keep) * 5 // 4
    assert left < all_tokens * 3 // 4
    ids = {entry.id for entry in originals}
    for report in host.lineage.reports(ada):
        assert all(source in ids for statement in report.statements for source in statement.sources)


def test_a_dense_memory_loses_chatter_and_what_was_overtaken(make_host: Callable[..., Host], ada: Actor) -> None:
    """Entries that a text would only repeat stay; a correction and what it overtook stay together."""
    host = make_host(tokens=TokenCounter())
    dense = [f"Never switch off {thing} {n} without asking Ines first." for n in range(6) for thing in THINGS]
    old, new = (
        "The deploy window of the shop is Monday at 9:00.",
        "The deploy window of the shop is now Friday at 7:30.",
    )
    texts = [old, *dense[:20], "Good morning, everyone!", *dense[20:], new, "Thanks, that helped a lot."]
    host.entries.put(ada, REF, [Draft(content=text) for text in texts])
    before = sum(count(text) for text in texts)
    run(host, ada)
    left = hot(host, ada)
    text = "\n".join(entry.content for entry in left)
    assert sum(count(entry.content) for entry in left) < before
    assert sum(entry.content in dense for entry in left) > len(dense) // 2
    assert all(statement.rstrip(".") in text for statement in (*dense, new))
    assert not any(gone.rstrip(".!") in text for gone in (old, "Good morning, everyone!", "Thanks, that helped a lot."))


def test_chatter_leaves_where_every_line_would_repeat_an_entry(make_host: Callable[..., Host], ada: Actor) -> None:
    """The one entry that is dreamt to let chatter leave has a line of its own, and is not the question before it."""
    host = make_host(tokens=TokenCounter())
    said = [
        ("guest", "Hello, are you there?"),
        ("desk", "Yes, good morning!"),
        ("desk", "Is there anything else?"),
        ("guest", "Never install updates on the lab machines during working hours."),
        ("desk", "Understood."),
        ("guest", "The second printer is ticket HD-8830, Olu delivers it on 12 June."),
        ("guest", "That's all for today, bye!"),
        ("desk", "Have a nice day!"),
    ]
    host.entries.put(ada, REF, [Draft(content=text, source=Source(actor=actor)) for actor, text in said])
    assert run(host, ada) == 1
    text = "\n".join(entry.content for entry in hot(host, ada))
    assert "Never install updates" in text
    assert "HD-8830" in text
    assert "Have a nice day" not in text


def test_a_share_keeps_most_of_what_need_not_be_kept(make_host: Callable[..., Host], ada: Actor) -> None:
    """Much that must be kept does not push every other fact out."""
    host = make_host(tokens=TokenCounter())
    facts = [f"In hall {n} the {thing} was painted {n + 3} years ago." for n in range(16) for thing in THINGS]
    rules = [f"Never switch off {thing} {n} without asking Ines first." for n in range(30) for thing in THINGS]
    mixed = [text for pair in zip(rules, facts, strict=False) for text in pair] + rules[len(facts) :]
    host.entries.put(ada, REF, [Draft(content=text) for text in mixed])
    run(host, ada)
    text = "\n".join(entry.content for entry in hot(host, ada))
    assert all(rule.rstrip(".") in text for rule in rules)
    assert sum(fact.rstrip(".") in text for fact in facts) > len(facts) * 3 // 5
