"""The tenant's policy: what does not fit is refused."""

from __future__ import annotations

import pytest

from reverie.core.errors import Invalid
from reverie.core.policy import TenantPolicy, share_of


@pytest.mark.parametrize(
    "target", ["", "%", "0", "0%", "101%", "-5", "1.5", "\u00b2", "\u00b2%", "9" * 5000, "10000000000"]
)
def test_a_target_that_is_no_share_and_no_number_of_tokens_is_refused(target: str) -> None:
    with pytest.raises(Invalid) as refused:
        TenantPolicy().changed({"hot_target": target})
    assert refused.value.pointer == "/hot_target"


def test_a_target_is_a_share_or_a_number_of_tokens() -> None:
    assert share_of(" 50 % ") == (50, 0)
    assert share_of("8000") == (None, 8000)
    assert share_of("1000000000") == (None, 10**9)
