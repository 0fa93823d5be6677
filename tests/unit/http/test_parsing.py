"""JSON, read strictly."""

from __future__ import annotations

import contextlib
import json
from contextvars import copy_context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.core.errors import Invalid, TooLarge
from reverie.core.pause import PAUSE, Pauses
from reverie.http import parsing
from reverie.http.parsing import MAX_DEPTH, more_values, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_sound_json_is_read_as_any_parser_reads_it(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_document_or_refused(body: bytes) -> None:
    with contextlib.suppress(Invalid):
        json.dumps(parse(body))


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 1}',
        b'[{"a": {"b": 1, "b": 2}}]',
        b"[NaN]",
        b"[Infinity]",
        b"[1e999]",
        b"[-1e999]",
        b"[" + b"9" * 5000 + b"]",
        b'["\\ud800"]',
        b'["\\udc00\\ud800"]',
        b'["\\u0000"]',
        b'{"\\u0000": 1}',
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"[" * 100_000,
        b"\xef\xbb\xbf[]",
        b'["\xff"]',
        b"",
        b"[] []",
    ],
)
def test_what_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        parse(body)


def test_what_only_looks_alarming_is_fine() -> None:
    assert parse(b'["\\ud83d\\ude00", "\\\\u0000", "\\\\ud800"]') == ["\U0001f600", "\\u0000", "\\ud800"]
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert parse(deep) == json.loads(deep)
    assert len(parse(b"[" + b",".join([b"{}"] * 1000) + b"]")) == 1000


@pytest.mark.parametrize(
    "document",
    [
        [1] * 500,
        {"a": ['x,[{"\\' * 40] * 500},
        [{"a": "b"}] * 500,
        ["\\", "\\\\", '"', '\\"', ",[{"] * 100,
        {"text": '"[{,' * 50_000, "after": [1, 2, 3]},
    ],
)
def test_values_are_counted_without_building_them(document: Any) -> None:
    def values(value: Any) -> int:
        """Brackets, braces and commas outside texts."""
        if isinstance(value, dict | list):
            inner = list(value.values() if isinstance(value, dict) else value)
            return 1 + max(len(inner) - 1, 0) + sum(map(values, inner))
        return 0

    body, exact = json.dumps(document).encode(), values(document)
    assert not more_values(body, exact)
    assert more_values(body, exact - 1)


def test_an_escape_at_the_edge_of_a_piece_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(['a\\",[{', "\\\\", 'b"', "c"] * 20).encode()
    for size in range(1, 40):
        monkeypatch.setattr(parsing, "_PIECE", size)
        assert not more_values(body, 80)
        assert more_values(body, 79)


def test_a_body_of_too_many_values_is_refused() -> None:
    with pytest.raises(TooLarge):
        parse(b"[" + b"1," * 1000 + b"1]", most=1000)
    with pytest.raises(TooLarge):
        parse(json.dumps(dict.fromkeys(map(str, range(10_001)), 1)).encode())


@pytest.mark.parametrize("escape", [b"\\u0000", b"\\ud800"])
@pytest.mark.parametrize("before", range(8))
def test_what_is_refused_is_found_across_the_pieces_of_a_long_body(escape: bytes, before: int) -> None:
    body = b'["' + b"x" * (parsing._PIECE - 2 - before) + escape + b"x" * parsing._PIECE + b'"]'
    with pytest.raises(Invalid):
        parse(body)


def test_a_long_body_is_looked_over_in_pieces_with_pauses_between_them() -> None:
    pauses: list[int] = []
    body = json.dumps({"text": "x" * (50 * parsing._PIECE)}).encode()
    context = copy_context()
    context.run(PAUSE.set, Pauses(lambda: pauses.append(1)))
    context.run(parse, body)
    assert len(pauses) > 100  # twice over fifty pieces: values are counted, and what it holds is looked for
