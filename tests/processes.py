"""Processes that tests start to kill them: real ones, forked from one that has imported everything.

A start takes some milliseconds instead of a second, so that a test can afford more kills. Each test process has one
such process, which the standard library runs; nothing of a test is in it, and no store is open there.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.warm"])
PATIENCE = 120.0


class Child:
    """A process that runs `main(*arguments)` with today's environment, and what it said."""

    def __init__(self, main: Callable[..., object], *arguments: Any, **environment: str) -> None:
        self.said = b""
        self._errors = tempfile.NamedTemporaryFile(prefix="reverie-child-")  # noqa: SIM115 - closed by `end`
        self._heard, out = _FORKS.Pipe(duplex=False)
        rest = (Path.cwd(), dict(os.environ) | environment, out, self._errors.name)
        self._process = _FORKS.Process(target=_begin, args=(main, arguments, *rest), daemon=True)
        self._process.start()
        out.close()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    def listen(self, *, until: bytes | None = None, seconds: float = PATIENCE) -> None:
        """Read what it says: until it said something, until the time is over, or until it ends."""
        deadline = time.monotonic() + seconds
        while until is None or until not in self.said:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._heard], [], [], left)[0]:
                return
            part = os.read(self._heard.fileno(), 65536)
            if not part:
                return
            self.said += part

    def listen_for(self, lines: int) -> None:
        """Listen until it has said so many lines."""
        deadline = time.monotonic() + PATIENCE
        while self.said.count(b"\n") < lines:
            heard = len(self.said)
            self.listen(until=self.said + b"?", seconds=0.05)
            assert len(self.said) > heard or time.monotonic() < deadline, f"{lines} lines were not said"

    def kill(self) -> int:
        """As sudden as a power cut. Returns how it ended: it may have been faster."""
        if self._process.is_alive():
            os.kill(self.pid, signal.SIGKILL)
        return self.end()

    def end(self, *, seconds: float = PATIENCE) -> int:
        """Wait for its end: the exit code, or minus the signal. Whoever fails in another way fails the test."""
        try:
            self.listen(seconds=seconds)
            self._process.join(seconds)
            code = self._process.exitcode
            told = Path(self._errors.name).read_text()[-3000:]
            assert code in (0, -signal.SIGKILL), f"exit code {code}: {told}"
            return int(code)
        finally:
            self._heard.close()
            self._errors.close()


class Command:
    """A process that runs `main(*arguments)` in this environment and no other, with what tests use of `Popen`."""

    def __init__(self, main: Callable[..., object], *arguments: str, environment: Mapping[str, str]) -> None:
        heard, out = _FORKS.Pipe(duplex=False)
        read, errors = _FORKS.Pipe(duplex=False)
        rest = (Path.cwd(), dict(environment), out, errors)
        self._process = _FORKS.Process(target=_begin, args=(main, arguments, *rest), daemon=True)
        self._process.start()
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno()), encoding="utf-8") for end in (heard, read))
        for end in (heard, out, read, errors):
            end.close()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a process of a test", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()


def serve(*arguments: str) -> None:
    """`python -m reverie.http` with these arguments."""
    from reverie.http.__main__ import main

    sys.argv = ["reverie.http", *arguments]
    sys.exit(main())


def run(main: Callable[..., object], *arguments: Any, **environment: str) -> int:
    """Run `main(*arguments)` in a process of its own; how it ended."""
    return Child(main, *arguments, **environment).end()


def die(*_: Any) -> None:
    """End this process, as sudden as a power cut."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(milliseconds: float) -> None:
    """End this process in a while, wherever it is then."""
    signal.signal(signal.SIGALRM, die)
    signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)


def _begin(
    main: Callable[..., object],
    arguments: tuple[Any, ...],
    folder: Path,
    environment: dict[str, str],
    out: Connection,
    errors: str | Connection,
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out.fileno(), 1)
    if isinstance(errors, str):
        os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    else:
        os.dup2(errors.fileno(), 2)
        errors.close()
    out.close()
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    main(*arguments)
