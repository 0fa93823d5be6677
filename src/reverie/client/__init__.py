"""A running host over HTTP, with the use cases of an embedded one: `connect(url, key=...)` gives a RemoteHost."""

from reverie.client.connection import Connection
from reverie.client.host import RemoteHost, connect

__all__ = ["Connection", "RemoteHost", "connect"]
