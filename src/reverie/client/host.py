"""The use cases of a host over REST, with the names and signatures that the embedded host has.

`Memory` and the command line work with either. The actor that every method takes is the embedded host's business: over
HTTP the key decides who is acting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

import msgspec
from msgspec import Struct

from reverie.client.connection import RETRY_SECONDS, Connection
from reverie.client.dreams import RemoteArchives, RemoteConsolidator, RemoteDreams, RemoteLineage, RemoteSchedules
from reverie.client.memory import RemoteEntries, RemoteLifecycle, RemoteReader, RemoteSearch
from reverie.client.tenant import RemoteAudit, RemoteBundles, RemoteForget, RemoteRescan, RemoteRules
from reverie.core.actor import Actor, Right
from reverie.core.errors import Forbidden, Invalid, NotFound


class _Caller(Struct, frozen=True):
    """The caller that the key stands for, as the host answers."""

    tenant: str
    id: str
    rights: frozenset[Right]
    authority: int
    scopes: frozenset[str]


def connect(
    url: str,
    *,
    key: str,
    tenant: str | None = None,
    retry_seconds: float = RETRY_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> RemoteHost:
    """Connect to a remote host and identify the key. Raises HostUnreachable, Unauthenticated, Forbidden.

    `tenant`, when given, must be the key's own. `sleep` is called between two attempts.
    """
    connection = Connection(url, key, retry_seconds=retry_seconds, sleep=sleep)
    try:
        try:
            me = msgspec.convert(connection.get("/me"), _Caller)
        except msgspec.ValidationError:
            raise connection.foreign("with other JSON") from None
        except NotFound:  # a host, but the address goes on behind it
            raise connection.foreign("404") from None
        if tenant is not None and me.tenant != tenant:
            raise Forbidden(f"The key belongs to the tenant {me.tenant}, not to {tenant}. Use a key of that tenant.")
        actor = Actor(
            tenant=me.tenant, id=me.id, rights=me.rights, authority=me.authority, scopes=me.scopes, door="rest"
        )
        return RemoteHost(connection, actor)
    except BaseException:
        connection.close()
        raise


class RemoteHost:
    """A host over HTTP: one tenant's use cases, as far as they exist over REST."""

    def __init__(self, connection: Connection, actor: Actor) -> None:
        self.connection = connection
        self.actor = actor
        self.entries = RemoteEntries(connection)
        self.reader = RemoteReader(connection)
        self.search = RemoteSearch(connection)
        self.lifecycle = RemoteLifecycle(connection)
        self.dreams = RemoteDreams(connection)
        self.lineage = RemoteLineage(connection)
        self.consolidator = RemoteConsolidator(connection)
        self.archives = RemoteArchives(connection)
        self.schedules = RemoteSchedules(connection)
        self.forget = RemoteForget(connection)
        self.rules = RemoteRules(connection)
        self.audit = RemoteAudit(connection)
        self.rescan = RemoteRescan(connection)
        self.bundles = RemoteBundles(connection)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise Invalid(
            "This works on a data folder or a database only, not on a running host. Run it on the host's machine, "
            "without --url and REVERIE_URL.",
            code="not_remote",
            details={"part": name},
        )

    def tenants(self) -> list[str]:
        """The tenant of the key."""
        return [self.actor.tenant]

    def close(self) -> None:
        """Close the connections."""
        self.connection.close()

    def __repr__(self) -> str:
        return f"<RemoteHost {self.connection.url}, tenant {self.actor.tenant}>"
