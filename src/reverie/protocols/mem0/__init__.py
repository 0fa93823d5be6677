"""mem0: the routes of its platform that its client uses, under /mem0.

    client = MemoryClient(host="http://127.0.0.1:8484/mem0", api_key=KEY)

No model is called: messages are stored as they were said, and dreams distil them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.http.door import Door

PREFIX = "/mem0"


def door() -> Door:
    """The door, ready to be mounted."""
    from reverie.http.door import Door
    from reverie.http.problems import status_of
    from reverie.protocols.mem0.routes import router

    return Door(name="mem0", prefix=PREFIX, routes=router.routes, status_of=status_of, body_of=_body, scheme="token")


def _body(_: str, code: str, message: str, details: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"detail": message, "code": code, **({"details": dict(details)} if details else {})}
