"""The sign of life of work in hand: its lease is renewed until it is done, and ends by itself when the process dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from reverie.core.entry import Scope
from reverie.core.errors import ReverieError
from reverie.host.parts import Parts

LEASE_MS = 30_000
_BEAT_SECONDS = 10.0


class Pulse:
    """Renews the leases of one process. One thread, alive only while there is work."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.holder = f"pulse/{parts.ids.new()}"
        self._lock = threading.Lock()
        self._held: set[tuple[str, str]] = set()
        self._idle = threading.Event()
        self._thread: threading.Thread | None = None

    def until(self) -> int:
        """The end of a lease taken now."""
        return self._parts.clock.now() + LEASE_MS

    @contextmanager
    def beats(self, tenant: str, lease: str) -> Iterator[None]:
        """Keep a lease that is already ours alive."""
        with self._lock:
            self._held.add((tenant, lease))
            if self._thread is None:
                self._idle.clear()
                self._thread = threading.Thread(target=self._beat, name="reverie-pulse", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held.discard((tenant, lease))
                if not self._held:
                    self._thread = None
                    self._idle.set()

    def _beat(self) -> None:
        idle, thread = self._idle, threading.current_thread()
        while not idle.wait(_BEAT_SECONDS):
            with self._lock:
                if self._thread is not thread:
                    return
                held = list(self._held)
            for tenant, lease in held:
                try:
                    self._renew(tenant, lease)
                except ReverieError:  # the lease ends by itself, and what the run writes is fenced
                    continue

    def _renew(self, tenant: str, lease: str) -> None:
        until = self.until()
        self._parts.store.write(Scope(tenant), lambda tx: tx.claim(lease, self.holder, until=until))
