"""State of the Field that is not memory: agents, sessions, tasks, conflicts, handoffs. JSON documents, versioned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from reverie.core import query
from reverie.store.contract import ReadTx, WriteTx


def load(tx: ReadTx, space: str, key: str) -> tuple[dict[str, Any], int] | None:
    """A document and its version."""
    found = tx.load(space, key)
    return None if found is None or found.body is None else (orjson.loads(found.body), found.version)


def save(tx: WriteTx, space: str, key: str, body: dict[str, Any], *, seq: int, expected: int | None) -> None:
    """The next version. Raises Conflict, on which the Field retries, unless `expected` is the newest (0: none)."""
    tx.save(space, key, orjson.dumps(body), seq=seq, expected=expected)


def each(tx: ReadTx, space: str, prefix: str = "") -> Iterator[tuple[str, dict[str, Any], int]]:
    """Every document of a space by key: key, body, version."""
    found = query.each(lambda cursor: tx.documents(space, prefix=prefix, cursor=cursor))
    return ((document.key, orjson.loads(document.body or b"{}"), document.version) for document in found)
