"""Resolve every extra with the newest framework, and run the frameworks' own tests against the adapters.

    python -m tools.compat SOURCES [--only NAME] [--jobs N] [--write]

SOURCES holds what `suites.py` names: unpacked source distributions (`NAME-VERSION`) and git checkouts; a folder without
git names its commit in a file COMMIT. An environment per framework is made in `.venvs`. With --write the table in
docs/integrations.md is written; with --only its other rows stay. Exits 1 when an extra resolves to an older framework
than there is, when a test fails that `suites.py` does not name, or when one that it names passes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tools.compat.reference import reference
from tools.compat.report import Case, results
from tools.compat.suites import SUITES, Suite

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "integrations.md"
NEEDS = ("pytest", "pytest-timeout")
BEGIN, END = "<!-- compat: begin (written by make compat) -->", "<!-- compat: end -->"


@dataclass
class Outcome:
    """How a suite went."""

    suite: Suite
    version: str
    passed: int = 0
    total: int = 0
    own: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    named: set[str] = field(default_factory=set)
    """Tests that `left_out` names and that failed."""
    failed: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def uv(*arguments: str, text: str | None = None) -> str:
    """The output of uv."""
    command = [str(Path(sys.executable).with_name("uv")), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"uv {arguments[0]}: {done.stderr.strip()[-600:]}")
    return done.stdout


def newest(package: str) -> str:
    """The newest release that this Python can install."""
    found = uv("pip", "compile", "-q", "--no-header", "--no-annotate", "--no-deps", "-", text=package)
    return found.strip().partition("==")[2]


def environment(suite: Suite) -> tuple[Path, str]:
    """The Python of a suite's environment, and the framework's version in it."""
    folder = ROOT / ".venvs" / f"compat-{suite.extra}"
    python = folder / "bin" / "python"
    if not python.exists():
        uv("venv", "-q", str(folder), "--python", sys.executable)
    uv("pip", "install", "-q", "--upgrade", "--python", str(python), "-e", f".[{suite.extra}]", *NEEDS, *suite.needs)
    code = f"from importlib.metadata import version; print(version({suite.package!r}))"
    return python, subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()


def run(python: Path, tests: Path, *, folder: Path, suite: Suite | None = None) -> list[Case]:
    """Every test of a file; with a suite, one of theirs."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", str(tests)]
        if suite is None:
            command += ["-c", os.devnull, "--rootdir", scratch]
        else:
            command += ["-p", suite.plugin, "--timeout", "600", *suite.options]
            command += ["-k", suite.select] if suite.select else []
        env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "MEM0_TELEMETRY": "false"}
        subprocess.run(command, cwd=folder, env=env, capture_output=True)
        return results(report) or [Case(tests.name, False)]


def judge(suite: Suite, sources: Path) -> Outcome:
    """Run everything of a suite."""
    python, version = environment(suite)
    outcome = Outcome(suite, version)
    if version != (wanted := newest(suite.package)):
        outcome.failed.append(f"{suite.extra} resolves to {suite.package} {version}, the newest is {wanted}")
    for name in suite.own:
        if name.startswith("examples/"):
            done = subprocess.run([str(python), str(ROOT / name)], capture_output=True, cwd=ROOT)
            ran = [Case(name, done.returncode == 0)]
        else:
            ran = run(python, ROOT / name, folder=ROOT)
        outcome.own += sum(case.passed for case in ran)
        outcome.failed += [case.name for case in ran if not case.passed]
    for pattern in suite.theirs:
        tests = next(iter(sorted(sources.glob(pattern))), None)
        if tests is not None:
            theirs(suite, python, sources, tests, outcome)
    if outcome.total:
        for name in sorted(set(suite.left_out) - outcome.named):
            outcome.failed.append(f"{name} is named in suites.py and did not fail")
    return outcome


def theirs(suite: Suite, python: Path, sources: Path, tests: Path, outcome: Outcome) -> None:
    """Run one file of theirs."""
    top = sources / tests.relative_to(sources).parts[0]
    if (found := origin(top)) not in outcome.sources:
        outcome.sources.append(found)
    folder = tests.parent.parent
    while (folder / "__init__.py").exists():  # else their packages hide those that are installed
        folder = folder.parent
    cases = reference(tests) if tests.suffix == ".ts" else run(python, tests, folder=folder, suite=suite)
    for case in cases:
        name = case.name.partition("[")[0]
        outcome.total += 1
        outcome.passed += case.passed
        if case.passed:
            continue
        if case.left_out:
            outcome.left_out[case.left_out] += 1
        elif name in suite.left_out:
            outcome.left_out[suite.left_out[name]] += 1
            outcome.named.add(name)
        else:
            outcome.failed.append(f"{tests.relative_to(sources)}::{case.name}")


def origin(top: Path) -> str:
    """The release or commit that a folder is of."""
    if (top / "PKG-INFO").exists():
        return top.name
    if (top / "COMMIT").exists():
        return f"{top.name} {(top / 'COMMIT').read_text().strip()}"
    found = subprocess.run(["git", "-C", str(top), "log", "-1", "--format=%h"], capture_output=True, text=True)
    return f"{top.name} {found.stdout.strip()}"


def table(outcomes: list[Outcome], day: str, written: str = "") -> str:
    """The table of docs/integrations.md. Frameworks that were not run keep what is `written` of them."""
    lines = ["| framework | version | outside tests | ours | date | source of the tests |", "|---|---|---|---|---|---|"]
    ran = {one.suite.name: one for one in outcomes}
    for suite in SUITES:
        one = ran.get(suite.name)
        if one is None:
            lines += [line for line in written.splitlines() if line.startswith(f"| {suite.name} |")]
            continue
        outside = f"{one.passed} of {one.total}" if one.total else "-"
        own = f"{one.own} passed" if suite.own else "-"
        lines.append(f"| {' | '.join((suite.name, one.version, outside, own, day, ', '.join(one.sources) or '-'))} |")
    for suite in SUITES:
        one = ran.get(suite.name)
        if one is None:
            kept = re.search(rf"\n(Why \d+ of {re.escape(suite.name)}'s .*?)(?=\n\nWhy |\Z)", written, re.DOTALL)
            lines += ["", kept[1].strip()] if kept else []
        elif one.left_out:
            lines += ["", f"Why {sum(one.left_out.values())} of {suite.name}'s tests do not apply:", ""]
            lines += [f"- {count}: {reason}" for reason, count in one.left_out.most_common()]
    return "\n".join(lines)


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="make compat", description=__doc__)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--only", choices=[suite.extra for suite in SUITES], help="the extra of one framework")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    chosen = [suite for suite in SUITES if given.only in (None, suite.extra)]
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(judge, suite, given.sources.resolve()) for suite in chosen]):
            outcomes.append(one := done.result())
            print(f"{one.suite.name} {one.version}: {one.passed} of {one.total} outside, {one.own} of ours", flush=True)
            for failure in one.failed:
                print(f"  FAILED {failure}", flush=True)
    if given.write:
        text = DOCS.read_text()
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        made = table(outcomes, datetime.now(UTC).date().isoformat(), text.split(BEGIN)[1].split(END)[0])
        DOCS.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}")
    return 1 if any(one.failed for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
