"""The page of `make bench`: a table a question, its command, its plots; and what a peer is asked."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from bench import page
from bench.peers.protocol import _ACTS, _Loaded, answers
from bench.plots import bars


class Peer:
    """A memory that finds by the first letter."""

    def __init__(self, folder: Path) -> None:
        (folder / "store").write_bytes(b"x" * 1000)
        (folder / "store-reserve").write_bytes(b"x" * 5000)
        self.texts: list[str] = []

    def put(self, text: str) -> str:
        self.texts.append(text)
        return str(len(self.texts))

    def put_many(self, texts: list[str]) -> list[str]:
        return [self.put(text) for text in texts]

    def get(self, entry_id: str) -> str:
        return self.texts[int(entry_id) - 1]

    def newest(self, count: int) -> int:
        return min(count, len(self.texts))

    def search(self, query: str) -> list[str]:
        return [text for text in self.texts if text[0] == query[0]]

    def close(self) -> None:
        pass


def test_a_plot_is_svg_with_a_bar_for_every_row() -> None:
    drawn = ET.fromstring(bars("Writes <a second>", [("Reverie", 10.0), ("other & co", 5.0)], "{:.0f}/s"))
    widths = [float(bar.attrib["width"]) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[0] == 2 * widths[1]
    assert "10/s" in [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]


def test_the_page_has_a_table_a_command_and_plots_for_every_question(tmp_path: Path) -> None:
    section = page.Section(
        "How big?", "Bytes.", "python -m bench.page", page.rows(["", "b"], [["Reverie", "1"]]), ["a note."],
        {"size": bars("Bytes", [("Reverie", 1.0)], "{}")},
    )  # fmt: skip
    report = {"machine": {"date": "today"}, "versions": {"reverie": {"python": "3"}}}
    text = page.written([section], report, tmp_path / "measured.md", quick=True)
    for part in ("## How big?", "    python -m bench.page", "| Reverie | 1 |", "- a note.", "](images/bench-size.svg)"):
        assert part in text
    assert (tmp_path / "images/bench-size.svg").exists()


def test_a_peer_is_judged_by_the_notes_it_finds(tmp_path: Path) -> None:
    found = answers(Peer, str(tmp_path / "a"), ["apple", "avocado", "banana"], ["a?", "b?", "c?"])
    assert found == {"found": [["apple", "avocado"], ["banana"], []]}
    assert _ACTS["answers"] is answers


def test_room_kept_back_is_not_counted_as_size(tmp_path: Path) -> None:
    loaded = _Loaded(Peer)
    assert loaded.load(str(tmp_path / "b"), 100, 60) == {"entries": 100}
    assert loaded.size(str(tmp_path / "b"))["bytes"] == 10.0
