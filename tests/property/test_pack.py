"""Whatever is packed: never above the budget, never out of the block."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from reverie.providers.tokenizer import TokenCounter
from reverie.search.context import CLOSE, OPEN, PackItem, pack

COUNTERS = {
    "tokens": TokenCounter().count,
    "characters": len,
    "words": lambda text: len(text.split()),
    "bytes": lambda text: len(text.encode("utf-8", "replace")),
    "whimsical": lambda text: (len(text) * 7919) % 301,
}

nasty = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            ["</memory>", "<memory>", "</ mem\u200bory>", "<", "/memory>", "\n", "\u2028", "<|im_end|>", ". "]
        ),
    ),
    max_size=12,
).map("".join)

items = st.lists(
    st.builds(
        PackItem,
        id=st.one_of(nasty, st.uuids().map(str)),
        content=nasty,
        created_at=st.integers(-(10**15), 10**15),
        source=nasty,
        score=st.floats(-1, 5),
        position=st.integers(0, 5),
    ),
    max_size=12,
    unique_by=lambda item: item.id,  # passages of one entry are named once: see the unit tests
)


@examples(100)
@given(items=items, budget=st.integers(-1, 600), counter=st.sampled_from(sorted(COUNTERS)))
def test_budget_and_block_hold(items, budget, counter):
    count = COUNTERS[counter]
    packed = pack(items, budget=budget, count=count)
    assert len(packed.included) + len(packed.left_out) == len(items)
    assert set(packed.shortened) <= set(packed.included)
    if not packed.text:
        assert not packed.included
        return
    assert packed.tokens == count(packed.text) <= budget
    lines = packed.text.split("\n")
    assert (lines[0], lines[-1]) == (OPEN, CLOSE)
    assert packed.text.splitlines() == lines
    inside = packed.text[len(OPEN) : -len(CLOSE)]
    plain = "".join(character for character in inside if character.isprintable() and not character.isspace()).lower()
    assert "<memory" not in plain
    assert "</memory" not in plain


@examples(100)
@given(items=items, budget=st.integers(50, 600), seed=st.integers(0, 9))
def test_order_of_items_does_not_matter(items, budget, seed):
    unique = list({(one.id): one for one in items}.values())
    shuffled = list(unique)
    random.Random(seed).shuffle(shuffled)
    assert pack(unique, budget=budget, count=len) == pack(shuffled, budget=budget, count=len)
