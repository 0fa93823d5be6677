"""What passes through the proxy arrives as it was sent, both ways: the same exchange, direct and proxied, compared."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.relay import Answered, Wire, exchange, running

from reverie.protocols.responses.proxy.application import Proxy
from reverie.protocols.responses.proxy.relay import Upstream, normal_path

TOKEN = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12).map(lambda t: f"x-{t}".encode())
VALUE = st.binary(max_size=40).map(lambda raw: bytes(b for b in raw if 0x20 < b < 0x7F or b >= 0x80))
HEADERS = st.lists(st.tuples(TOKEN.filter(lambda name: name != b"x-reverie-scope"), VALUE), max_size=6)
ANY_PATH = st.text("abcXYZ019/._~%!$&'()*+,;=:@{}|\"<>^`[]", max_size=30).map(lambda t: b"/v1/" + t.encode())
PATH = ANY_PATH.filter(lambda path: normal_path({"raw_path": path}) == path)
STEP = st.sampled_from(
    [
        b"/",
        b"//",
        b"\\",
        b".",
        b"..",
        b"%2e",
        b"%2E",
        b"%2f",
        b"%5c",
        b"%252e",
        b"%25252e",
        b";",
        b"%00",
        b"%0d%0a",
        b"a",
        b"%61",
        b"%",
    ]
)
WILD_PATH = st.lists(STEP, max_size=8).map(lambda steps: b"/v1/" + b"".join(steps))
QUERY = st.text("abc019=&%+/?~|{}", max_size=20).map(str.encode)
BODY = st.one_of(st.binary(max_size=300), st.integers(1, 200_000).map(lambda n: b"\x00\xff{]" * (n // 4)))
METHOD = st.sampled_from([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"HEAD"])
STATUS = st.sampled_from([200, 201, 204, 301, 304, 400, 401, 404, 418, 429, 500, 503])
FRAMING = st.sampled_from(["length", "chunked", "close"])


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


@pytest.fixture(scope="module")
def proxy(wire: Wire) -> Iterator[int]:
    with running(Proxy(Upstream(wire.root + "/v1"), None)) as root:
        yield int(root.rsplit(":", 1)[1])


def framed(status: int, headers: list[tuple[bytes, bytes]], body: bytes, framing: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Because".encode(), *(name + b": " + value for name, value in headers)]
    if status in (204, 304):
        return b"\r\n".join([*lines, b"", b""])
    if framing == "length":
        lines.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join([*lines, b"", body])
    if framing == "close":
        return b"\r\n".join([*lines, b"Connection: close", b"", body])
    half = len(body) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
    return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", chunks + b"0\r\n\r\n"])


def request(
    method: bytes,
    path: bytes,
    query: bytes,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    chunked: bool,
    *,
    port: int,
) -> bytes:
    target = path + (b"?" + query if query else b"")
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: localhost:%d" % port, b"Connection: close"]
    lines.append(b"Authorization: Bearer t-1")
    lines += [name + b": " + value for name, value in headers]
    if chunked:
        lines.append(b"Transfer-Encoding: chunked")
        chunks = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return b"\r\n".join([*lines, b"", chunks + b"0\r\n\r\n"])
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body])


def end_to_end(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    hop = (b"connection", b"transfer-encoding", b"host", b"keep-alive")
    return [(name.lower(), value) for name, value in headers if name.lower() not in hop]


def shown(answer: Answered) -> tuple[bytes, list[tuple[bytes, bytes]], bytes, bool]:
    return answer.line.split()[1], end_to_end(answer.headers), answer.body, answer.whole


@examples(120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(METHOD, PATH, QUERY, HEADERS, BODY, st.booleans(), STATUS, HEADERS, BODY, FRAMING)
def test_direct_and_proxied_are_the_same_bytes(
    wire: Wire,
    proxy: int,
    method: bytes,
    path: bytes,
    query: bytes,
    sent: list[tuple[bytes, bytes]],
    body: bytes,
    chunked: bool,
    status: int,
    given_back: list[tuple[bytes, bytes]],
    answer: bytes,
    framing: str,
) -> None:
    if method == b"HEAD":
        framing, answer = "length", b""
    wire.answer, wire.cut = framed(status, given_back, answer, framing), framing == "close"
    wire.seen.clear()
    raw = request(method, path, query, sent, body, chunked, port=proxy)
    direct = exchange(wire.port, raw, method=method)
    proxied = exchange(proxy, raw, method=method)
    assert shown(direct) == shown(proxied)
    first, second = wire.seen
    assert first.line == second.line
    assert first.body == second.body == body
    assert end_to_end(first.headers) == end_to_end(second.headers)


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WILD_PATH)
def test_no_path_leads_out_of_the_base(wire: Wire, proxy: int, path: bytes) -> None:
    wire.answer, wire.cut = framed(200, [], b"", "length"), False
    wire.seen.clear()
    answer = exchange(proxy, request(b"GET", path, b"", [], b"", False, port=proxy))
    if answer.line.split()[1] == b"400":
        assert not wire.seen
        return
    target = wire.seen[0].line.split()[1]
    assert target.startswith(b"/v1/")
    assert b"//" not in target
    for _ in range(6):
        for segment in re.split(rb"[/\\]", target):
            assert segment.split(b";")[0] not in (b".", b"..")
        assert not re.search(rb"[\x00-\x20\x7f]", target)
        target = unquote_to_bytes(target)


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        (b"/v1/models", b"/v1/models"),
        (b"/v1//models", b"/v1/models"),
        (b"//other.example/v1/models", b"/other.example/v1/models"),
        (b"http://other.example/v1/models", None),
        (b"/v1/%6dodels/a%2Fb", b"/v1/models/a%2Fb"),
        (b"/v1/../models", None),
        (b"/v1/%2e%2e/models", None),
        (b"/v1/..%2fmodels", None),
        (b"/v1/%252e%252e/models", None),
        (b"/v1/..;x/models", None),
        (b"/v1/..\\models", None),
        (b"/v1/%0d%0aHost:%20x", None),
    ],
)
def test_paths_as_they_go_upstream(wire: Wire, proxy: int, sent: bytes, arrives: bytes | None) -> None:
    wire.answer, wire.cut = framed(200, [], b"", "length"), False
    wire.seen.clear()
    answer = exchange(proxy, request(b"GET", sent, b"", [], b"", False, port=proxy))
    if arrives is None:
        assert answer.line.split()[1] == (b"421" if sent.startswith(b"http:") else b"400")
        assert not wire.seen
    else:
        assert wire.seen[0].line.split()[1] == arrives


def test_compressed_bodies_are_not_touched(wire: Wire, proxy: int) -> None:
    packed = gzip.compress(b"words " * 400)
    wire.answer = framed(200, [(b"Content-Encoding", b"gzip"), (b"ETag", b'"x"')], packed, "length")
    wire.cut = False
    packing = [(b"Accept-Encoding", b"gzip"), (b"Content-Encoding", b"gzip")]
    raw = request(b"POST", b"/v1/files", b"", packing, packed, False, port=proxy)
    answer = exchange(proxy, raw)
    assert answer.body == packed
    assert wire.seen[-1].body == packed
    assert (b"content-encoding", b"gzip") in end_to_end(answer.headers)


def test_an_answer_that_breaks_off_breaks_off(wire: Wire, proxy: int) -> None:
    for answer in (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ):
        wire.answer, wire.cut = answer, True
        proxied = exchange(proxy, request(b"GET", b"/v1/models", b"", [], b"", False, port=proxy))
        assert proxied.line.split()[1] == b"200"
        assert not proxied.whole
