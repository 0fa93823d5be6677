"""Faults on request, for tests only: `POST /v1/test/faults`. Off unless the process was started with the switch."""

from __future__ import annotations

import threading

from reverie.protocols.akashik.errors import FieldError

KINDS = ("enrichment", "detection_timeout", "storage_full")


class FaultSwitches:
    """Active faults by tenant. Local to the process: a seam for tests, not state of the Field."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._lock = threading.Lock()
        self._on: set[tuple[str, str]] = set()

    def switch(self, tenant: str, kind: object, on: object) -> None:
        """Turn a fault on or off."""
        if kind not in KINDS or not isinstance(on, bool):
            raise FieldError("INVALID_REQUEST", f"kind is one of {', '.join(KINDS)}, on is true or false.")
        with self._lock:
            if on:
                self._on.add((tenant, str(kind)))
            else:
                self._on.discard((tenant, str(kind)))

    def on(self, tenant: str, kind: str) -> bool:
        """Whether a fault is switched on."""
        return self.enabled and (tenant, kind) in self._on

    def holds_vectors(self, tenant: str) -> bool:
        """Whether new entries of a tenant are to stay without a vector."""
        return self.on(tenant, "enrichment")
