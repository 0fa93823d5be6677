"""Which statements are taken for contradictions, and which are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.distil.contradictions import contradiction

CONTRADICT = [
    ("The wheel turns 7 times a minute.", "The wheel turns 9 times a minute."),
    ("The API rate limit is 100 requests per minute.", "The API rate limit is 60 requests per minute."),
    ("The European SaaS market is growing at 8% annually.", "The European SaaS market is growing at 12% annually."),
    ("The service supports OAuth", "The service does not support OAuth"),
    ("We should use Redis", "We should not use Redis"),
    ("The deployment is enabled", "The deployment is disabled"),
    ("The deployment is enabled in production.", "The deployment is not enabled in production."),
    ("The build passed", "The build failed"),
    ("The primary database is PostgreSQL", "The primary database is MySQL"),
    ("The owner is Alice", "The owner is Bob"),
    ("The deadline is Friday", "The deadline is Monday"),
    ("The launch is on March 3", "The launch is on March 5"),
    ("Order 17 was shipped to warehouse 3", "Order 17 was shipped to warehouse 4"),
    ("The market size is $5.2B in 2025", "The market size is $8.1B in 2025"),
    ("Checkout latency is 120 ms", "Checkout latency is 450 ms"),
    ("The payment gateway is online.", "The payment gateway is offline."),
    ("Users can export data as CSV", "Users cannot export data as CSV"),
    ("Our budget is 50000 euros.", "Our budget is 80000 euros."),
    ("The test suite takes 12 minutes to run", "The test suite takes 45 minutes to run"),
    ("Water boils at 100 degrees Celsius", "Water boils at 90 degrees Celsius"),
    ("The sky is blue", "The sky is not blue"),
    ("The server is running on port 8080", "The server is running on port 9090"),
    ("Revenue grew 20% in Q3", "Revenue grew 5% in Q3"),
    ("The feature flag new_checkout is on", "The feature flag new_checkout is off"),
    ("Server db-7 is healthy", "Server db-7 is degraded"),
    ("The timeout is 30 seconds", "The timeout is 60 seconds"),
    ("Market growth is 5 percent per year", "Market growth is 9 percent per year"),
    ("The retry limit equals 3", "The retry limit equals 5"),
    ("The migration has finished", "The migration has not finished"),
]

AGREE = [
    ("Orders 17 and 18 are late", "Orders 19 and 20 are late"),
    ("Buoy 3 of agent-1 drifted past pier 4", "Buoy 5 of agent-1 drifted past pier 6"),
    ("The API rate limit is 100 requests per minute.", "The API rate limit is 100 requests a minute."),
    ("The staging database has 20 tables", "The production database has 35 tables"),
    ("Order 17 was shipped", "Order 18 was shipped"),
    ("Order 17 was shipped to warehouse 3", "Order 18 was shipped to warehouse 4"),
    ("Unit 7 content", "Unit 8 content"),
    ("Finding 3: service 3 handles 30 requests", "Finding 4: service 4 handles 40 requests"),
    ("Measurement 3: latency was 3 ms", "Measurement 4: latency was 4 ms"),
    ("revenue was 5M in 2024", "revenue was 7M in 2025"),
    ("Sprint velocity was 20 points in March", "Sprint velocity was 25 points in April"),
    ("The team does not use Redis for sessions", "The team uses Redis for caching"),
    ("The cache is not used in staging", "The cache is used"),
    ("The sky is blue", "Bananas are yellow"),
    ("The build passed", "The tests succeeded"),
    ("The budget is 1,000 euros", "The budget is 1000 euros"),
    ("The market is $5.2B", "The market is 5.2 billion dollars"),
    ("The door is not open", "The door is closed"),
    ("We need at least 100 seats", "We need at least 200 seats"),
    ("Alice likes tea", "Bob likes coffee"),
    ("fact 1", "fact 2"),
    ("observation number 3 about the cache", "observation number 4 about the cache"),
    ("The timeout is 30 seconds", "The timeout is thirty seconds"),
    ("Is the build green?", "The build is red"),
    ("The API uses REST for reads", "The API uses GraphQL for writes"),
    ("note 5: customer 5 prefers email", "note 6: customer 6 does not prefer email"),
    ("Backup finished at 10:00", "Backup finished at 11:00"),
    ("The European market is growing", "The European market has 27 countries"),
    ("Alpha unit 12 for task t-1", "Alpha unit 13 for task t-1"),
    ("RECORD 3 from agent-1", "RECORD 4 from agent-1"),
    ("Concurrent finding 3 by worker 1", "Concurrent finding 3 by worker 2"),
]


@pytest.mark.parametrize(("one", "other"), CONTRADICT)
def test_contradicting_statements_are_found_from_both_sides(one: str, other: str) -> None:
    assert contradiction(one, other) is not None
    assert contradiction(other, one) is not None


@pytest.mark.parametrize(("one", "other"), AGREE)
def test_agreeing_and_unrelated_statements_are_not_flagged(one: str, other: str) -> None:
    assert contradiction(one, other) is None
    assert contradiction(other, one) is None


@given(st.text(max_size=200))
def test_no_text_contradicts_itself(text: str) -> None:
    assert contradiction(text, text) is None


@given(st.text(max_size=120), st.text(max_size=120))
def test_the_order_of_two_texts_does_not_matter(one: str, other: str) -> None:
    assert (contradiction(one, other) is None) == (contradiction(other, one) is None)


def test_a_contradiction_is_found_among_other_sentences() -> None:
    one = "We met on site. The pump runs at 40 bar. Everyone was content."
    other = "Nothing to add. The pump runs at 55 bar."
    found = contradiction(one, other)
    assert found is not None
    assert found.kind == "number"
    assert (found.first, found.second) == ("The pump runs at 40 bar.", "The pump runs at 55 bar.")


@pytest.mark.parametrize("denied", ["does not open at 9.", "doesn't open at 9."])
def test_a_verb_that_is_also_a_state_is_denied_like_any_other(denied: str) -> None:
    found = contradiction("The library opens at 9.", f"The library {denied}")
    assert found is not None
    assert found.kind == "negation"
