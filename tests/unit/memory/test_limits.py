"""Values that would do harm later are refused when they are given."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reverie.app import build_host
from reverie.core.clock import LATEST
from reverie.core.entry import Draft
from reverie.core.errors import Invalid
from reverie.core.policy import TenantPolicy
from reverie.memory.drafts import check_draft
from reverie.settings import Settings


@pytest.mark.parametrize("value", [" " * 8, "--------", "abababab", "  short  "])
def test_a_secret_that_is_part_of_ordinary_text_is_refused(tmp_path: Path, value: str) -> None:
    with closing(build_host(Settings.load({}, data=tmp_path))) as host:
        admin = host.keys.authenticate(host.keys.create("default").key, door="rest")
        with pytest.raises(Invalid, match="too common"):
            host.rules.register(admin, "door", value)


def test_a_key_does_not_outlive_the_calendar(tmp_path: Path) -> None:
    with closing(build_host(Settings.load({}, data=tmp_path))) as host:
        with pytest.raises(Invalid, match="out of range"):
            host.keys.create("default", expires_at=LATEST + 1)
        key = host.keys.create("default")
        with pytest.raises(Invalid, match="out of range"):
            host.keys.rotate(key.id, overlap_ms=LATEST)
        assert [one.id for one in host.keys.all()] == [key.id]


@pytest.mark.parametrize(("at", "message"), [(-1, "before 1970"), (LATEST, "in the future")])
def test_a_time_that_cannot_be_is_refused_for_what_is_wrong_with_it(at: int, message: str) -> None:
    with pytest.raises(Invalid, match=f"created_at is {message}") as fault:
        check_draft(Draft("Text.", created_at=at), TenantPolicy(), now=1_700_000_000_000)
    assert fault.value.pointer == "/created_at"
