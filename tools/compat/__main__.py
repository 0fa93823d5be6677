"""Resolve every extra with the newest framework, and run the frameworks' own tests against the adapters.

    python -m tools.compat SOURCES [--only NAME] [--write]

SOURCES holds checkouts of the frameworks, each in a folder of its name. An environment per framework is made in
`.venvs`. With --write the table in docs/integrations.md is written; with --only its other rows stay. Exits 1 when an
extra resolves to an older framework than there is, or a test fails that `suites.py` does not name.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from tools.compat.suites import SUITES, Suite

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "integrations.md"
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
    failed: list[str] = field(default_factory=list)
    commit: str = ""


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
    uv("pip", "install", "-q", "--upgrade", "--python", str(python), "-e", f".[{suite.extra}]", "pytest", *suite.needs)
    code = f"from importlib.metadata import version; print(version({suite.package!r}))"
    return python, subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()


def run(
    python: Path, tests: Path, *, folder: Path, plugin: str, without: tuple[str, ...] = ()
) -> list[tuple[str, bool]]:
    """(name, passed) of every test of a file."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", str(tests)]
        command += ["-p", plugin, "-o", "asyncio_mode=auto"] if plugin else ["-c", os.devnull, "--rootdir", scratch]
        command += ["-k", " and ".join(f"not {name}" for name in without)] if without else []
        env = {**os.environ, "PYTHONPATH": str(ROOT), "MEM0_TELEMETRY": "false"}
        subprocess.run(command, cwd=folder, env=env, capture_output=True)
        if not report.exists():
            return [(tests.name, False)]
        cases = ElementTree.parse(report).iter("testcase")
        return [(str(case.get("name")), not any(child.tag in ("failure", "error") for child in case)) for case in cases]


def judge(suite: Suite, sources: Path) -> Outcome:
    """Run everything of a suite."""
    python, version = environment(suite)
    outcome = Outcome(suite, version)
    if version != (wanted := newest(suite.package)):
        outcome.failed.append(f"{suite.extra} resolves to {suite.package} {version}, the newest is {wanted}")
    for name in suite.own:
        if name.startswith("examples/"):
            done = subprocess.run([str(python), str(ROOT / name)], capture_output=True, cwd=ROOT)
            results = [(name, done.returncode == 0)]
        else:
            results = run(python, ROOT / name, folder=ROOT, plugin="")
        outcome.own += sum(passed for _, passed in results)
        outcome.failed += [case for case, passed in results if not passed]
    for name in suite.theirs:
        tests = sources / name
        if not tests.exists():
            continue
        top = sources / name.partition("/")[0]
        found = subprocess.run(["git", "-C", str(top), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        outcome.commit = found.stdout.strip()
        folder = tests.parent.parent
        while (folder / "__init__.py").exists():  # else their packages hide those that are installed
            folder = folder.parent
        for case, passed in run(python, tests, folder=folder, plugin=suite.plugin, without=suite.too_long):
            outcome.total += 1
            outcome.passed += passed
            reason = suite.left_out.get(case.partition("[")[0])
            if not passed and reason:
                outcome.left_out[reason] += 1
            elif not passed:
                outcome.failed.append(f"{name}::{case}")
    return outcome


def table(outcomes: list[Outcome], day: str, written: str = "") -> str:
    """The table of docs/integrations.md. Frameworks that were not run keep what is `written` of them."""
    lines = ["| framework | version | outside tests | ours | date | source |", "|---|---|---|---|---|---|"]
    ran = {one.suite.name: one for one in outcomes}
    for suite in SUITES:
        one = ran.get(suite.name)
        if one is None:
            lines += [line for line in written.splitlines() if line.startswith(f"| {suite.name} |")]
            continue
        outside = f"{one.passed} of {one.total}" if one.total else "-"
        own = f"{one.own} passed" if suite.own else "-"
        lines.append(f"| {' | '.join((suite.name, one.version, outside, own, day, one.commit or 'the package'))} |")
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
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    outcomes = []
    for suite in SUITES:
        if given.only in ("", suite.extra):
            outcomes.append(judge(suite, given.sources.resolve()))
            one = outcomes[-1]
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
