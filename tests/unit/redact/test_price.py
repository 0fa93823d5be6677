"""What hostile text costs, counted in function calls: in proportion to its length, and bounded per byte."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from bench.redact_hostile import hostile

from reverie.redact import Redactor

REDACTOR = Redactor()
SIZE = 3_000
SMALL = dict(hostile(SIZE))
LARGE = dict(hostile(2 * SIZE))
MOST_CALLS = 100
"""Per byte, of Python and of C functions together. Prose causes a hundredth of one."""


def calls(text: str) -> int:
    count = 0

    def seen(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        REDACTOR.text(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", SMALL)
def test_the_work_is_bounded_and_grows_as_the_text_does(name: str) -> None:
    REDACTOR.text(LARGE[name])  # patterns are compiled at their first use
    small, large = calls(SMALL[name]), calls(LARGE[name])
    assert small <= MOST_CALLS * len(SMALL[name])
    assert large <= 3 * small + 5_000
