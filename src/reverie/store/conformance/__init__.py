"""The suite any store must pass.

With pytest:

    from reverie.store.conformance import Case, cases

    @pytest.mark.parametrize("case", cases(), ids=str)
    def test_my_store(case: Case) -> None:
        case.run(lambda clock: MyStore(..., clock=clock))

Without pytest, `check(lambda clock: MyStore(..., clock=clock))` runs every case and returns the failures. The factory
opens a new, empty store that uses the given clock; the case closes it. Cases are plain functions with plain `assert`s,
one file for each capability. Do not run them under `python -O`.
"""

from reverie.store.conformance.case import Case, Failure, cases, check
from reverie.store.conformance.lab import HandClock, Lab, make_entry, make_event

__all__ = ["Case", "Failure", "HandClock", "Lab", "cases", "check", "make_entry", "make_event"]
