"""Long work gives others their turn: steps of the interpreter between two pauses, counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from types import FrameType
from typing import Any

from reverie.core.pause import PAUSE, Pauses
from reverie.distil import gates, must_keep
from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.plan import weigh
from reverie.distil.source import Source

MOST = 8_000
"""Calls between two pauses: some 2 ms. It was 157,051 with the sources below."""


def longest(work: Callable[[], object]) -> int:
    """Calls of functions in the longest stretch without a pause."""
    calls, most = 0, 0

    def note(*_: object) -> None:
        nonlocal calls, most
        most, calls = max(most, calls), 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def watched() -> None:
        PAUSE.set(Pauses(note))
        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(None)
            note()

    copy_context().run(watched)
    return most


def test_a_dream_of_many_sources_pauses_everywhere() -> None:
    day = 86_400_000
    texts = [
        f"On day {n} we decided that hall {n % 7} keeps pump {n}, because line {n} leaks. Pump {n % 9} runs at {n} bar."
        for n in range(400)
    ]
    sources = [Source(id=f"e{n:04}", content=text, created_at=n // 20 * day) for n, text in enumerate(texts)]
    distiller = ExtractiveDistiller()

    def count(text: str) -> int:
        return len(text) // 4

    def dream() -> None:
        work = weigh(sources, distiller, count)
        made = distiller.distil(work.prepared, output_tokens=work.least_output + work.rest // 2, count=count)
        kept = must_keep.find(sources)
        gates.verify(
            sources, made.text, must_keep=kept, budget=1 << 20, input_tokens=1, count=count, statements=made.statements
        )

    dream()  # loads tables
    assert longest(dream) <= MOST
