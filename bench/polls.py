"""The cost of finding due work when there are many tenants, each with a schedule.

    python -m bench polls             10,000 tenants on both stores
    python -m bench polls --quick     1,000 on both

A poll is what a worker does every few seconds: find the ticks that came due and put them into the queue (on SQLite:
run them). A round is what it does every minute: find out who needs a sweep. Both with no tenant due, and with some.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

HOUR = 3_600_000


class _Clock:
    """A clock that is advanced by hand."""

    def __init__(self) -> None:
        self.at = 1_790_000_000_000

    def now(self) -> int:
        return self.at


def measure(*, tenants: Mapping[str, int]) -> dict[str, Any]:
    """Milliseconds by engine and number of tenants."""
    return {f"{engine}, {count:,} tenants": _measure(engine, count) for engine, count in tenants.items()}


def _measure(engine: str, tenants: int) -> dict[str, float]:
    from reverie.host import Host
    from reverie.services import Services

    clock = _Clock()
    with _opened(engine, clock) as (store, queue, make_worker):
        host = Host(Services(store=store, clock=clock, jobs=queue))
        for number in range(tenants):
            # ten are due in half an hour, ninety half an hour later, the others a day from now
            delay = HOUR // 2 if number < 10 else HOUR if number < 100 else 24 * HOUR
            fields = {"id": "nightly", "delay_ms": delay, "ref": "notes"}
            host.schedules.save(host.system_actor(f"tenant-{number:06d}"), fields)
        poll, sweep = make_worker(host)
        found: dict[str, float] = {}
        poll()
        found["poll, nothing due"] = median(_ms(poll) for _ in range(3))
        found["round of sweeps, nothing due"] = _ms(sweep)
        clock.at += HOUR // 2 + 1
        found["poll, 10 due"] = _ms(poll)
        clock.at += HOUR // 2 + 1
        found["poll, 90 due"] = _ms(poll)
    return found


def _ms(body: Callable[[], object]) -> float:
    began = time.perf_counter()
    body()
    return (time.perf_counter() - began) * 1000


@contextlib.contextmanager
def _opened(engine: str, clock: _Clock) -> Iterator[tuple[Any, Any, Callable[..., Any]]]:
    with tempfile.TemporaryDirectory(prefix="reverie-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        if engine == "sqlite":
            from reverie.jobs.worker import Worker
            from reverie.store.sqlite import SqliteStore

            store: Any = SqliteStore(Path(folder) / "reverie.db", clock=clock)

            def local(host: Any) -> tuple[Callable[[], object], Callable[[], object]]:
                worker = Worker(host, every_seconds=60)
                worker.round()
                return worker.tick, worker.round

            yield store, None, local
            store.close()
            return
        from tests.postgres import start_server

        from reverie.jobs.procrastinate import EngineQueue, EngineWorker
        from reverie.store.postgres import PostgresStore

        server = start_server(Path(folder))
        url = server.make_database()
        store, queue = PostgresStore(url, clock=clock), EngineQueue(url)

        def carried(host: Any) -> tuple[Callable[[], object], Callable[[], object]]:
            worker = EngineWorker(host, queue, url, every_seconds=10**6)

            def sweep() -> None:
                with queue.connection() as connection:
                    connection.execute("DELETE FROM job_round")
                worker.look()
                while worker._left:
                    worker.look()

            sweep()  # the first round of a process looks at everyone
            return worker.look, sweep

        yield store, queue, carried
        store.close()
        server.drop_database(url)


def table(report: dict[str, Any]) -> str:
    """The figures as Markdown."""
    engines = list(report)
    lines = ["| | " + " | ".join(engines) + " |", "|---|" + "---:|" * len(engines)]
    for name in report[engines[0]]:
        lines.append(f"| {name} | " + " | ".join(f"{report[engine][name]:,.1f} ms" for engine in engines) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer tenants")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args()
    report = measure(tenants=dict.fromkeys(("sqlite", "postgres"), 1_000 if given.quick else 10_000))
    print(json.dumps(report, indent=1) if given.json else table(report))


if __name__ == "__main__":
    main()
