"""JUnit reports, as pytest and vitest write them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

LEFT_OUT = "left out"
"""The property of a test that a plugin has left out; its value is the reason."""


class Case(NamedTuple):
    """A test that was run."""

    name: str
    passed: bool
    left_out: str = ""
    """Why its plugin has left it out."""


def results(report: Path) -> list[Case]:
    """Every test of a report; a skipped one has not passed."""
    if not report.exists():
        return []
    bad = ("failure", "error", "skipped")
    return [
        Case(
            str(case.get("name")),
            not any(child.tag in bad for child in case),
            next((str(each.get("value")) for each in case.iter("property") if each.get("name") == LEFT_OUT), ""),
        )
        for case in ElementTree.parse(report).iter("testcase")
    ]
