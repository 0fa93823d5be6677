"""The contract suite over SQLite, in a file and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.store.conformance import Case, HandClock, cases
from reverie.store.conformance.case import CAPABILITIES, check
from reverie.store.sqlite import SqliteStore


@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_file_keeps_the_contract(case: Case, tmp_path: Path) -> None:
    case.run(lambda clock: SqliteStore(tmp_path / "memory.db", clock=clock))


@pytest.mark.parametrize("case", cases([c for c in CAPABILITIES if c not in ("snapshots", "transfer")]), ids=str)
def test_a_store_in_memory_keeps_the_contract(case: Case) -> None:
    case.run(lambda clock: SqliteStore(":memory:", clock=clock))


def test_every_case_states_its_promise() -> None:
    assert [case.name for case in cases() if not case.promise] == []


def test_the_kit_reports_a_broken_promise() -> None:
    class Forgetful(SqliteStore):
        """Acknowledges and stores nothing."""

        def write(self, scope, body):  # type: ignore[no-untyped-def]
            def undone(tx):  # type: ignore[no-untyped-def]
                result = body(tx)
                raise LookupError(result)

            try:
                return super().write(scope, undone)
            except LookupError as fault:
                return fault.args[0]

    def open_store(clock: HandClock) -> SqliteStore:
        return Forgetful(":memory:", clock=clock)

    failures = check(open_store, capabilities=["entries"])
    assert "comes_back_as_it_was_stored" in {failure.case.name for failure in failures}
