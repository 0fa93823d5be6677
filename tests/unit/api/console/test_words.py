"""The words of the pages: explanations belong to what they explain, and commands that a page names exist."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest
from tests.unit.api.console.test_pages import Site

from reverie.api.cli.catalog import CATALOG
from reverie.api.cli.main import run
from reverie.api.console import alerts, diff
from reverie.api.console.text import brief, cut, number
from reverie.core.dream import DreamPlan

SAID = (
    "Mara: The free plan allows 5 boats per club.",
    "Jonas: Bookings of one boat can never overlap.",
    "Lena: The treasurer wants invoices on paper.",
)


def test_each_line_of_a_dream_has_its_own_explanation(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for words in SAID * 2:
        site.put("explained", words)
    report = site.host.dreams.run(site.host.system_actor("explained"), DreamPlan(ref="notes", budget=4000, fit=True))
    assert report is not None
    client = site.browser()
    client.headers["authorization"] = f"Bearer {site.key('explained')}"
    hits = client.get("/memories.json?ref=notes&q=how+many+boats+does+the+free+plan+allow").json()["hits"]
    of_the_dream = [hit for hit in hits if hit["entry"]["id"] == report.output_id]
    assert len(of_the_dream) >= 2
    for hit in of_the_dream:
        [sure] = re.findall(r"(\d+) in 100 are right", " ".join(hit["why"]))
        assert int(sure) == min(round(100 * hit["confidence"]), 99)
    site.host.close()


def named() -> set[str]:
    """Every `reverie ...` of the templates and alerts: the command and its subcommand, if it has one."""
    folder = resources.files("reverie.api.console").joinpath("templates")
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".html")]
    texts.append(Path(alerts.__file__).read_text(encoding="utf-8"))
    grouped = {name for group in CATALOG.values() for name, (place, _) in group.items() if place.endswith(":app")}
    found = re.findall(r"\breverie ([a-z]+)(?: ([a-z]+))?", " ".join(texts).replace("from reverie import", ""))
    return {f"{first} {second}" if first in grouped else first for first, second in found}


def test_every_command_that_a_page_names_exists(capsys: pytest.CaptureFixture[str]) -> None:
    commands = named()
    assert {"put", "keys create", "backup create", "proxy"} <= commands
    for command in sorted(commands):
        assert run([*command.split(), "--help"]) == 0, (command, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("value", "shown"), [(9_999_999, number(9_999_999)), (12_340_000, "12.3 million"), (3_800_000_900, "3.80 billion")]
)
def test_large_figures_are_rounded_and_exact_on_hover(value: int, shown: str) -> None:
    said = str(brief(value))
    assert shown in said
    assert number(value) in said


def test_hidden_characters_that_both_sides_have_are_not_marked_as_changed() -> None:
    said = "An \u202eevil\u202c berth."
    assert "<del>" not in diff.before(said, [f"Mara: {said}"])
    assert "<ins>" not in diff.after(f"Mara: {said}", [said])
    assert "<del>" in diff.before(said, ["A berth."])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Lena deployed build 508", "Lena deployed …"),
        ("Lena deployed\nbuild 508 today", "Lena deployed …"),
        ("Lena deployed 50 builds", "Lena deployed 50 …"),
        ("w" * 40, "w" * 16 + " …"),
        ("as long as it", "as long as it"),
    ],
)
def test_a_text_is_cut_after_a_word(text: str, shown: str) -> None:
    assert cut(text, 16) == shown
