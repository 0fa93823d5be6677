"""Forget, rules, audit, re-scan and bundles over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reverie.client import documents as doc
from reverie.client.connection import RemoteUseCase, segment
from reverie.client.memory import RemoteReader
from reverie.client.sse import lines
from reverie.core.actor import Actor
from reverie.core.event import Event
from reverie.core.policy import TenantPolicy
from reverie.memory.audit import Verdict
from reverie.memory.export import Imported, check_bundle
from reverie.privacy.forget import Forgotten
from reverie.privacy.rescan import ScanReport


class RemoteForget(RemoteUseCase):
    """Forgetting."""

    def forget(
        self, actor: Actor, subject: str, *, ref: str | None = None, mentions: bool = False, preview: bool = False
    ) -> Forgotten:
        """Destroy everything about a subject."""
        body = {"subject": subject, "ref": ref, "mentions": mentions, "preview": preview}
        return doc.to_struct(self._http.post("/memory/forget", body, again=preview, long=True), Forgotten)


class RemoteRules(RemoteUseCase):
    """Policy and registered secrets."""

    def policy(self, actor: Actor) -> TenantPolicy:
        """The tenant's policy."""
        return doc.to_policy(self._http.get("/policy"))

    def set_policy(self, actor: Actor, changes: Mapping[str, Any]) -> TenantPolicy:
        """Change the tenant's policy."""
        return doc.to_policy(self._http.send("PATCH", "/policy", body=dict(changes), again=True))

    def secret_ids(self, actor: Actor) -> list[str]:
        """The ids of registered secrets."""
        return list(self._http.get("/secrets")["secrets"])

    def register(self, actor: Actor, secret_id: str, value: str) -> int:
        """Register a secret; return the log position."""
        return int(self._http.post("/secrets", {"id": secret_id, "value": value}, again=True)["seq"])

    def remove(self, actor: Actor, secret_id: str) -> int:
        """Remove a secret; return the log position."""
        return int(self._http.send("DELETE", f"/secrets/{segment(secret_id)}")["seq"])


class RemoteAudit(RemoteUseCase):
    """Verification and export of the log."""

    def verify(self, actor: Actor, *, progress: Any = None) -> Verdict:
        """Verify the log."""
        return doc.to_struct(self._http.get("/audit/verify", long=True), Verdict)

    def export(self, actor: Actor, *, after: int = 0) -> Iterator[Event]:
        """Every event after a position, read page by page."""
        reader = RemoteReader(self._http)
        while page := reader.events(actor, after=after):
            yield from page
            after = page[-1].seq


class RemoteRescan(RemoteUseCase):
    """The re-scan for secrets."""

    def scan(self, actor: Actor, *, dry_run: bool = False, progress: Any = None) -> ScanReport:
        """Re-scan stored text."""
        return doc.to_struct(self._http.post("/scan", {"dry_run": dry_run}, again=True, long=True), ScanReport)


class RemoteBundles(RemoteUseCase):
    """Bundles."""

    def export(self, actor: Actor, *, ref: str | None = None, events: bool = True) -> Iterator[bytes]:
        """The lines of a bundle."""
        import httpx2

        with self._http.stream("GET", "/export", query={"ref": ref, "events": events}, again=True) as stream:
            try:
                for line in lines(stream.iter_bytes()):
                    yield line + b"\n"
            except (httpx2.TransportError, httpx2.StreamError) as fault:
                raise self._http.lost(fault, "The bundle is cut short: export it again.") from None

    def check(self, lines: Iterable[bytes]) -> Mapping[str, Any]:
        """Read a bundle to the end. Raises Invalid when it is damaged or cut short."""
        return check_bundle(lines)

    def load(
        self,
        actor: Actor,
        lines: Iterable[bytes],
        *,
        ref: str | None = None,
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Imported:
        """Store a checked bundle, in one request. Importing twice is importing once, so it may be repeated."""
        headers = {"Content-Type": "application/x-ndjson"}
        query = {"ref": ref}
        answer = self._http.send(
            "POST", "/import", query=query, body=b"".join(lines), headers=headers, again=True, long=True
        )
        return doc.to_struct(answer, Imported)
