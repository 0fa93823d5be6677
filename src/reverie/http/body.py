"""The size limit of a request body: applied before the body is read, or, without a length, as it arrives."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from reverie.core.errors import TooLarge
from reverie.http.door import Doors
from reverie.http.limits import Limits, key_of
from reverie.http.problems import problem


class BodyLimit:
    """A limit of `most` bytes. A body without a length also counts against the key's byte rate as it arrives."""

    def __init__(self, most: int, *, limits: Limits, doors: Doors) -> None:
        self._most = most
        self._limits = limits
        self._doors = doors
        self._message = f"A request body is at most {most} bytes. Send less at a time."

    def refuse(self, scope: Scope, length: int | None) -> Response | None:
        """The refusal of a Content-Length that is too large or not a number; None otherwise."""
        if length is None:
            return None
        if length < 0:
            return problem(400, "validation_error", "Content-Length is not a number.")
        if length > self._most:
            shape = self._doors.shape(scope["path"])
            return problem(413, "too_large", self._message, details={"max_bytes": self._most}, shape=shape)
        return None

    def expected(self, length: int | None) -> int:
        """The bytes that a body of this announced length costs its key: none when it is refused or has no length."""
        return length if length is not None and 0 <= length <= self._most else 0

    def count(self, scope: Scope, length: int | None, receive: Receive) -> Receive:
        """`receive`, which raises TooLarge or RateLimited when the body passes a limit."""
        if length is not None:
            return receive  # counted at admission; a server ends the body at the length announced
        seen = 0

        async def counting() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                size = len(message.get("body", b""))
                seen += size
                if seen > self._most:
                    raise TooLarge(self._message, details={"max_bytes": self._most})
                actor = scope["state"].get("actor")  # known before the body is read, at the console only then
                if actor is not None:
                    self._limits.bytes.take(key_of(actor), size)
            return message

        return counting


def length_of(scope: Scope) -> int | None:
    """The announced length of the body; -1 when it is not a number, None when there is none.

    A length beside Transfer-Encoding is ignored: some servers read all chunks regardless.
    """
    length = None
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length":
            length = int(value) if value.isdigit() and len(value) < 19 else -1
    return length
