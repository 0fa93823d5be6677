"""The lines of a dream are as old as what they say: their day is in the heading above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.search.passages import passages, said_at

DAY_MS = 86_400_000
TEXT = "[8 May 2023]\nAda moved.\n[a list]\nBob came.\n[June 2023]\nCarol left.\n[30 February 2023]\nDan stayed."


def test_headings_are_no_passages() -> None:
    found = [TEXT[part.start : part.end].strip() for part in passages(TEXT, lines=True)]
    assert found == ["Ada moved.", "[a list]", "Bob came.", "Carol left.", "Dan stayed."]


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("Ada moved.", 1_683_547_200_000),  # 8 May 2023, noon
        ("Bob came.", 1_683_547_200_000),
        ("Carol left.", 1_685_620_800_000),  # 1 June 2023, noon
        ("Dan stayed.", 7),  # no such day
        ("[8 May 2023]", 7),  # nothing above it
    ],
)
def test_a_line_was_said_on_the_day_of_its_heading(line: str, at: int) -> None:
    assert said_at(TEXT, TEXT.index(line), 7) == at


def test_an_old_line_of_a_new_dream_does_not_overtake_a_newer_note(make_host: Callable[..., Host], clock: Any) -> None:
    bot = Actor(tenant="acme", id="local:bot")
    host = make_host(tokens=TokenCounter("o200k_base"))
    old = [
        "The office is at 5 Bonn Street.",
        "Thanks everyone, that was a lovely day with you all!",
        "Lunch is served at noon in the canteen.",
    ]
    host.entries.put(bot, "notes", [Draft(content=text) for text in old])
    clock.advance(10 * DAY_MS)
    (newer,) = host.entries.put(bot, "notes", [Draft(content="The office is at 9 Koeln Street.", pinned=True)])
    clock.advance(10 * DAY_MS)
    assert host.dreams.run(bot, DreamPlan("notes")) is not None
    first, second = host.search.search(bot, "notes", "where is the office").hits[:2]
    assert (first.entry.id, first.older) == (newer.id, None)
    assert (second.text, second.older) == ("The office is at 5 Bonn Street", newer.id)
    found = host.search.search(bot, "notes", "what did I note about the office three weeks ago").hits
    assert not [hit for hit in found if hit.text.startswith("[")]
