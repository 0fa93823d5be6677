"""A server whose test seams are switched on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SEAMS = {"openwop_seams": True, "openwop_compaction": True, "openwop_trigger_compaction": True}


@pytest.fixture(scope="session")
def seamed(lasting_server: Callable[..., Any]) -> Any:
    """One server with every seam, for tests that bring their own tenant."""
    return lasting_server(**SEAMS)


@pytest.fixture
def ada(seamed: Any) -> Any:
    """A caller of a tenant nobody else uses, on the server with seams."""
    return seamed.caller()
