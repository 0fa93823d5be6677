"""JUnit reports, as pytest and vitest write them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree


def results(report: Path) -> list[tuple[str, bool]]:
    """(name, passed) of every test of a report; a skipped one has not passed."""
    if not report.exists():
        return []
    cases = ElementTree.parse(report).iter("testcase")
    bad = ("failure", "error", "skipped")
    return [(str(case.get("name")), not any(child.tag in bad for child in case)) for case in cases]
