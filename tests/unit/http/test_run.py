"""The address a server listens on."""

from __future__ import annotations

import pytest

from reverie.http.run import CannotListen, bind


@pytest.mark.parametrize("name", ["a..b", "a" * 70, "no such host"])
def test_a_name_that_is_no_host_is_said_in_one_line(name: str) -> None:
    with pytest.raises(CannotListen, match="Cannot listen on"):
        bind(name, 0)
