"""The contract suite over PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reverie.store.conformance import Case, cases
from reverie.store.postgres import PostgresStore


@pytest.mark.parametrize("case", cases(), ids=str)
def test_postgresql_keeps_the_contract(case: Case, make_database: Callable[[], str]) -> None:
    case.run(lambda clock: PostgresStore(make_database(), clock=clock))
