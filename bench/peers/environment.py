"""An environment per peer under `.venvs/`, made on first use from the peer's pinned requirements."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SHARED = {"langgraph_shipped": "langgraph"}
"""Peers that run in the environment of another."""


class NotAvailableError(Exception):
    """A peer that cannot be measured here, and why."""


def interpreter(peer: str) -> str:
    """The Python that runs a peer: ours when it has no requirements of its own, else one in its environment."""
    peer = SHARED.get(peer, peer)
    wanted = HERE / f"{peer}.txt"
    if not wanted.exists():
        return sys.executable
    folder = ROOT / ".venvs" / peer
    python = folder / "bin" / "python"
    stamp = folder / "requirements.sha256"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == digest):
        print(f"making the environment of {peer} ...", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(wanted)])
        stamp.write_text(digest)
    return str(python)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise NotAvailableError(lines[-1][:200] if lines else f"{command[2]} failed")


class Child:
    """A peer's process. `ask` sends one command and waits for its answer."""

    def __init__(self, peer: str) -> None:
        command = [interpreter(peer), "-m", f"bench.peers.{peer}"]
        (ROOT / ".venvs").mkdir(exist_ok=True)
        self._errors = (ROOT / ".venvs" / f"{peer}.log").open("w")
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.versions = self._answer()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a command; `error` in it says what went wrong there."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            last = Path(self._errors.name).read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise NotAvailableError((last or ["it ended without a word"])[0][:200])
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._errors.close()
