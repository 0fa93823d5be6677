"""Canonical JSON: the bytes of RFC 8785, or a refusal."""

from __future__ import annotations

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from reverie.core.canonical import canonical
from reverie.core.errors import Invalid

SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | st.text()


@given(st.recursive(SCALARS, lambda own: st.lists(own) | st.dictionaries(st.text(), own), max_leaves=20))
def test_both_ways_give_the_same_bytes(document: Any) -> None:
    try:
        expected = rfc8785.dumps(document)
    except rfc8785.CanonicalizationError:  # an infinite number
        with pytest.raises(Invalid):
            canonical(document)
    else:
        assert canonical(document) == expected


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"a": leaf}
    return leaf


@pytest.mark.parametrize("leaf", [1, 1.5, "é"])
@pytest.mark.parametrize("depth", [300, 5000])
def test_deep_nesting_is_refused(depth: int, leaf: Any) -> None:
    with pytest.raises(Invalid):
        canonical(nested(depth, leaf))


@pytest.mark.parametrize("value", [float("nan"), 2**53, "\ud800", object(), {1: 1}])
def test_a_value_without_an_exact_form_is_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        canonical({"a": value})
