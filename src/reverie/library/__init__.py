"""Reverie as a library, embedded or on a running host.

import reverie

memory = reverie.open("./memory")                             # or reverie.open("http://127.0.0.1:8484", key=...)
notes = memory.ref("support-bot")
notes.put("The customer prefers e-mail.", tags=["preference"])
for hit in notes.search("how to reach the customer"):
    print(hit.score, hit.text)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from reverie.app import build_host
from reverie.client import connect
from reverie.core.actor import Actor
from reverie.core.entry import valid_tenant
from reverie.core.errors import Invalid
from reverie.core.ports import Clock, Embedder
from reverie.distil.request import Distiller
from reverie.host import Host
from reverie.library.dreams import Age, Dreams, age_ms
from reverie.library.memory import Memory
from reverie.library.ref import Ref
from reverie.settings import Settings, client_setting

__all__ = ["Age", "Dreams", "Memory", "Ref", "age_ms", "memory_of", "open"]


def open(  # noqa: A001
    target: str | Path | None = None,
    *,
    tenant: str | None = None,
    actor: str = "library",
    key: str | None = None,
    embedder: Embedder | None = None,
    distiller: Distiller | None = None,
    clock: Clock | None = None,
) -> Memory:
    """Open a memory: a folder (made when missing), a database URL, or the address of a running host with a `key`.

    Without a target: REVERIE_URL with REVERIE_KEY, else REVERIE_DATABASE_URL, else REVERIE_DATA. The default tenant is
    `default`; on a host the key decides, and a `tenant` that is given must be the key's. `embedder`, `distiller` and
    `clock` are implementations of those ports, for an embedded memory. Safe to share between threads; close it, or use
    it as a context manager.

    >>> with reverie.open("./memory") as opened:
    ...     opened.ref("notes").put("Stored in a folder.").ref
    'notes'
    """
    text = (client_setting("REVERIE_URL") or None) if target is None else str(target)
    if text and text.startswith(("http://", "https://")):
        if embedder or distiller or clock:
            raise Invalid("embedder, distiller and clock are the host's own: configure them there.")
        remote = connect(text, key=key or client_setting("REVERIE_KEY"), tenant=tenant)
        return Memory(cast("Host", remote), remote.actor, location=text)
    if not text:
        settings = Settings.load()
    elif "://" in text:
        settings = Settings.load(database_url=text)
    else:
        settings = Settings.load(data=text)
    tenant = "default" if tenant is None else tenant
    if not valid_tenant(tenant):
        raise Invalid("A tenant is 1 to 64 lower-case letters, digits and . _ -")
    host = build_host(settings, embedder=embedder, distiller=distiller, clock=clock)
    named = None if distiller is None else distiller.name
    who = Actor(tenant=tenant, id=f"local:{actor}", door="library")
    return Memory(host, who, location=settings.database, distiller=named)


def memory_of(store: Any, tenant: str) -> tuple[Any, Callable[[], None] | None]:
    """(the memory that `store` is or names, the function that closes it if it was opened here)."""
    if isinstance(store, str | Path):
        opened = open(store, tenant=tenant)
        return opened, opened.close
    inner = getattr(store, "memory", store)  # a ref, or an async memory around one
    for candidate in (store, inner, getattr(store, "_memory", None)):
        if candidate is not None and hasattr(candidate, "host") and hasattr(candidate, "actor"):
            return candidate, None
    raise Invalid("store is a memory that reverie.open gave, or a folder or URL.", pointer="/store")
