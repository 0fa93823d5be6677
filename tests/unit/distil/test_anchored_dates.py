from __future__ import annotations

from datetime import date

import pytest

from reverie.distil.dates import anchor, day_of, spell

DAY = date(2023, 5, 8)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("I went yesterday.", "I went on 7 May."),
        ("Tomorrow's plan", "Tomorrow's plan"),
        ("We met last night", "We met on the night of 7 May"),
        ("due tomorrow morning", "due on the morning of 9 May"),
        ("It broke last week", "It broke the week before"),
        ("Last Friday we shipped", "the Friday before we shipped"),
        ("joined last Tues", "joined the Tuesday before"),
        ("since last month", "since April 2023"),
        ("next month we move", "in June 2023 we move"),
        ("bought last year", "bought in 2022"),
        ("two days ago", "on 6 May"),
        ("2 weeks ago", "2 weeks before"),
        ("it feels like yesterday", "it feels like yesterday"),
        ("over the last year", "over the last year"),
        ("my last year of school", "my last year of school"),
        ("a blast from the past week", "a blast from the past week"),
        ("last summer", "last summer"),
    ],
)
def test_relative_dates_are_anchored_to_the_day_of_writing(said: str, meant: str) -> None:
    assert anchor(said, DAY) == meant


def test_the_year_is_written_where_it_changes() -> None:
    assert anchor("seen yesterday", date(2024, 1, 1)) == "seen on 31 December 2023"
    assert anchor("last month", date(2024, 1, 1)) == "in December 2023"


def test_any_time_has_a_day() -> None:
    assert spell(day_of(0)) == "1 January 1970"
    assert day_of(-1) == date(1969, 12, 31)
    for far in (10**18, -(10**18)):
        assert anchor("yesterday, last year", day_of(far))
