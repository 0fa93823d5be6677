"""Addresses and their operations."""

from __future__ import annotations

PREFIX = "/akashik"
ADDRESSES = {
    "/v1/register": "REGISTER",
    "/v1/deregister": "DEREGISTER",
    "/v1/record": "RECORD",
    "/v1/attune": "ATTUNE",
    "/v1/detect": "DETECT",
    "/v1/merge": "MERGE",
    "/v1/replay": "REPLAY",
    "/v1/compact": "COMPACT",
    "/v1/subscribe": "SUBSCRIBE",
    "/v1/handoff": "HANDOFF",
    "/v1/coordinate": "COORDINATE",
    "/v1/session": "SESSION",
}
"""HTTP path of each operation."""


def operation_at(path: str) -> str | None:
    """The operation of a path, with the prefix."""
    return ADDRESSES.get(path.removeprefix(PREFIX))
