"""Pages that name source files name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "reverie"
FILE = re.compile(r"(?<![\w/.])(?:src/reverie/)?((?:[a-z_]+/)*[a-z_]+\.(?:py|sql))\b")
FOLDER = re.compile(r"`((?:[a-z_]+/)+)`")
WALKS = ("put", "search", "scheduled dream", "forget", "OpenWOP compaction", "Akashik COMPACT", "window turn")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_file_it_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    names = {name for name in FILE.findall(text) if "/" in name and not name.startswith(("tests/", "tools/"))}
    names |= {
        name for name in FOLDER.findall(text) if name.split("/")[0] not in ("src", "docs", "tests", "tools", "bench")
    }
    assert len(names) > 15
    missing = sorted(name for name in names if not (SOURCE / name).exists())
    assert not missing


def test_every_walk_has_a_picture_and_numbered_steps() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    walks = dict(re.findall(r"^## An? ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert tuple(walks) == WALKS
    for name, walk in walks.items():
        assert "```mermaid" in walk, name
        assert re.findall(r"^(\d)\. ", walk, re.MULTILINE)[:4] == ["1", "2", "3", "4"], name


def test_the_tree_lists_every_package() -> None:
    tree = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("src/reverie/\n")[2].partition("```")[0]
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {"demo"}
    assert packages == set(re.findall(r"^  ([a-z]+)/", tree, re.MULTILINE))
