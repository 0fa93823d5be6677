"""A draft from plain values: what is given is taken whole, what does not fit is named."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.core.draft import to_draft
from reverie.core.entry import Source
from reverie.core.errors import Invalid


def test_tags_may_come_one_by_one() -> None:
    assert to_draft({"content": "x", "tags": (tag for tag in ("a", "b"))}).tags == ("a", "b")


@pytest.mark.parametrize("absent", [None, ""])
def test_what_is_absent_has_its_default(absent: str | None) -> None:
    draft = to_draft({"content": "x", "kind": absent, "tags": absent, "attributes": absent, "source": absent})
    assert (draft.kind, draft.tags, draft.attributes, draft.source) == ("note", (), {}, Source())


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({}, "/content"),
        ({"content": 5}, "/content"),
        ({"content": "x", "kind": 0}, "/kind"),
        ({"content": "x", "subject": []}, "/subject"),
        ({"content": "x", "id": False}, "/id"),
        ({"content": "x", "tags": "ab"}, "/tags"),
        ({"content": "x", "tags": 7}, "/tags"),
        ({"content": "x", "tags": ["a", 1]}, "/tags"),
        ({"content": "x", "attributes": [1]}, "/attributes"),
        ({"content": "x", "source": {"nobody": 1}}, "/source"),
        ({"content": "x", "source": {"actor": 5}}, "/source"),
        ({"content": "x", "source": {"actor": None}}, "/source"),
        ({"content": "x", "source": {"trust": "high"}}, "/source"),
        ({"content": "x", "source": "me"}, "/source"),
        ({"content": "x", "pinned": "false"}, "/pinned"),
        ({"content": "x", "created_at": -1}, "/created_at"),
        ({"content": "x", "expires_at": 10**16}, "/expires_at"),
        ({"content": "x", "expires_at": 10**30}, "/expires_at"),
        ({"content": "x", "created_at": "2026-11-15T08:05:09"}, "/created_at"),
    ],
)
def test_what_does_not_fit_is_named(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        to_draft(fields)
    assert refused.value.pointer == pointer


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(Invalid, match="Unknown field: colour"):
        to_draft({"content": "x", "colour": "blue"})
    with pytest.raises(Invalid, match="Unknown field: 5"):
        to_draft({"content": "x", 5: "blue"})  # type: ignore[dict-item]
