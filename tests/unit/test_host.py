"""The parts of a host: made when asked for, once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from reverie.host import Host


def test_a_part_is_made_once_however_many_threads_ask_first(make_host: Callable[..., Host]) -> None:
    host, start = make_host(), Barrier(8)

    def first(_: int) -> object:
        start.wait()
        return host.schedules

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(first, range(8)))
    assert all(part is host.schedules for part in found)


def test_no_part_is_made_before_it_is_asked_for(make_host: Callable[..., Host]) -> None:
    host = make_host()
    assert "writing" not in vars(host)
    assert host.writing is host.use_cases()["writing"]
    assert {"writing", "recall", "windows", "rules"} <= set(host.use_cases())
