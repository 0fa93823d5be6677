"""Retries: what is repeated, what never is, and what is said in the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx2
import orjson
import pytest

from reverie.client.connection import Connection, check_url
from reverie.client.errors import error_of
from reverie.client.host import connect
from reverie.client.memory import RemoteReader
from reverie.client.sse import lines, messages
from reverie.core.actor import Actor
from reverie.core.errors import (
    Conflict,
    HostUnreachable,
    Invalid,
    QuotaExceeded,
    RateLimited,
    ReadOnly,
    ReverieError,
    Unauthenticated,
)

Answer = httpx2.Response | Exception


class Clock:
    """Time that passes only while someone sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def problem(status: int, code: str, **details: Any) -> httpx2.Response:
    body = {"error": code, "message": "No.", "details": details}
    return httpx2.Response(status, content=orjson.dumps(body), headers={"Retry-After": "3"})


def scripted(*answers: Answer) -> tuple[Connection, list[httpx2.Request], Clock]:
    waiting, seen, clock = list(answers), list[httpx2.Request](), Clock()

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = Connection(
        "http://host:8484",
        "key",
        transport=httpx2.MockTransport(handler),
        sleep=clock.sleep,
        clock=lambda: clock.now,
    )
    return made, seen, clock


def ok() -> httpx2.Response:
    return httpx2.Response(200, json={"fine": True})


def test_a_read_is_repeated_after_any_fault_of_the_line() -> None:
    http, seen, clock = scripted(httpx2.ReadError("x"), httpx2.ConnectError("x"), httpx2.Response(502), ok())
    assert http.get("/stats") == {"fine": True}
    assert len(seen) == 4
    assert clock.slept == sorted(clock.slept)
    assert seen[0].headers["authorization"] == "Bearer key"


def test_a_write_that_may_have_arrived_is_not_repeated() -> None:
    http, seen, _ = scripted(httpx2.ReadTimeout("x"), ok())
    with pytest.raises(HostUnreachable, match="may have been carried out"):
        http.post("/memory/forget", {"subject": "x"})
    assert len(seen) == 1


def test_a_write_that_was_never_sent_is_repeated() -> None:
    http, seen, _ = scripted(httpx2.ConnectError("x"), ok())
    assert http.post("/memory/forget", {"subject": "x"}) == {"fine": True}
    assert len(seen) == 2


def test_a_write_with_a_key_is_repeated_with_the_same_key() -> None:
    http, seen, _ = scripted(httpx2.ReadError("x"), ok())
    http.post("/memory/a/entries", {}, again=True, headers={"Idempotency-Key": "k"})
    assert [request.headers["idempotency-key"] for request in seen] == ["k", "k"]


@pytest.mark.parametrize("code", ["rate_limited", "store_busy"])
def test_what_says_that_nothing_was_done_is_repeated(code: str) -> None:
    http, seen, clock = scripted(problem(429 if code == "rate_limited" else 503, code), ok())
    assert http.post("/sweep") == {"fine": True}
    assert len(seen) == 2
    assert clock.slept[0] >= (3 if code == "rate_limited" else 0)


def test_a_limit_that_lasts_too_long_is_raised() -> None:
    http, _, _ = scripted(problem(429, "rate_limited", retry_after_seconds=600))
    with pytest.raises(RateLimited) as limited:
        http.get("/stats")
    assert limited.value.details["retry_after_seconds"] == 600


@pytest.mark.parametrize(
    ("status", "code", "kind"), [(429, "quota_exceeded", QuotaExceeded), (503, "read_only", ReadOnly)]
)
def test_what_would_not_help_is_not_repeated(status: int, code: str, kind: type[Exception]) -> None:
    http, seen, _ = scripted(problem(status, code))
    with pytest.raises(kind):
        http.get("/stats")
    assert len(seen) == 1


def test_in_the_end_it_says_what_was_tried_and_for_how_long() -> None:
    http, seen, clock = scripted(httpx2.ConnectError("x"))
    with pytest.raises(HostUnreachable) as away:
        http.get("/stats")
    assert 5 < len(seen) < 20
    assert clock.now <= 15
    assert f"tried {len(seen)} times in {clock.now:.1f} s" in away.value.message


@pytest.mark.parametrize(
    "answer", [httpx2.Response(404, text="<html>nothing</html>"), httpx2.Response(301), httpx2.Response(500)]
)
def test_what_is_not_a_reverie_host_is_called_so(answer: httpx2.Response) -> None:
    http, _, _ = scripted(answer)
    with pytest.raises(HostUnreachable, match="not as a Reverie host does"):
        http.get("/stats")


@pytest.mark.parametrize("body", [b"[]", b"null", b"{}", b'{"tenant": 1}', b"<!doctype html>"])
def test_another_server_that_answers_200_is_no_host(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    http, _, _ = scripted(httpx2.Response(200, content=body))
    monkeypatch.setattr("reverie.client.host.Connection", lambda *_, **__: http)
    with pytest.raises(HostUnreachable, match="not as a Reverie host does"):
        connect("http://host:8484", key="key")


def test_an_address_with_a_path_of_the_host_is_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link to the console, for example."""
    http, _, _ = scripted(problem(404, "not_found"))
    monkeypatch.setattr("reverie.client.host.Connection", lambda *_, **__: http)
    with pytest.raises(HostUnreachable, match="Check the address"):
        connect("http://host:8484", key="key")


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://x", "host:8484", "http://", "https://user:pass@host", "http://host/?a=b", "postgresql://x"),
        *("http://host:port", "http://host:99999", "http://[::1", "http://a host", "http://ho\x00st", "http://host:0"),
    ],
)
def test_an_address_is_checked(url: str) -> None:
    with pytest.raises(Invalid):
        check_url(url)


def test_a_key_that_cannot_be_one_is_refused_before_it_is_sent() -> None:
    for key in ("", "line\nbreak", "schlüssel"):
        with pytest.raises(Unauthenticated):
            Connection("http://host", key)


def test_every_error_of_the_core_comes_back_as_itself() -> None:
    from reverie.api.rest.errors import status_of

    def every(kind: type[ReverieError]) -> list[type[ReverieError]]:
        return [kind, *(one for child in kind.__subclasses__() for one in every(child))]

    kinds = [kind for kind in every(ReverieError) if kind.__module__ in ("reverie.core.errors", "reverie.core.dream")]
    assert len(kinds) > 25
    for kind in kinds:
        error = kind("No.", pointer="/a", details={"n": 1})
        body = orjson.dumps(
            {"error": error.reason, "message": "No.", "details": {"n": 1, "pointer": "/a", "next": "?"}}
        )
        back = error_of(status_of(error), body)
        assert back is not None
        assert (type(back), back.reason, back.pointer, back.details) == (kind, kind.code, "/a", {"n": 1})


def test_a_finer_code_comes_back_in_the_class_that_carries_it() -> None:
    back = error_of(409, orjson.dumps({"error": "id_taken", "message": "No."}))
    assert type(back) is Conflict
    assert back.reason == "id_taken"
    assert error_of(500, b"<html>") is None
    assert error_of(500, b"[]") is None


def test_lines_end_with_a_line_feed_only() -> None:
    pieces = ['{"a": "x\u2028y"}\n{"b"'.encode(), b": 1}\nlast"]
    assert list(lines(pieces)) == ['{"a": "x\u2028y"}'.encode(), b'{"b": 1}', b"last"]


def test_messages_of_a_stream() -> None:
    pieces = [b": alive\n\nid: 4\nev", b"ent: step\r\ndata: {\r\ndata: }\r\n\r\n", b"data: plain\n\nevent: cut"]
    assert [(message.name, message.data) for message in messages(pieces)] == [("step", b"{\n}"), ("message", b"plain")]


def test_a_stream_that_ends_at_once_is_not_opened_again_at_once() -> None:
    class Over(threading.Event):
        waits = 0

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout
            self.waits += 1
            if self.waits == 3:
                self.set()
            return self.is_set()

    http, seen, _ = scripted(httpx2.Response(200, content=b""))
    timer = threading.Timer(2.0, (over := Over()).set)
    timer.start()
    assert list(RemoteReader(http).follow(Actor(tenant="t", id="a"), after=0, types=None, over=over)) == []
    timer.cancel()
    assert len(seen) == over.waits == 3


def test_the_key_is_in_no_message() -> None:
    import traceback

    raised: list[str] = []
    failing: list[Callable[[], Any]] = [lambda: scripted(httpx2.ConnectError("x"))[0].get("/stats")]
    for call in failing:
        try:
            call()
        except HostUnreachable as error:
            raised.append("".join(traceback.format_exception(error, chain=False)))
    assert raised
    assert all("Bearer" not in text for text in raised)
