"""The documentation as a site: every page is in its navigation, says first what it is for, and links to what exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def navigated(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    values = part if isinstance(part, list) else part.values()
    return [page for value in values for page in navigated(value)]


def test_every_page_is_in_the_navigation_once() -> None:
    nav = navigated(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(nav) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_first_what_it_is_for(page: str) -> None:
    lines = [line for line in (DOCS / page).read_text().splitlines() if line.strip()]
    assert lines[0].startswith("# ")
    assert lines[1][0].isalpha() or lines[1][0] in "`*[", f"{page} starts with {lines[1][:40]!r}, not with a sentence"


@pytest.mark.parametrize("page", [*PAGES, "../README.md", "../CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = DOCS / page
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        found = (path.parent / name).resolve() if name else path.resolve()
        assert found.exists(), f"{page}: {target}"
        if anchor and found.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", found.read_text(), flags=re.M)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page}: {target}"
            assert "--" not in anchor, f"{page}: {target}: the site joins the dashes; give the heading fewer signs"
