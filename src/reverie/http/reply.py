"""A JSON answer, encoded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from starlette.responses import Response


class Reply(Response):
    """A document as JSON."""

    media_type = "application/json"

    def __init__(
        self,
        document: Any,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        default: Callable[[Any], Any] | None = None,
    ) -> None:
        # Not Starlette's: that decodes and encodes every header again.
        self.status_code = status
        self.background = None
        self.body = orjson.dumps(document, default=default)
        self.raw_headers = [
            (b"content-length", str(len(self.body)).encode()),
            (b"content-type", b"application/json"),
        ]
        if headers:
            self.raw_headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


class TextReply(Reply):
    """A document with memory text. It is never stored for a retry, where a forget would not find it."""
