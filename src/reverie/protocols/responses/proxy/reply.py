"""Answers of the upstream, read whole or left open."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import httpcore2

from reverie.protocols.responses.proxy.relay import Header, header, pieces


@dataclass(slots=True)
class UpstreamReply:
    """An answer of the upstream: read whole, or open."""

    status: int
    headers: list[Header]
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None


async def read(response: httpcore2.Response, *, whole: bool) -> UpstreamReply:
    """The answer to a request; a stream stays open unless `whole`."""
    headers = list(response.headers)
    if not whole and b"event-stream" in (header(headers, b"content-type") or b""):
        return UpstreamReply(int(response.status), headers, stream=pieces(response))
    body = b"".join([piece async for piece in pieces(response)])
    return UpstreamReply(int(response.status), headers, body)


def decoder(headers: Sequence[Header]) -> Callable[[bytes], bytes]:
    """Return a decoder of the body for our own reading; the caller gets the bytes unchanged."""
    packed = (header(headers, b"content-encoding") or b"identity").strip().lower()
    if packed not in (b"gzip", b"deflate"):
        return bytes
    unpack = zlib.decompressobj(47 if packed == b"gzip" else zlib.MAX_WBITS)

    def read_part(data: bytes) -> bytes:
        try:
            return unpack.decompress(data)
        except zlib.error:
            return b""

    return read_part
