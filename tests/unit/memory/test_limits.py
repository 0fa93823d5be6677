"""Values that would do harm later are refused when they are given."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reverie.app import build_host
from reverie.core.clock import LATEST
from reverie.core.errors import Invalid
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
