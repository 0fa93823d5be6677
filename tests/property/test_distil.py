"""What must hold for any corpus: budgets, order, determinism, nothing invented, the gates."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from reverie.distil import must_keep as mustkeep
from reverie.distil.extractive import ExtractiveDistiller, OutputTooSmallError
from reverie.distil.gates import verify
from reverie.distil.source import Source

DAY = 86_400_000
START = 1_700_000_000_000
DISTILLER = ExtractiveDistiller()

SENTENCES = (
    "I moved to Lisbon last month with my sister Ana.",
    "The retry limit is 5.",
    "The retry limit is 8.",
    "We must not deploy on Fridays.",
    "We deploy on Fridays.",
    "Haha, that's so great!",
    "Thanks a lot, Ben!",
    "Max and I fixed the parser in `src/parse.py` yesterday.",
    "TODO: rotate the key [REDACTED:api_key] before 3 March.",
    "The build is green, but the linter isn't.",
    "See https://example.com/a/b?c=1 for the details.",
    "No worries, I closed ticket PROJ-1432.",
    "Write to ana@example.org, never to the old list.",
    "Latency went from 120ms to 95ms after v2.3.1 (really good).",
    "I don't like the new layout, the sidebar is too wide.",
    "Decision: use SQLite for the queue.",
    "明日は会議があります。資料を準備します。",
    "Er wohnt nicht mehr in Berlin; er zog 2021 nach Wien.",
    "Is the cache warm? Yes, since two days ago.",
    "- first item\n- second item: 42\n\n```\nx = f(1)\n```",
    "Can't wait, the trip to Oslo starts on 12 June!",
    'She said "we ship, no matter what" and left.',
    "If it fails, restart the worker; otherwise leave it.",
    "",
    "   ",
    "ok",
)


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


@st.composite
def sources(draw: st.DrawFn) -> list[Source]:
    bodies = draw(
        st.lists(
            st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3).map(" ".join) | st.text(max_size=60),
            max_size=14,
        )
    )
    return [
        Source(
            id=f"e{i:03d}",
            content=body,
            created_at=START + draw(st.integers(0, 40)) * DAY // 2,
            speaker=draw(st.sampled_from((None, "Ana", "Ben"))),
            kind=draw(st.sampled_from(("note", "note", "finding", "decision", "constraint"))),
            pinned=draw(st.integers(0, 9)) == 0,
        )
        for i, body in enumerate(bodies)
    ]


@examples(120)
@given(sources(), st.integers(0, 200))
def test_a_budget_is_never_exceeded_and_the_minimum_is_exact(given_sources: list[Source], budget: int) -> None:
    prepared = DISTILLER.prepare(given_sources)
    minimum = DISTILLER.minimum(prepared, count=count, declared=True)
    assert minimum <= DISTILLER.minimum(prepared, count=count) or not prepared.candidates
    if budget < minimum:
        with pytest.raises(OutputTooSmallError) as refused:
            DISTILLER.distil(prepared, output_tokens=budget, count=count)
        assert refused.value.minimum == minimum
    else:
        made = DISTILLER.distil(prepared, output_tokens=budget, count=count)
        assert made.tokens == count(made.text) <= budget
    assert DISTILLER.distil(prepared, output_tokens=minimum, count=count).tokens <= minimum


@examples(80)
@given(sources(), st.randoms(use_true_random=False))
def test_insertion_order_and_repetition_change_nothing(given_sources: list[Source], rng: random.Random) -> None:
    prepared = DISTILLER.prepare(given_sources)
    budget = max(60, DISTILLER.minimum(prepared, count=count))
    shuffled = list(given_sources)
    rng.shuffle(shuffled)
    first = DISTILLER.distil(prepared, output_tokens=budget, count=count)
    assert DISTILLER.distil(shuffled, output_tokens=budget, count=count) == first


@examples(120)
@given(sources(), st.integers(0, 150))
def test_its_own_output_passes_every_gate(given_sources: list[Source], budget: int) -> None:
    prepared = DISTILLER.prepare(given_sources)
    budget = max(budget, DISTILLER.minimum(prepared, count=count))
    made = DISTILLER.distil(prepared, output_tokens=budget, count=count)
    report = verify(
        given_sources,
        made.text,
        must_keep=mustkeep.find(given_sources),
        budget=100_000 + budget,
        input_tokens=100_000,  # the size gate has its own test
        count=count,
    )
    assert report.passed, (report.failures, report.missing, report.invented, report.flipped, made.text)


@examples(80)
@given(sources())
def test_every_statement_traces_to_its_sources_and_no_id_is_lost(given_sources: list[Source]) -> None:
    prepared = DISTILLER.prepare(given_sources)
    made = DISTILLER.distil(prepared, output_tokens=max(80, DISTILLER.minimum(prepared, count=count)), count=count)
    ids = {s.id for s in given_sources}
    told = {i for s in made.statements for i in s.source_ids}
    assert told <= ids
    assert told | set(made.dropped) == ids
    assert not told & set(made.dropped)
    assert all(s.text in made.text and s.source_ids for s in made.statements)


@examples(80)
@given(sources())
def test_markers_are_whole_or_absent(given_sources: list[Source]) -> None:
    prepared = DISTILLER.prepare(given_sources)
    made = DISTILLER.distil(prepared, output_tokens=max(50, DISTILLER.minimum(prepared, count=count)), count=count)
    assert made.text.count("REDACTED") == made.text.count("[REDACTED:api_key]")


@examples(40)
@given(sources())
def test_saying_it_twice_adds_no_statement(given_sources: list[Source]) -> None:
    again = [Source(s.id + "x", s.content, s.created_at, s.speaker, s.kind, s.pinned) for s in given_sources]
    once = DISTILLER.prepare(given_sources)
    twice = DISTILLER.prepare([*given_sources, *again])
    assert [c.text for c in twice.candidates] == [c.text for c in once.candidates]


PROGRAM = """
import json, sys
from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.source import Source
rows = [Source(**r) for r in json.load(sys.stdin)]
made = ExtractiveDistiller().distil(rows, output_tokens=120, count=lambda t: len(t.split()))
sys.stdout.buffer.write(made.text.encode())
"""


def test_the_hash_seed_and_the_locale_do_not_matter() -> None:
    rows = [
        {"id": f"e{i}", "content": s, "created_at": START + i * DAY, "speaker": ("Ana", "Ben", None)[i % 3]}
        for i, s in enumerate(SENTENCES * 2)
    ]
    seen = set()
    for seed, locale in (("0", "C"), ("1", "C.UTF-8"), ("4242", "tr_TR.UTF-8")):
        random.Random(seed).shuffle(rows)
        env = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], input=json.dumps(rows).encode(), capture_output=True, env=env, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1
    assert next(iter(seen))
