"""Entries about several subjects: a statement that does not name its subject says so in the dream, and never gives way
to the same words about someone else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.core.subject import unnamed
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter

BOT = Actor(tenant="acme", id="local:bot")  # a credential: so only the subject is named
NOTES = [
    ("ada", "Lives in Paris."),
    ("bob", "Lives in Rome."),
    ("ada", "Likes green tea with honey."),
    ("bob", "Likes green tea with honey."),
    ("ada", "The phone number is 555 0134."),
    ("bob", "The phone number is 555 0199."),
    ("ada", "Allergic to peanuts."),
    ("carol", "Ada and Carol share an office."),
]


@pytest.mark.parametrize(
    ("subject", "text", "named"),
    [
        ("ada", "Ada's flat is in Paris.", True),
        ("club-otter", "Club Otter has 240 members.", True),
        ("al", "He also likes tea.", False),
        ("user-42", "Prefers tea.", False),
        ("佐藤", "佐藤さんは紅茶が好きです。", True),
    ],
)
def test_whether_a_text_names_its_subject(subject: str, text: str, named: bool) -> None:
    assert unnamed(subject, text) == (None if named else subject)


def filled(make_host: Callable[..., Host]) -> Host:
    host = make_host(tokens=TokenCounter("o200k_base"))
    for subject, text in NOTES:
        host.entries.put(BOT, "people", [Draft(content=text, subject=subject)])
    return host


def test_the_same_words_about_another_subject_are_no_duplicate_and_no_update(make_host: Callable[..., Host]) -> None:
    host = filled(make_host)
    assert host.consolidator.run(BOT, "people").merged == []


def test_an_update_about_one_subject_is_still_found(make_host: Callable[..., Host]) -> None:
    host = filled(make_host)
    (newer,) = host.entries.put(BOT, "people", [Draft(content="The phone number is 555 0777.", subject="Bob")])
    old = next(e for e in host.reader.page(BOT, "people").items if e.content.endswith("0199."))
    host.consolidator.run(BOT, "people")
    left = {entry.id for entry in host.reader.page(BOT, "people").items}
    assert newer.id in left
    assert old.id not in left


def test_a_dream_says_whom_each_statement_is_about(make_host: Callable[..., Host]) -> None:
    host = filled(make_host)
    report = host.dreams.run(BOT, DreamPlan("people"))
    assert report is not None
    (dream,) = host.reader.page(BOT, "people").items
    lines = {part for line in dream.content.split("\n") for part in line.split("; ")}
    assert {"ada: The phone number is 555 0134", "bob: The phone number is 555 0199"} <= lines
    assert "ada: Allergic to peanuts" in lines
    assert "Ada and Carol share an office" in dream.content  # names its subject: no label
    first = host.search.search(BOT, "people", "what is the phone number of ada").hits[0]
    assert "0134" in dream.content[first.passage.start : first.passage.end]


def test_one_subject_throughout_needs_no_label(make_host: Callable[..., Host]) -> None:
    host = make_host(tokens=TokenCounter("o200k_base"))
    for subject, text in NOTES:
        if subject == "ada":
            host.entries.put(BOT, "one", [Draft(content=text, subject="ada")])
    assert host.dreams.run(BOT, DreamPlan("one")) is not None
    (dream,) = host.reader.page(BOT, "one").items
    assert dream.subject == "ada"
    assert "ada:" not in dream.content


def test_search_puts_no_newer_fact_about_someone_else_first(make_host: Callable[..., Host]) -> None:
    host = filled(make_host)
    first = host.search.search(BOT, "people", "ada phone number").hits[0]
    assert (first.entry.content, first.older) == ("The phone number is 555 0134.", None)
    assert (
        "ada> The phone number is 555 0134." in host.search.context(BOT, "people", "ada phone number", budget=300).text
    )
