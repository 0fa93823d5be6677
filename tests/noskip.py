"""A pytest plugin for continuous integration: a run in which any test was skipped has failed.

`pytest -p tests.noskip`
"""

from __future__ import annotations

from typing import Any

_skipped: list[str] = []


def pytest_runtest_logreport(report: Any) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report: Any) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: Any) -> None:
    if _skipped and not hasattr(session.config, "workerinput"):
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name in _skipped:
        terminalreporter.write_line(f"SKIPPED, which counts as failed here: {name}", red=True)
