"""The error body of a host as the exception that the embedded library raises."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from reverie.core import dream  # its errors are part of the tree
from reverie.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    ReverieError,
    StoreError,
    StoreFull,
    TooLarge,
    Unauthenticated,
    Unprocessable,
)

_BY_STATUS: dict[int, type[ReverieError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    415: Invalid,
    422: Unprocessable,
    429: RateLimited,
    503: StoreError,
    507: StoreFull,
}
"""The class of a code that no class has as its own."""

_FINER: dict[str, type[ReverieError]] = {"embedder_failed": ReverieError, "distiller_failed": ReverieError}
_ADDED = ("next", "pointer")
"""Members that the HTTP interface adds to the details of an error."""

assert issubclass(dream.GateFailed, ReverieError)


class _Body(msgspec.Struct):
    error: str
    message: str
    details: dict[str, Any] = {}


def error_of(status: int, body: bytes, retry_after: str | None = None) -> ReverieError | None:
    """The error of an answer; None when the body is not one of ours."""
    try:
        found = msgspec.json.decode(body, type=_Body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    kind = _classes().get(found.error) or _FINER.get(found.error) or _BY_STATUS.get(status, ReverieError)
    details = {name: value for name, value in found.details.items() if name not in _ADDED}
    if found.error == "rate_limited" and retry_after and retry_after.isdigit():
        details.setdefault("retry_after_seconds", int(retry_after))
    pointer = found.details.get("pointer")
    return kind(
        found.message,
        code=found.error,
        pointer=pointer if isinstance(pointer, str) else None,
        details=details,
    )


@cache
def _classes() -> dict[str, type[ReverieError]]:
    """Every error class of the core by its code."""
    results: dict[str, type[ReverieError]] = {}
    waiting: list[type[ReverieError]] = [ReverieError]
    while waiting:
        kind = waiting.pop()
        results.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return results
