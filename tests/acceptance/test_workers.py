"""`reverie worker` as real processes: one that is told to stop finishes its job, one that is killed is taken over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reverie
from reverie.jobs.procrastinate import EngineQueue, EngineWorker
from reverie.jobs.queue import LEASE_MS
from reverie.jobs.worker import Runner, Worker

PATIENCE = 120.0
COMMAND = [sys.executable, "-m", "reverie.api.cli.main", "worker", "--concurrency", "1"]

MANY = 16
"""Jobs that a worker cannot finish before it reads a signal."""


@pytest.fixture
def start(make_target: Callable[..., str], tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """`start(target)`: a worker process that has begun."""
    made: list[subprocess.Popen[bytes]] = []

    def begin(target: str) -> subprocess.Popen[bytes]:
        option = "--database-url" if target.startswith("postgresql:") else "--data"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
        kept |= {"REVERIE_SCHEDULE_SECONDS": "1", "REVERIE_LOG_LEVEL": "error"}
        kept["REVERIE_KEY_FILE"] = str(tmp_path / "worker.key")
        process = subprocess.Popen([*COMMAND, option, target], stdout=subprocess.PIPE, env=kept)
        made.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"working\n"
        return process

    yield begin
    for process in made:
        process.kill()
        process.wait()


def wait_for(truth: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not truth():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)


def fill(memory: reverie.Memory, memories: int) -> None:
    """Memories that take long enough to dream that a signal comes in between."""
    memory.host.rules.set_policy(memory.actor, {"nightly": "off"})  # the jobs of these tests are the only ones
    for at in range(memories):
        memory.ref(f"m{at}").put_many([
            f"Service {n} of hall {at} listens on port {7000 + n * 7}; we decided it on day {n}." if n % 4 == 0
            else f"The reindex of hall {at} finished in {41 + n % 9} s."
            for n in range(200)
        ])  # fmt: skip


def running(memory: reverie.Memory) -> bool:
    return any(job.status == "running" for job in memory.host.jobs.all(memory.actor))


def test_a_worker_that_is_told_to_stop_finishes_its_job_and_takes_no_other(
    make_target: Callable[..., str], start: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    target = make_target()
    with reverie.open(target) as memory:
        fill(memory, MANY)
        worker = start(target)
        for at in range(MANY):
            memory.host.jobs.add(memory.actor, "dream", {"ref": f"m{at}"})
        wait_for(lambda: running(memory))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
        left = [job for job in memory.host.jobs.all(memory.actor) if job.name == "dream"]
        dreamt = memory.host.lineage.reports(memory.actor)
        assert {job.status for job in left} <= {"waiting"}
        assert len(dreamt) >= 1
        assert len(left) >= 1
        assert len(dreamt) + len(left) == MANY
        assert memory.verify().ok


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_the_job_of_a_worker_that_is_killed_is_taken_over_and_done_once(
    make_target: Callable[..., str],
    start: Callable[[str], subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = make_target()
    with reverie.open(target) as memory:
        fill(memory, 1)
        worker = start(target)
        memory.host.jobs.add(memory.actor, "dream", {"ref": "m0"})
        wait_for(lambda: running(memory))
        worker.kill()
        worker.wait(PATIENCE)
        assert running(memory)  # nobody has noticed yet
        host, clock = memory.host, memory.host.parts.clock
        later = clock.now  # as if the leases of the dead had run out
        monkeypatch.setattr(type(clock), "now", lambda self: later() + 2 * LEASE_MS)
        other: Runner = Worker(host, every_seconds=3600, poll_seconds=1)
        if target.startswith("postgresql:"):
            queue = EngineQueue(target)
            other = EngineWorker(host, queue, target, poll_seconds=1, heartbeat_seconds=0.2, stalled_seconds=0.5)
        other.start()
        try:
            wait_for(lambda: not host.jobs.all(memory.actor))
        finally:
            other.stop()
        assert [report.ref for report in host.lineage.reports(memory.actor)] == ["m0"]
        assert memory.verify().ok
