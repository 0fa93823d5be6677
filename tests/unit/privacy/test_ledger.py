"""The forget ledger: nothing that was remembered is lost, whatever happened to the file."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reverie.core.ports import ForgetLine
from reverie.privacy.ledger import FileLedger


def forgets(path: Path, *subjects: str) -> FileLedger:
    ledger = FileLedger(path)
    for at, subject in enumerate(subjects):
        ledger.add(ForgetLine(tenant="acme", subject=subject, ref=None, at=at))
    return ledger


def test_a_line_cut_short_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "forgotten.jsonl"
    forgets(path, "one", "two")
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[1]) + 1):
        path.write_bytes(whole[:-cut])
        left = ["one", "two"] if cut == 1 else ["one"]  # all but its line end is a whole line
        assert [line.subject for line in forgets(path, "three").all()] == [*left, "three"]


@given(st.lists(st.sampled_from("abcde"), max_size=6), st.lists(st.sampled_from("abcde"), max_size=6))
def test_taking_over_adds_what_is_lacking_once(tmp_path_factory: object, own: list[str], other: list[str]) -> None:
    folder: Path = tmp_path_factory.mktemp("ledger")  # type: ignore[attr-defined]
    here, there = forgets(folder / "here", *own), forgets(folder / "there", *other)
    before = list(here.all())
    added = here.take(there)
    assert list(here.all())[: len(before)] == before
    assert set(here.all()) == set(before) | set(there.all())
    assert len(list(here.all())) == len(before) + added
    assert here.take(there) == 0


def test_an_absent_ledger_has_nothing_to_give(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "here")
    assert ledger.take(FileLedger(tmp_path / "nowhere")) == 0
    assert not (tmp_path / "here").exists()
    ledger.add(ForgetLine(tenant="acme", subject="hash", ref="notes", at=5))
    assert list(ledger.all()) == [ForgetLine("acme", "hash", "notes", 5)]
