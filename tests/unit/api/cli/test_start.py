"""A command starts with what it uses: what a server needs is not imported to store one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = ("starlette", "uvicorn", "mcp", "prometheus_client", "opentelemetry", "asyncio")
DRIVERS = ("psycopg", "procrastinate", "cryptography", "httpx", "httpx2", "openai", "anthropic", "splintr")
OWN = (
    "reverie.http",
    "reverie.jobs",
    "reverie.window",
    "reverie.distil",
    "reverie.protocols.akashik",
    "reverie.protocols.openwop.runs",
)
SLOW = (
    "typer",
    "click",
    "rich",
    "pydantic",
    "email",
    "importlib.metadata",
    "reverie.search.dates",
    "reverie.search.context",
)
NEVER = (*SERVER, *DRIVERS, *OWN)
TEXT = ("reverie.redact.rules", "reverie.providers.static")
STORE = ("numpy", "apsw", "msgspec")

CHILD = """
import json, sys
from reverie.api.cli.main import run
assert run(sys.argv[1:]) == 0
print("\\n" + json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(
    ("command", "unwanted"),
    [
        ("--help", (*NEVER, *TEXT, *STORE)),
        ("--version", (*NEVER, *TEXT, "numpy")),
        ("put something", (*NEVER, "numpy")),
        ("list", (*NEVER, *TEXT, "numpy")),
        ("search something", (*NEVER, "reverie.redact.rules")),
    ],
)
def test_a_light_command_imports_nothing_heavy(command: str, unwanted: tuple[str, ...], tmp_path: Path) -> None:
    words = command.split()
    if words[0] in ("list", "search"):
        child("put", "something", "--data", str(tmp_path))
    loaded = child(*words, *([] if words[0].startswith("-") else ["--data", str(tmp_path)]))
    assert not [name for name in loaded if _within(name, unwanted)]


@pytest.mark.parametrize(
    ("command", "most", "unwanted"),
    [("--help", 110, SLOW), ("put something", 340, SLOW), ("list", 290, SLOW[:6])],
)
def test_a_command_imports_few_modules(command: str, most: int, unwanted: tuple[str, ...], tmp_path: Path) -> None:
    """Most of the time of a short command is its imports: their number is what a test can hold on any machine."""
    words = command.split()
    if words[0] == "list":
        child("put", "something", "--data", str(tmp_path))
    loaded = child(*words, *([] if words[0].startswith("-") else ["--data", str(tmp_path)]))
    assert not [name for name in loaded if _within(name, unwanted)]
    assert len(loaded) <= most


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def child(*arguments: str) -> list[str]:
    """The modules that a process has imported when its command is done."""
    done = subprocess.run([sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, check=True)
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loaded
