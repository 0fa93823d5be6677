"""Compaction's text: cut without splitting a character or a marker, and never blank."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reverie.distil.compaction import compacted, cut, joined, size
from reverie.distil.source import Source
from reverie.redact import load_redactor
from reverie.redact.markers import CANONICAL

PIECES = st.lists(
    st.sampled_from(["☕", "é", "word ", "[REDACTED:byok]", "[", "]", "\n", "[REDACTED:a.b-c]", "𝄞"]), max_size=30
)


@given(PIECES, st.integers(3, 120))
def test_a_cut_is_a_beginning_within_its_bytes_and_splits_nothing(pieces: list[str], most: int) -> None:
    text = "".join(pieces)
    kept = cut(text, most, size)
    assert kept.strip()
    assert size(kept) <= most
    assert kept == "\u2026" or text.startswith(kept)
    if kept != "\u2026":
        for marker in CANONICAL.finditer(text.encode()):
            inside = marker.start() < size(kept) < marker.end()
            assert not inside


@given(st.integers(1, 5))
def test_without_room_a_dot_stands(most: int) -> None:
    assert cut("[REDACTED:byok]", most, size) in (".", "\u2026")


def test_every_text_stands_once_in_order() -> None:
    sources = [Source(f"s{n}", text, n) for n, text in enumerate(["one", "two", "one"])]
    assert joined(sources) == "one\ntwo"


def test_what_is_too_large_is_distilled_before_it_is_cut() -> None:
    texts = [f"We decided on day {n} that service {n} listens on port {7000 + n}. Well, anyway." for n in range(60)]
    sources = [Source(f"s{n:02}", text, 1_700_000_000_000 + n) for n, text in enumerate(texts)]
    redactor = load_redactor()
    text, missing = compacted(sources, lambda t: redactor.text(t).text, most=2000)
    assert size(text) <= 2000
    assert missing <= {source.id for source in sources if source.content.split(".")[0] not in text}
    assert text.count("listens") > 2000 // size(texts[0]), "more is told than a cut would tell"
    assert "anyway" not in text


def test_a_marker_in_the_sources_leaves_a_marker_in_what_is_cut() -> None:
    sources = [Source("a", "[BYOK:k] " + "word " * 400, 1), Source("b", "plain talk " * 400, 2)]
    redactor = load_redactor()
    assert "[REDACTED:byok]" in compacted(sources, lambda t: redactor.text(t).text, most=500)[0]
