"""Base of every part of a remote host."""

from __future__ import annotations

from reverie.client.connection import Connection, segment


class RemoteUseCase:
    """One use case of a host, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection


def entry_path(ref: str, entry_id: str) -> str:
    """The path of an entry."""
    return f"/memory/{segment(ref)}/entries/{segment(entry_id)}"
