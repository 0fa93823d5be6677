"""Times named in a question."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from sys import getrefcount
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.core.clock import to_iso
from reverie.core.errors import Invalid
from reverie.search.dates import mentions, periods, when


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
        "Is there life on Mars?",
        "What does Marco like?",
        "Who is Jan's doctor?",
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


LATER = ms("2026-11-17T04:00")  # a Tuesday; five in the morning in Berlin


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("yesterday", "2026-11-15T23:00", "2026-11-16T23:00"),
        ("seit gestern", "2026-11-15T23:00", "2026-11-16T23:00"),
        ("vorgestern", "2026-11-14T23:00", "2026-11-15T23:00"),
        ("last week", "2026-11-08T23:00", "2026-11-15T23:00"),
        ("la semana pasada", "2026-11-08T23:00", "2026-11-15T23:00"),
        ("先週から", "2026-11-08T23:00", "2026-11-15T23:00"),
        ("أمس", "2026-11-15T23:00", "2026-11-16T23:00"),
        ("3d", "2026-11-14T04:00", "2026-11-14T04:00"),
        ("P1W", "2026-11-10T04:00", "2026-11-10T04:00"),
        ("2026-11-01", "2026-10-31T23:00", "2026-11-01T23:00"),
        ("2026-11", "2026-10-31T23:00", "2026-11-30T23:00"),
        ("2025", "2024-12-31T23:00", "2025-12-31T23:00"),
        ("march", "2026-02-28T23:00", "2026-03-31T22:00"),
        ("8 May", "2026-05-07T22:00", "2026-05-08T22:00"),
        ("24 December", "2025-12-23T23:00", "2025-12-24T23:00"),
        ("le 3 mai 2024", "2024-05-02T22:00", "2024-05-03T22:00"),
        ("1.11.2026", "2026-10-31T23:00", "2026-11-01T23:00"),
        ("3 days ago", "2026-11-13T23:00", "2026-11-14T23:00"),
        ("vor zwei Wochen", "2026-11-02T23:00", "2026-11-03T23:00"),
        ("1 month ago", "2026-10-16T22:00", "2026-10-17T22:00"),
        ("2 hours ago", "2026-11-17T02:00", "2026-11-17T02:00"),
        ("the last 3 days", "2026-11-14T04:00", "2026-11-17T04:00"),
        ("les 3 derniers jours", "2026-11-14T04:00", "2026-11-17T04:00"),
        ("monday", "2026-11-15T23:00", "2026-11-16T23:00"),
        ("last tuesday", "2026-11-09T23:00", "2026-11-10T23:00"),
        ("2026-11-01T09:00:00Z", "2026-11-01T09:00", "2026-11-01T09:00"),
        ("2026-11-01 09:00", "2026-11-01T08:00", "2026-11-01T08:00"),
        ("now", "2026-11-17T04:00", "2026-11-17T04:00"),
    ],
)
def test_when(text, since, until):
    assert to_iso(when(text, LATER, zone="Europe/Berlin"))[:16] == since
    assert to_iso(when(text, LATER, zone="Europe/Berlin", end=True))[:16] == until


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "yesterday maybe",
        "the end of last week",
        "2026-13-40",
        "2026-11-01T25:00:00Z",
        "31 February",
        "5 May and 6 May",
        "999999999w",
        "999 years ago",
        "12/11/2026",
        "1699999999000",
        "3 potatoes ago",
    ],
)
def test_a_text_that_is_no_time_is_refused(text):
    with pytest.raises(Invalid) as refused:
        when(text, LATER, pointer="/since")
    assert refused.value.pointer == "/since"


@settings(deadline=None)
@given(st.text(alphabet="0123456789 -:.TZPDMmarchdaysweekslastago月日", max_size=24))
def test_any_text_is_read_or_refused(text):
    with suppress(Invalid):
        assert when(text, LATER, zone="America/New_York") >= 0


@settings(deadline=None)
@given(st.text(alphabet="0123456789 -,may agoweekslast", max_size=40))
def test_any_text_is_read(query):
    for period in periods(query, NOW):
        period.covers(NOW)


@pytest.mark.parametrize("words", ["this year", "tomorrow", "this month", "next week", "next month"])
def test_a_text_from_the_last_day_of_the_calendar_is_read(words):
    (period,) = periods("in May 2023", NOW)
    assert not mentions(f"see you {words}", ms("9999-12-31T12:00"), period)


@pytest.mark.parametrize(
    "words", ["last year", "yesterday", "last week", "200 years ago", "past 3 days", "last monday"]
)
def test_a_text_from_the_first_day_of_the_calendar_is_read(words):
    (period,) = periods("in May 2023", NOW)
    assert not mentions(f"we met {words}", ms("0001-01-01T12:00"), period)


def test_a_day_that_begins_before_the_calendar_elsewhere_is_shown():
    (period,) = periods("0001-01-01", NOW, zone="Asia/Tokyo")
    assert period.shown() == "1-01-01"


def test_a_long_text_of_words_that_may_be_months_is_read_at_once():
    began = process_time()
    assert periods("may " * 16_000, NOW) == ()
    assert process_time() - began < 5  # 13 s when every "may" looked through the whole text before it


@pytest.mark.parametrize("query", ["in may", "in, may", "as of:  march", "since  mar"])
def test_an_ambiguous_name_after_a_preposition_is_a_month(query):
    assert periods(query, NOW)


@pytest.mark.parametrize("query", ["inmay", "in_ may", "begin may", "in the may", "may"])
def test_an_ambiguous_name_after_another_word_is_no_month(query):
    assert not periods(query, NOW)


def test_no_text_is_kept_after_it_was_read_for_dates():
    text = " ".join(["met", "her", "on", "8", "May", str(NOW)])
    (period,) = periods("8 May", NOW)
    before = getrefcount(text)
    assert mentions(text, NOW, period)
    assert mentions(text, NOW, period)
    assert getrefcount(text) == before
