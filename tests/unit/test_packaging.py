"""What installing Reverie brings: few packages, none that keep other frameworks out, and metadata an index accepts."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reverie.core.errors import MissingExtra
from reverie.core.extras import require

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST = 48
EXTRAS = {
    "mcp", "postgres", "openai", "anthropic", "agents", "langgraph", "adk", "agent-framework", "pydantic-ai",
    "claude-agent", "llama-index", "crewai", "strands", "otel", "import", "all",
}  # fmt: skip


def locked(name: str) -> dict[str, str]:
    """Package names with versions, from a lock file."""
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    return dict(found.groups() for line in lines if (found := re.match(r"([\w.-]+)==([\w.]+)", line)))


def test_the_core_is_at_most_48_packages_without_the_mcp_sdk() -> None:
    core = locked("core.txt")
    assert len(core) <= MOST, sorted(core)
    assert not {"mcp", "mcp-types", "openai", "anthropic", "langgraph"} & set(core)


def test_what_make_run_installs_has_the_mcp_sdk() -> None:
    assert {"mcp", *locked("core.txt")} <= set(locked("run.txt"))


def test_the_locks_hold_what_the_project_asks_for() -> None:
    run, dev = locked("run.txt"), locked("dev.txt")
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["mcp"]]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(run[wanted.name.lower()]), line
        assert wanted.specifier.contains(dev[wanted.name.lower()]), line


def test_every_extra_has_a_lower_bound() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(extras) >= EXTRAS
    for name, lines in extras.items():
        for line in lines:
            wanted = Requirement(line)
            assert wanted.name == "reverie" or str(wanted.specifier).startswith(">="), (name, line)
            assert "<" not in str(wanted.specifier), (name, line)


def test_the_long_description_has_absolute_links_only() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from hatch_readme import absolute
    finally:
        sys.path.pop(0)
    text = absolute((ROOT / "README.md").read_text(encoding="utf-8"), PROJECT["urls"]["Source"])
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_importing_reverie_imports_no_optional_package() -> None:
    script = (
        "import sys, reverie, reverie.app, reverie.api.cli.main\n"
        "print([name for name in ('mcp', 'openai', 'anthropic', 'langgraph', 'yaml', 'psycopg') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    assert PathFinder.find_spec("no_such_package") is None
    with pytest.raises(MissingExtra, match=r"pip install 'reverie\[mcp\]'"):
        require("no_such_package", extra="mcp", purpose="MCP")
