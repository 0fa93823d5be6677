"""The HTTP edge: who may call, how much, and what a refusal looks like."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from tests.patience import until
from tests.stores import on_one_store

from reverie.api.rest.errors import STATUS
from reverie.core.clock import SystemClock
from reverie.core.errors import NotFound, StoreError, Unauthenticated


def is_problem(answer: Any, status: int, code: str) -> bool:
    """The envelope is closed to three keys."""
    body = answer.json()
    assert answer.status_code == status, answer.text
    assert set(body) <= {"error", "message", "details"}
    assert body["message"]
    assert re.fullmatch(r"[a-z_]+", body["error"])
    assert answer.headers["content-type"] == "application/json"
    return bool(body["error"] == code)


class TestKeys:
    @on_one_store
    @pytest.mark.parametrize(
        "header",
        [
            None,
            "",
            "Bearer",
            "Bearer ",
            "Bearer x",
            "Basic dXNlcjpwYXNz",
            "Bearer rvk_000000000000_" + "a" * 43,
            "\xff",
        ],
    )
    def test_no_valid_key_no_entry(self, server: Any, header: str | None) -> None:
        headers = {} if header is None else {"Authorization": header.encode("latin-1")}
        answer = server.stranger().get("stats", headers=headers)
        assert is_problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")

    def test_two_keys_are_no_key(self, server: Any, acme: Any) -> None:
        header = [("Authorization", f"Bearer {acme.key}"), ("Authorization", "Bearer x")]
        import httpx2

        async def go() -> Any:
            transport = httpx2.ASGITransport(app=server.app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.get("/v1/host/reverie/stats", headers=header)

        assert is_problem(asyncio.run(go()), 401, "unauthenticated")

    def test_a_key_is_wanted_before_the_body_is_looked_at(self, server: Any) -> None:
        answer = server.stranger().post("memory/notes/entries", content=b"{not json")
        assert is_problem(answer, 401, "unauthenticated")

    def test_every_path_of_the_door_wants_a_key(self, server: Any) -> None:
        for path in ("nope", "memory/../x", "memory/a/entries/b/c/d", ""):
            assert server.stranger().get(path).status_code == 401

    def test_expired_and_revoked_keys(self, server: Any) -> None:
        soon = SystemClock().now() + 2000
        expired = server.caller(expires_at=soon)
        until(lambda: SystemClock().now() > soon)
        assert is_problem(expired.get("stats"), 401, "key_expired")
        revoked = server.caller()
        server.host.keys.revoke(revoked.key.split("_")[1])
        assert is_problem(revoked.get("stats"), 401, "key_revoked")

    @on_one_store
    @pytest.mark.parametrize(
        ("rights", "method", "path", "body", "missing"),
        [
            (["read"], "POST", "memory/n/entries", {"content": "x"}, "write"),
            (["read"], "POST", "memory/forget", {"subject": "x"}, "write"),
            (["read"], "DELETE", "memory/n/entries/x", None, "write"),
            (["write"], "GET", "memory/n/entries", None, "read"),
            (["write"], "GET", "events", None, "read"),
            (["write"], "GET", "export", None, "read"),
            (["write"], "POST", "memory/n/search", {"query": "x"}, "read"),
            (["read", "write"], "PATCH", "policy", {"max_tags": 1}, "admin"),
            (["read", "write"], "POST", "secrets", {"id": "x", "value": "12345678"}, "admin"),
            (["read", "write"], "POST", "scan", {}, "admin"),
        ],
    )
    def test_a_missing_right_is_named(
        self, server: Any, rights: list[str], method: str, path: str, body: Any, missing: str
    ) -> None:
        caller = server.caller(rights=rights)
        answer = caller.send(method, path, **({} if body is None else {"json": body}))
        assert is_problem(answer, 403, "forbidden")
        assert answer.json()["details"]["right"] == missing

    def test_a_key_with_scopes_needs_the_one_for_memory(self, server: Any) -> None:
        narrow = server.caller(scopes=["manifest:read"])
        answer = narrow.get("memory/n/entries")
        assert is_problem(answer, 403, "forbidden")
        assert answer.json()["details"]["scope"] == "x-host-reverie-memory-query"
        assert narrow.get("memory").status_code == 403
        assert narrow.get("stats").status_code == 200
        wide = server.caller(scopes=["manifest:read", "x-host-reverie-memory-query"])
        assert wide.get("memory/n/entries").status_code == 200

    @on_one_store
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "export"),
            ("POST", "import"),
            ("POST", "/mcp"),
            ("POST", "/mcp/reference"),
            ("POST", "/akashik/mcp"),
            ("GET", "/akashik/v1/units/x"),
            ("GET", "/akashik/v1/subscriptions/stream?agent_id=a&subscription_id=s"),
            ("GET", "/mem0/v1/entities/"),
        ],
    )
    def test_a_key_with_other_scopes_reads_no_memory_through_another_interface(
        self, server: Any, method: str, path: str
    ) -> None:
        answer = server.caller(scopes=["manifest:read"]).send(method, path)
        assert answer.status_code == 403, answer.text
        assert "x-host-reverie-memory-query" in answer.text

    @on_one_store
    def test_a_key_with_other_scopes_opens_no_console(self, server: Any) -> None:
        narrow = server.caller(scopes=["manifest:read"])
        answer = server.stranger().send("POST", "/sign-in", data={"key": narrow.key})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
        assert is_problem(narrow.get("/memories.json"), 403, "forbidden")
        assert narrow.get("/memories").status_code == 403

    def test_a_stream_wants_the_right_to_read(self, server: Any) -> None:
        caller = server.caller(rights=["write"])
        assert caller.get("events", headers={"Accept": "text/event-stream"}).status_code == 403

    @on_one_store
    @pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics", "/v1/openapi.json"])
    def test_what_needs_no_key(self, server: Any, path: str) -> None:
        assert server.stranger().get(path).status_code == 200


class TestLimits:
    @pytest.mark.usefixtures("no_refill")
    def test_a_key_that_asks_too_often_is_told_when_to_come_back(self, make_server: Any) -> None:
        server = make_server(rate_per_second=1, rate_burst=3)
        caller, other = server.caller(), server.caller()
        answers = [caller.get("stats") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert is_problem(answers[-1], 429, "rate_limited")
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert other.get("stats").status_code == 200

    @pytest.mark.usefixtures("no_refill")
    def test_the_rate_is_counted_before_rights_are_looked_at(self, make_server: Any) -> None:
        server = make_server(rate_per_second=1, rate_burst=1)
        caller = server.caller(rights=["read"])
        caller.get("stats")
        assert caller.post("memory/n/entries", {"content": "x"}).status_code == 429

    def test_a_long_body_is_refused_by_its_length(self, make_server: Any) -> None:
        caller = make_server(max_request_bytes=1000).caller()
        answer = caller.post("memory/n/entries", {"content": "x" * 2000})
        assert is_problem(answer, 413, "too_large")

    def test_a_body_refused_by_its_length_costs_the_key_nothing(self, make_server: Any) -> None:
        caller = make_server(max_request_bytes=1000, bytes_per_second=1000).caller()
        for announced in ("2000000", "9" * 18):
            answer = caller.post("memory/n/entries", {"content": "x"}, headers={"Content-Length": announced})
            assert is_problem(answer, 413, "too_large")
        assert caller.post("memory/n/entries", {"content": "x"}).status_code == 201

    def test_a_body_without_a_length_is_refused_when_it_gets_too_long(self, make_server: Any) -> None:
        caller = make_server(max_request_bytes=1000).caller()
        sent = 0

        async def pieces() -> AsyncIterator[bytes]:
            nonlocal sent
            for _ in range(1000):
                sent += 100
                yield b"x" * 100

        for path, media in (("memory/n/entries", "application/json"), ("import", "application/x-ndjson")):
            answer = caller.post(path, content=pieces(), headers={"Content-Type": media})
            assert is_problem(answer, 413, "too_large")


class TestRefusals:
    def test_unknown_paths_and_methods(self, acme: Any, server: Any) -> None:
        assert is_problem(acme.get("nope"), 404, "not_found")
        assert is_problem(server.stranger().get("/nope"), 404, "not_found")
        assert is_problem(acme.get("/v1/memory"), 404, "not_found")
        assert is_problem(server.stranger().get("/v1/memory"), 401, "unauthenticated")
        assert is_problem(acme.get("memory/"), 404, "not_found")
        wrong = acme.send("PUT", "memory/notes/entries")
        assert is_problem(wrong, 405, "method_not_allowed")
        assert wrong.headers["allow"] == "GET, POST"

    @on_one_store
    @pytest.mark.parametrize("media", [None, "text/plain", "application/xml", "multipart/form-data; boundary=x"])
    def test_only_json_is_read(self, acme: Any, media: str | None) -> None:
        headers = {"Content-Type": media} if media else {}
        answer = acme.post("memory/n/entries", content=b'{"content": "x"}', headers=headers)
        assert is_problem(answer, 415, "unsupported_media_type")

    def test_a_charset_in_the_media_type_is_fine(self, acme: Any) -> None:
        headers = {"Content-Type": "application/json; charset=utf-8"}
        assert acme.post("memory/n/entries", content=b'{"content": "x"}', headers=headers).status_code == 201

    def test_a_read_only_host_says_so(self, make_server: Any, tmp_path: Any) -> None:
        writer = make_server(tmp_path)
        entry = writer.caller("acme").put("x")
        caller = writer.caller("acme")
        caller.app = make_server(tmp_path, read_only=True).app
        path = f"memory/notes/entries/{entry}"
        assert caller.get(path).status_code == 200
        for answer in (
            caller.post("memory/notes/entries", {"content": "y"}),
            caller.patch(path, {"pinned": True}),
            caller.delete(path),
            caller.delete(f"{path}?erase=true"),
            caller.post(f"{path}/restore"),
            caller.post("memory/forget", {"subject": "x"}),
            caller.patch("policy", {"max_tags": 1}),
            caller.post("secrets", {"id": "x", "value": "12345678"}),
            caller.post(
                "import", content=caller.get("export").content, headers={"Content-Type": "application/x-ndjson"}
            ),
        ):
            assert is_problem(answer, 503, "read_only")
            assert answer.json()["details"]["correlationId"]
        assert caller.get("/readyz").json()["status"] == "degraded"

    def test_what_a_caller_sent_is_not_repeated_in_clear(self, acme: Any) -> None:
        acme.post("secrets", {"id": "db", "value": "correct-horse-battery"})
        answer = acme.post("memory/n/entries", {"content": "x", "correct-horse-battery": 1})
        assert answer.status_code == 400
        assert "correct-horse" not in answer.text

    def test_a_fault_is_a_500_with_a_correlation_id_and_without_its_message(
        self, make_server: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = make_server()
        caller = server.caller()

        def broken(*_: Any) -> None:
            raise RuntimeError("the text of a memory")

        server.host.reader.stats = broken
        answer = caller.get("stats", headers={"X-Request-Id": "look-for-me"})
        assert is_problem(answer, 500, "internal_error")
        assert answer.json()["details"]["correlationId"] == "look-for-me"
        assert "memory" not in answer.json()["message"]
        assert "the text of a memory" not in caplog.text

    def test_every_error_code_of_the_core_has_a_status(self) -> None:
        from reverie.core import errors

        codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")}
        assert codes <= set(STATUS)


class TestWhatIsSeenFromOutside:
    def test_every_answer_has_an_id(self, acme: Any) -> None:
        assert acme.get("stats").headers["x-request-id"]
        assert acme.get("stats", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
        assert acme.get("stats", headers={"X-Request-Id": "no spaces!"}).headers["x-request-id"] != "no spaces!"

    def test_an_id_that_holds_a_secret_is_replaced(self, server: Any, acme: Any) -> None:
        actor = server.host.keys.authenticate(acme.key, door="rest")
        server.host.rules.register(actor, "door", "quiet-otter-lane")
        shaped = "AKIA" + "Q3EGRT5XJ2KQ7WZL"
        for sent in ("quiet-otter-lane", "x.quiet-otter-lane.1", shaped):
            shown = acme.get("stats", headers={"X-Request-Id": sent}).headers["x-request-id"]
            assert sent not in shown
            assert len(shown) == 26
        unknown = server.stranger().get("stats", headers={"X-Request-Id": "quiet-otter-lane"})
        assert (unknown.status_code, len(unknown.headers["x-request-id"])) == (401, 26)

    def test_metrics_hold_no_text_no_tenant_and_no_id(self, make_server: Any) -> None:
        server = make_server()
        caller = server.caller("tenant-of-note")
        entry = caller.put("Zanzibar is warm.", ref="secret-ref", subject="ann")
        caller.get(f"memory/secret-ref/entries/{entry}")
        caller.post("memory/secret-ref/search", {"query": "Zanzibar"})
        caller.get("nope/secret-path")
        page = caller.get("/metrics").text
        for word in ("Zanzibar", "tenant-of-note", "secret-ref", "secret-path", entry, "ann", caller.key.split("_")[1]):
            assert word not in page
        assert (
            'reverie_requests_total{method="POST",route="/v1/host/reverie/memory/{ref}/entries",status="2xx"} 1.0'
            in page
        )
        assert "reverie_entries_stored_total 1.0" in page
        assert 'reverie_call_seconds_count{call="search.search"} 1.0' in page

    def test_the_access_log_holds_no_content(self, acme: Any, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level("DEBUG", logger="reverie"):
            acme.put("Zanzibar is warm.", ref="secret-ref")
            acme.get("memory/secret-ref/entries?subject=ann-lee")
        fields = [record.__dict__["fields"] for record in caplog.records if hasattr(record, "fields")]
        shown = repr(fields)
        assert "/v1/host/reverie/memory/{ref}/entries" in shown
        for word in ("Zanzibar", "secret-ref", "ann-lee", acme.key, acme.tenant):
            assert word not in shown

    def test_the_api_describes_itself(self, server: Any) -> None:
        document = server.stranger().get("/v1/openapi.json").json()
        ids = [op["operationId"] for path in document["paths"].values() for op in path.values()]
        assert len(ids) == len(set(ids))
        native = [path for name, path in document["paths"].items() if name.startswith("/v1/host/reverie/")]
        for operation in (op for path in native for op in path.values()):
            assert {"400", "401", "403", "404", "429", "503"} <= set(operation["responses"])
            (needed,) = operation["security"]
            assert needed.keys() == {"key"}
            assert all(scope.startswith("x-host-reverie-") for scope in needed["key"])
        put = document["paths"]["/v1/host/reverie/memory/{ref}/entries"]["post"]["responses"]
        assert {"201", "409", "413", "415", "422", "507"} <= set(put)


def test_a_key_that_is_revoked_during_its_rotation_gets_no_successor(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, tenant = server.host.keys, "revoked-meanwhile"
    leaked = keys.create(tenant)
    check = server.host.rules.check_names

    def meanwhile(*arguments: Any) -> None:
        check(*arguments)
        keys.revoke(leaked.id)

    monkeypatch.setattr(server.host.rules, "check_names", meanwhile)
    with pytest.raises(NotFound):
        keys.rotate(leaked.id, overlap_ms=3_600_000)
    assert [key.id for key in keys.all(tenant)] == [leaked.id]
    assert not keys.valid([leaked.id])
    with pytest.raises(Unauthenticated):
        keys.authenticate(leaked.key, door="rest")


def test_a_key_is_rotated_as_a_whole_or_not_at_all(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, tenant = server.host.keys, "rotated-as-a-whole"
    old = keys.create(tenant)
    store, control = server.host.parts.store, server.host.parts.store.control
    calls = count()

    def dying(body: Any, *, write: bool = False) -> Any:
        if write and next(calls):
            raise StoreError("The process died here.")
        return control(body, write=write)

    monkeypatch.setattr(store, "control", dying)
    with suppress(StoreError):
        keys.rotate(old.id)
    monkeypatch.undo()
    usable = keys.valid([key.id for key in keys.all(tenant)])
    assert len(usable) == 1
