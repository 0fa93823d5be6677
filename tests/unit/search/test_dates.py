"""Times named in a question."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.search.dates import periods


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOW = ms("2024-03-15T10:00")  # a Friday


@pytest.mark.parametrize(
    ("query", "inside", "outside"),
    [
        ("on 8 May 2023", "2023-05-08T13:00", "2023-05-10T13:00"),
        ("on May 8th, 2023", "2023-05-08T13:00", "2022-05-08T13:00"),
        ("on the 8th of May", "2021-05-08T13:00", "2023-05-20T13:00"),
        ("in May 2023", "2023-05-30T13:00", "2023-07-01T13:00"),
        ("in may", "2020-05-02T13:00", "2023-07-01T13:00"),
        ("in June", "2020-06-02T13:00", "2023-07-02T13:00"),
        ("Sept 2022", "2022-09-10T00:00", "2022-11-01T00:00"),
        ("during 2022", "2022-11-01T00:00", "2023-11-01T00:00"),
        ("what was deployed on 2023-05-08?", "2023-05-08T13:00", "2023-05-12T13:00"),
        ("in 2023-05", "2023-05-28T13:00", "2023-08-12T13:00"),
        ("what did I do yesterday?", "2024-03-14T12:00", "2024-03-11T12:00"),
        ("what happened today", "2024-03-15T08:00", "2024-03-13T08:00"),
        ("last week", "2024-03-06T12:00", "2024-02-20T12:00"),
        ("this week", "2024-03-12T12:00", "2024-03-05T12:00"),
        ("last month", "2024-02-10T12:00", "2024-01-10T12:00"),
        ("last year", "2023-07-01T12:00", "2022-07-01T12:00"),
        ("three days ago", "2024-03-12T12:00", "2024-03-08T12:00"),
        ("2 weeks ago", "2024-03-01T12:00", "2024-02-10T12:00"),
    ],
)
def test_periods(query, inside, outside):
    found = periods(query, NOW)
    assert any(period.covers(ms(inside)) for period in found)
    assert not any(period.covers(ms(outside)) for period in found)


@pytest.mark.parametrize(
    "query",
    [
        "you may go",
        "they march on",
        "May I ask who called?",
        "",
        "31 February",
        "on 2023-13-45",
        "room 1234",
        "9 decks",
    ],
)
def test_no_period(query):
    assert periods(query, NOW) == ()


def test_a_day_reaches_into_other_time_zones():
    (day,) = periods("8 May 2023", NOW)
    assert day.covers(ms("2023-05-07T20:00"))
    assert day.covers(ms("2023-05-09T05:00"))


def test_extreme_times_are_survived():
    for query in ("200 years ago", "999 days ago", "9999-12-31", "in 2099", "in December 9999"):
        periods(query, NOW)
    assert not periods("in May", NOW)[0].covers(10**18)


@settings(deadline=None)
@given(st.text(alphabet="0123456789 -,may agoweekslast", max_size=40))
def test_any_text_is_read(query):
    for period in periods(query, NOW):
        period.covers(NOW)
