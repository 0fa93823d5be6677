"""`python -m bench` runs the measurements named."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import bench.__main__ as bench
import pytest


def test_one_measurement_gets_its_own_options(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        ran.append(command[2:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    for options in (["retrieval", "--held-out"], ["nights", "--quick", "--locomo", "talks.json"], ["store", "index"]):
        monkeypatch.setattr(sys, "argv", ["bench", *options])
        assert bench.main() == 0
    assert ran == [
        ["bench.retrieval", "--held-out"],
        ["bench.nights", "--quick", "--locomo", "talks.json"],
        ["bench.store"],
        ["bench.index"],
    ]


@pytest.mark.parametrize("names", [[], ["all"], ["store", "index"], ["stor"]])
def test_an_option_of_no_one_measurement_is_refused(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *names, "--held-out"])
    with pytest.raises(SystemExit) as left:
        bench.main()
    assert left.value.code == 2
