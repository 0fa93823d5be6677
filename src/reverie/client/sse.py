"""Lines of a stream, and server-sent events as messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One event of a stream."""

    name: str
    data: bytes


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends. Only a line feed ends a line: JSON may hold every other separator."""
    rest = b""
    for piece in pieces:
        *found, rest = (rest + piece).split(b"\n")
        yield from found
    if rest:
        yield rest


def messages(pieces: Iterable[bytes]) -> Iterator[Message]:
    """The messages of a stream; comments, which are signs of life, are left out."""
    name, data = "message", list[bytes]()
    for line in lines(pieces):
        line = line.removesuffix(b"\r")
        if not line:
            if data:
                yield Message(name, b"\n".join(data))
            name, data = "message", []
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value.decode()
        elif field == b"data":
            data.append(value)
