"""Runs over a real socket: streams that wait, and a process that dies in the middle of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from tests.acceptance.test_server import PATIENCE, Child, start

__all__ = ["start"]

SEAMS = {"OPENWOP_TEST_SEAM_ENABLED": "true"}
DYING = """
import os, sys, signal
from reverie.app import build_host
from reverie.protocols.openwop import runs
from reverie.dreams.engine import DreamEngine
from reverie.settings import Settings

runs.LEASE_MS = 300  # so that nobody waits long for the dead
host = build_host(Settings.load({}, data=sys.argv[1]))
actor = host.system_actor("default")
if sys.argv[2] == "working":
    DreamEngine._store = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
else:  # the pass has committed, the run has not ended
    host.runs._finish = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
host.runs.start(actor, "reverie.memory.distill", inputs={"memoryRef": sys.argv[2]})
"""


def client(child: Child) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {child.key}"}
    return httpx2.Client(base_url=child.url, headers=headers, timeout=PATIENCE, trust_env=False)


def test_a_stream_of_a_run_that_goes_on_is_fed_and_kept_alive(start: Callable[..., Child]) -> None:
    child = start(**SEAMS)
    with client(child) as caller:
        put = {"url": "/v1/host/workspace/files/a.md", "json": {"content": "x"}}
        caller.put(**put)  # type: ignore[arg-type]
        found = caller.get("/v1/host/reverie/events?type=workspace.updated").json()["events"]
        run = found[0]["data"]["run"]
        seen: list[str] = []
        alive = threading.Event()

        def follow() -> None:
            with caller.stream("GET", f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"}) as stream:
                for line in stream.iter_lines():
                    if line.startswith("data: "):
                        seen.append(json.loads(line[6:])["payload"].get("version", 0))
                    if line.startswith(":"):
                        alive.set()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        until = time.monotonic() + PATIENCE
        while len(seen) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        caller.put(**put)  # type: ignore[arg-type]
        while len(seen) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        assert seen == [0, 1, 2]
        assert alive.wait(PATIENCE)
        assert child.stop() == 0  # a stream that waits does not hold up the end
        thread.join(PATIENCE)


def test_a_run_whose_process_was_killed_is_resumed_once(start: Callable[..., Child], tmp_path: Path) -> None:
    child = start()
    key = child.key
    with client(child) as caller:
        for ref in ("working", "done"):
            for n in range(6):
                line = f"The watch of sector {n} saw {n + 3} lorries leave through the north gate."
                caller.post(f"/v1/host/reverie/memory/{ref}/entries", json={"content": line})
        child.stop()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    for when in ("working", "done"):  # where each was killed, and the memory it worked on
        data = str(tmp_path / "data")
        died = subprocess.run([sys.executable, "-c", DYING, data, when], env=environment, check=False)
        assert died.returncode == -signal.SIGKILL
    child = start(REVERIE_SCHEDULE_SECONDS="1")
    child.key = key
    with client(child) as caller:
        started = caller.get("/v1/host/reverie/events?type=run.started").json()["events"]
        runs = [event["data"]["run"] for event in started[-2:]]
        until = time.monotonic() + PATIENCE
        for run in runs:
            while (status := caller.get(f"/v1/runs/{run}").json()["status"]) == "running":
                assert time.monotonic() < until, "no process resumed the run"
                time.sleep(0.5)
            assert status == "completed"
            events: list[dict[str, Any]] = caller.get(f"/v1/runs/{run}/events").json()["events"]
            kinds = [event["type"] for event in events]
            assert kinds == ["run.started", "memory.compacted", "workspace.updated", "run.completed"]
        resumed = caller.get("/v1/host/reverie/events?type=run.resumed").json()["events"]
        assert sorted(event["data"]["resumed"] for event in resumed) == sorted(runs)
    child.stop()
