"""Readiness of a host, found by trying the store, the writer and the disk."""

from __future__ import annotations

import logging
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.ops.logs import Action, log
from reverie.settings import Settings
from reverie.store.contract import ControlTx

Status = Literal["ok", "degraded", "unavailable"]
LOW_BYTES = 512 * 2**20
"""With less free disk space the host is degraded."""
NO_BYTES = 4 * 2**20
"""With less free disk space it is unavailable: the next write may not fit."""
_PATIENCE_SECONDS = 2.0
_FRESH_SECONDS = 1.0
_JUMP_MS = 60_000
_JUMP_SHOWN_SECONDS = 600


class Check(Struct, frozen=True):
    """The result of one attempt."""

    status: Status
    detail: str = ""


class Readiness(Struct, frozen=True):
    """Readiness for traffic."""

    status: Status
    checks: Mapping[str, Check]

    def document(self) -> dict[str, Any]:
        """The body of `/readyz`."""
        checks = {
            name: {"status": c.status, **({"detail": c.detail} if c.detail else {})} for name, c in self.checks.items()
        }
        return {"status": self.status, "checks": checks}


class Health:
    """Tries the store, the writer and the disk. A result is kept for a second, so that frequent probes cost nothing."""

    def __init__(self, settings: Settings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._lock = threading.Lock()
        self._last: tuple[float, Readiness] | None = None
        self._clock = (host.parts.clock.now(), time.monotonic())
        self._jump: tuple[float, int] | None = None
        """Time and size, in milliseconds, of the last clock jump."""
        self._attempts: dict[str, threading.Thread] = {}
        """The latest attempt of each kind."""
        self.stopping = False

    def ready(self) -> Readiness:
        """ok: everything works. degraded: it serves, with less. unavailable: do not send traffic."""
        with self._lock:
            if self._last is None or time.monotonic() - self._last[0] > _FRESH_SECONDS or self.stopping:
                before, found = self._last, self._look()
                self._last = (time.monotonic(), found)
                if before is not None and before[1].status != found.status:
                    log(Action.READINESS, level=logging.WARNING, before=before[1].status, now=found.status)
            return self._last[1]

    def _look(self) -> Readiness:
        disk = self._disk()
        checks = {"read": self._attempt("read", self._read), "disk": disk}
        if self._settings.read_only:
            checks["write"] = Check("degraded", "read-only")
        else:
            # store a change only when that is doubtful: the last attempt failed, or the disk has little room
            before = self._last[1].checks.get("write") if self._last else None
            really = disk.status != "ok" or (before is not None and before.status != "ok")
            checks["write"] = self._attempt("write", lambda: self._write(really=really))
        if self._host.parts.embedder is None:
            checks["meaning"] = Check("degraded", "no embedder: search by words only")
        if jumped := self._clock_jump():
            checks["clock"] = Check("degraded", f"the clock jumped by {jumped / 1000:+.0f} s")
        if self.stopping:
            checks["process"] = Check("unavailable", "stopping")
        found = {check.status for check in checks.values()}
        status: Status = "unavailable" if "unavailable" in found else "degraded" if "degraded" in found else "ok"
        return Readiness(status, checks)

    def _clock_jump(self) -> int | None:
        """The size of a clock jump within the last minutes, measured against the monotonic clock; None without one."""
        now, steady = self._host.parts.clock.now(), time.monotonic()
        before, then = self._clock
        self._clock = (now, steady)
        jump = int(now - before - (steady - then) * 1000)
        if abs(jump) > _JUMP_MS:
            self._jump = (steady, jump)
            log(Action.CLOCK, level=logging.WARNING, milliseconds=jump)
        return self._jump[1] if self._jump and steady - self._jump[0] < _JUMP_SHOWN_SECONDS else None

    def _read(self) -> None:
        self._host.parts.store.control(lambda tx: tx.setting("health"))

    def _write(self, *, really: bool) -> None:
        """Pass through the queue and the writing thread. Only with `really` is anything stored."""

        def body(tx: ControlTx) -> None:
            if really:
                tx.set_setting("health", secrets.token_bytes(8))  # SQLite does not store the same again

        self._host.parts.store.control(body, write=True)

    def _disk(self) -> Check:
        if not self._host.parts.store.durable:
            return Check("degraded", "in memory: nothing survives this process")
        if self._settings.postgres:
            return Check("ok", "the database server's")
        if self._settings.read_only:
            return Check("ok", "not written to")
        try:
            free = shutil.disk_usage(Path(self._settings.database).expanduser().resolve().parent).free
        except OSError:
            return Check("unavailable", "the data folder cannot be read")
        if free < NO_BYTES:
            return Check("unavailable", "the disk is full")
        return Check("degraded", "little disk space left") if free < LOW_BYTES else Check("ok")

    def _attempt(self, name: str, work: Callable[[], None]) -> Check:
        """Try within a time limit, in a daemon thread. While an attempt hangs, no other of its kind is started."""
        outcome: list[Check] = []

        def run() -> None:
            try:
                work()
                outcome.append(Check("ok"))
            except ReverieError as error:
                outcome.append(Check("unavailable", error.reason))
            except Exception as fault:
                outcome.append(Check("unavailable", type(fault).__name__))

        before = self._attempts.get(name)
        if before is None or not before.is_alive():
            self._attempts[name] = thread = threading.Thread(target=run, name="reverie-health", daemon=True)
            thread.start()
            thread.join(_PATIENCE_SECONDS)
        return outcome[0] if outcome else Check("unavailable", f"no answer within {_PATIENCE_SECONDS:g} s")
