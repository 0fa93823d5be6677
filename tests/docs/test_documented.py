"""Nothing a user can meet is undocumented: settings, policies, events, errors, commands, metrics; and no link is dead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from reverie.api.cli.completion import lines
from reverie.core import errors
from reverie.core.event import EVENT_TYPES
from reverie.core.policy import TenantPolicy
from reverie.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_setting_and_policy() -> None:
    text = page("settings.md")
    assert not [item.name for item in fields(Settings) if f"`{item.metadata['variable']}`" not in text]
    assert not [name for name in TenantPolicy().document() if f"`{name}`" not in text]


def test_every_event() -> None:
    text = page("events.md")
    assert not [name for name in EVENT_TYPES if f"`{name}`" not in text]


def test_every_error_code() -> None:
    text = page("errors.md")
    known = [value.code for value in vars(errors).values() if isinstance(value, type) and hasattr(value, "code")]
    assert len(known) > 10
    assert not [code for code in known if f"`{code}`" not in text]


@pytest.mark.parametrize(
    ("path", "command"), [(f"reverie {first} {second}".strip(), command) for first, second, command in lines()]
)
def test_every_command_is_documented_with_an_example_and_answers_in_json(path: str, command: Any) -> None:
    assert f"### `{path}`" in page("cli.md")
    assert re.search(rf"^ +.*{re.escape(path.split()[0])} .*{re.escape(path.split()[-1])}", command.help, re.MULTILINE)
    assert "Example" in command.help
    running = ("reverie serve", "reverie worker", "reverie mcp", "reverie proxy")  # until they are told to stop
    if path not in running:
        assert any("--json" in option.on for option in command.options), f"{path} has no --json"


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_link_is_dead(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_plugin_that_forbids_skips_forbids_them(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\ndef test_it():\n    pytest.skip('no reason')\n")
    arguments = [sys.executable, "-m", "pytest", "-c", "/dev/null", "-p", "tests.noskip", str(tmp_path)]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to load
    assert subprocess.run(arguments, cwd=ROOT, env=alone, capture_output=True).returncode == 1
    del arguments[5:7]
    assert subprocess.run(arguments, cwd=ROOT, env=alone, capture_output=True).returncode == 0
