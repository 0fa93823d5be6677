from __future__ import annotations

import re

import pytest

from reverie.distil import must_keep as mustkeep
from reverie.distil.gates import GateReport, verify
from reverie.distil.source import Source, Statement

START = 1_683_504_000_000  # 8 May 2023

SOURCES = (
    Source("a", "I moved to Lisbon yesterday with Ana. The rent is 1,200 euros.", START, speaker="Ben"),
    Source("b", "We must never deploy on Fridays.", START, kind="constraint"),
    Source("c", "The parser does not handle tabs; see https://example.com/tabs and parse_all().", START),
    Source("d", "We decided to keep SQLite. I promised Ana a demo by Friday.", START, speaker="Ben"),
)


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def check(text: str, **overrides: int) -> GateReport:
    given = {"budget": 1000, "input_tokens": 500, **overrides}
    return verify(SOURCES, text, must_keep=mustkeep.find(SOURCES), count=count, **given)


GOOD = "[8 May 2023]\nBen: moved to Lisbon on 7 May with Ana; rent 1200 euros\nnever deploy on Fridays"


def test_a_faithful_text_passes_and_lists_what_it_kept() -> None:
    report = check(GOOD)
    assert report.passed
    assert {(k.item.why, k.state) for k in report.must_keep} >= {
        ("kind", "kept"),
        ("decision", "missing"),
        ("commitment", "missing"),
    }
    again = check(GOOD + "\nWe must never deploy on Fridays")
    assert [k.state for k in again.must_keep if k.item.why == "kind"] == ["quoted"]


def test_a_heading_is_no_claim_that_a_source_denies() -> None:
    """A date heading shares its words with a sentence such as `it is not 15 March 2024`."""
    sources = [Source("a", "The visa is not valid before 15 March 2024.", START)]
    text = "[15 March 2024]\nThe visa is not valid before 15 March 2024"
    given = {"must_keep": (), "budget": 1000, "input_tokens": 500, "count": count}
    assert verify(sources, text, **given).flipped == ()


def test_a_statement_is_held_against_its_own_sources() -> None:
    sources = [
        Source("a", "The garage door is locked at night.", START),
        Source("b", "The garage door is not locked at night.", START + 1),
    ]
    text = "The garage door is locked at night"
    mine = [Statement(text, ("b",), "quoted")]
    given = {"must_keep": (), "budget": 1000, "input_tokens": 500, "count": count}
    assert verify(sources, text, **given).flipped == ()
    assert verify(sources, text, statements=mine, **given).flipped == (text,)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("the rent is 1300 euros", "number"),
        ("they moved with Carla", "name"),
        ("see https://example.com/tab", "link"),
        ("write to ana@example.com", "address"),
        ("call parse_some() first", "identifier"),
        ("it happened on 9 May 2023", "number"),
        ("said so (×9)", "number"),
    ],
)
def test_what_no_source_has_is_found(line: str, what: str) -> None:
    assert what in [i.what for i in check(f"{GOOD}\n{line}").invented]


@pytest.mark.parametrize("line", ["The parser does handle tabs", "They never moved to Lisbon with Ana"])
def test_a_flipped_negation_is_found(line: str) -> None:
    assert check(f"{GOOD}\n{line}").flipped
    assert check(f"{GOOD}\n{line}").failures == ("negation",)


def test_a_missing_constraint_fails() -> None:
    report = check("Ben: moved to Lisbon")
    assert [m.text for m in report.missing] == ["We must never deploy on Fridays."]
    assert report.failures == ("must_keep",)


def test_size_and_budget() -> None:
    tokens = count(GOOD)
    assert check(GOOD, input_tokens=tokens).failures == ("smaller",)
    assert check(GOOD, budget=500 + tokens).passed
    assert check(GOOD, budget=499 + tokens).failures == ("budget",)


def test_a_constraint_without_its_negation_is_missing() -> None:
    assert "must_keep" in check("We must deploy on Fridays").failures


def test_an_address_with_a_marker_inside_is_not_new() -> None:
    text = "The replica is postgresql://tide:[REDACTED:database-url-password]@reed-2:5432/tide for now."
    source = Source(id="s", content=text, created_at=0)
    report = verify([source], text, must_keep=(), budget=1000, input_tokens=500, count=count)
    assert report.invented == ()
