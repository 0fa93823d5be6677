"""Discovery: what is advertised is what is wired, at the root and in the mirror, with or without a key."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.contract.doors.openwop.schemas import CAPABILITIES, ERROR, FAMILIES, valid
from tests.stores import on_one_store

from reverie.protocols.openwop.capabilities import DIMENSIONS, dimensions
from reverie.protocols.openwop.profiles import profiles

PATH = "/.well-known/openwop"


def document_of(server: Any) -> dict[str, Any]:
    answer = server.stranger().get(PATH)
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    valid(document, CAPABILITIES)
    return document


def held(document: dict[str, Any]) -> set[str]:
    return {verdict.name for verdict in dimensions(document) if verdict.holds}


def profile(document: dict[str, Any], name: str) -> bool:
    return next(verdict.holds for verdict in profiles(document) if verdict.name == name)


def test_the_document_needs_no_key_and_may_be_kept_for_five_minutes(server: Any) -> None:
    answer = server.stranger().get(PATH)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get_list("cache-control") == ["public, max-age=300"]
    assert answer.json()["protocolVersion"] == "1.0"


def test_the_openapi_document_needs_no_key_and_nothing_else_under_v1_is_open(server: Any) -> None:
    stranger = server.stranger()
    assert stranger.get("/v1/openapi.json").status_code == 200
    for path in ("/v1/agents", "/v1/openapi.json/", "/v1/openapi%2Ejson", "/v1/memory", "/v1", "/v1/", "/v1/nope"):
        answer = stranger.get(path)
        assert answer.status_code == 401, path
        valid(answer.json(), ERROR)


def test_every_family_stands_at_the_root_and_the_mirror_repeats_it(server: Any) -> None:
    document = document_of(server)
    mirror = document["capabilities"]
    assert {name for name in FAMILIES if name in document} == set(mirror)
    assert all(document[name] == mirror[name] for name in mirror)


def test_a_setting_drops_the_mirror(make_server: Any) -> None:
    document = document_of(make_server(openwop_mirror=False))
    assert "capabilities" not in document
    assert document["memory"]["supported"] is True


def test_the_full_advertisement(server: Any) -> None:
    document = document_of(server)
    memory = document["memory"]
    assert memory["compaction"] == {
        "supported": True,
        "trigger": "host-managed",
        "maxInputEntries": 1000,
        "maxOutputBytes": 65536,
    }
    assert memory["distillation"] == {
        "supported": True,
        "maxTokenBudget": 8000,
        "scheduled": True,
        "indexEmitted": True,
        "tokenizerName": "o200k_base",
        "archiveRetention": "P30D",
    }
    assert memory["attribution"] == {"supported": True, "emitsWriteEvents": True}
    assert memory["search"] == {"supported": True, "modes": ["semantic", "filter"]}
    assert memory["retention"] == {"ttl": True, "forget": True}
    assert memory["retention"]["ttl"] == memory["ttlSupported"]
    assert memory.get("writable", True) is True
    assert document["agents"]["memoryBackends"] == ["long-term"]
    assert profile(document, "openwop-core")
    assert profile(document, "openwop-memory")
    assert "tier" not in str(document)


def test_an_ephemeral_store_is_no_long_term_memory(make_server: Any) -> None:
    document = document_of(make_server(database_url="sqlite:///:memory:"))
    assert "memoryBackends" not in document["agents"]
    assert "memoryConsolidation" not in document["agents"]
    assert "scheduling" not in document
    assert "long-term-durability" not in held(document)
    assert not profile(document, "openwop-memory")
    assert profile(document, "openwop-core")


def test_a_read_only_host_says_so(make_server: Any, tmp_path: Any) -> None:
    make_server(data=tmp_path).caller()
    document = document_of(make_server(data=tmp_path, read_only=True))
    assert document["memory"]["writable"] is False
    assert not {"compaction", "distillation", "attribution"} & set(document["memory"])
    assert held(document) >= {"read", "search", "long-term-durability", "retention"}
    assert "write" not in held(document)
    assert not profile(document, "openwop-memory")


@on_one_store
@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        ({"tokenizer": "none"}, ("memory", "distillation")),
        ({"tokenizer": "none"}, ("memory", "injectionBudget")),
        ({"schedule_seconds": 0}, ("scheduling",)),
        ({"schedule_seconds": 0}, ("memory", "distillation", "scheduled")),
    ],
)
def test_what_is_not_wired_is_absent(make_server: Any, settings: dict[str, Any], gone: tuple[str, ...]) -> None:
    document = document_of(make_server(**settings))
    node: Any = document
    for step in gone[:-1]:
        node = node[step]
    assert gone[-1] not in node


def test_without_an_embedder_there_is_no_semantic_search(make_server: Any) -> None:
    assert document_of(make_server(embedder="none"))["memory"]["search"]["modes"] == ["filter"]


def test_without_a_tokenizer_compaction_still_is_a_dimension(make_server: Any) -> None:
    assert "compaction" in held(document_of(make_server(tokenizer="none")))


def test_the_advertised_body_limit_is_enforced(make_server: Any) -> None:
    server = make_server(max_request_bytes=2000)
    assert document_of(server)["limits"]["maxRequestBodyBytes"] == 2000
    answer = server.caller().post("/v1/runs", {"workflowId": "x" * 3000})
    assert answer.status_code == 413
    valid(answer.json(), ERROR)


def test_versions_are_named_and_agree(server: Any) -> None:
    document = document_of(server)
    assert document["protocolVersion"] in document["protocolVersions"]
    assert all(re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)", version) for version in document["protocolVersions"])
    assert document["preferredVersion"] in document["protocolVersions"]
    assert document["minClientVersion"] == "1.0"
    assert (document["engineVersion"], document["eventLogSchemaVersion"]) == (1, 2)


def test_a_document_that_is_held_is_not_sent_again(server: Any) -> None:
    stranger = server.stranger()
    etag = stranger.get(PATH).headers["etag"]
    held = stranger.get(PATH, headers={"If-None-Match": f'"other", W/{etag}'})
    assert (held.status_code, held.content, held.headers["etag"]) == (304, b"", etag)
    assert stranger.get(PATH, headers={"If-None-Match": '"other"'}).status_code == 200


def test_the_seams_change_the_fixtures_and_nothing_else(server: Any, seamed: Any) -> None:
    plain, tested = document_of(server), document_of(seamed)
    assert tested.pop("fixtures")
    assert plain == tested


def test_dimensions_are_eight_and_in_order(server: Any) -> None:
    assert [verdict.name for verdict in dimensions(document_of(server))] == list(DIMENSIONS)


@on_one_store
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nope", 404),
        ("GET", "/v1/memory", 404),
        ("PUT", "/v1/agents", 404),
        ("POST", "/v1/agents/x", 404),
        ("POST", "/v1/runs/x:pause", 404),
        ("POST", "/v1/runs/x:resume", 404),
        ("POST", "/v1/webhooks", 404),
        ("DELETE", "/v1/webhooks/x", 404),
        ("POST", "/v1/runs/x/interrupts/n", 404),
        ("GET", "/v1/interrupts/x", 404),
        ("DELETE", "/.well-known/openwop", 404),
        ("POST", "/.well-known/openwop", 404),
        ("GET", "/.well-known/openwop/", 404),
    ],
)
def test_refusals_are_the_closed_envelope(acme: Any, method: str, path: str, status: int) -> None:
    answer = acme.send(method, path)
    assert answer.status_code == status
    valid(answer.json(), ERROR)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_token_of_an_interrupt_needs_no_key_and_is_never_known(server: Any, method: str) -> None:
    answer = server.stranger().send(method, "/v1/interrupts/some-token")
    assert answer.status_code == 404
    valid(answer.json(), ERROR)
    assert server.stranger().get("/v1/interruptsome-token").status_code == 401


def test_a_scope_opens_what_it_names_and_nothing_else(server: Any) -> None:
    reader = server.caller(scopes=["manifest:read"])
    assert reader.get("/v1/agents").status_code == 200
    for method, path, scope in (
        ("POST", "/v1/runs", "runs:create"),
        ("GET", "/v1/runs/x", "runs:read"),
        ("POST", "/v1/runs/x/cancel", "runs:cancel"),
        ("GET", "/v1/host/workspace/files", "workspace:read"),
        ("PUT", "/v1/host/workspace/files/a", "workspace:write"),
        ("GET", "/v1/host/reverie/memory/notes/entries", "x-host-reverie-memory-query"),
    ):
        answer = reader.send(method, path)
        assert answer.status_code == 403, path
        valid(answer.json(), ERROR)
        assert answer.json()["error"] == "forbidden"
        assert answer.json()["details"]["scopeRequired"] == scope
    assert server.caller(scopes=["runs:read"]).get("/v1/agents").status_code == 403
    assert server.caller().get("/v1/agents").status_code == 200


@pytest.mark.usefixtures("no_refill")
def test_a_rate_limit_comes_before_scopes(make_server: Any) -> None:
    caller = make_server(rate_per_second=1, rate_burst=1).caller(scopes=["runs:read"])
    answers = [caller.get("/v1/agents") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [403, 429, 429]
    assert answers[-1].json()["error"] == "rate_limited"
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_keys_that_are_over_say_so(server: Any) -> None:
    caller = server.caller()
    server.host.keys.revoke(server.host.keys.all(caller.tenant)[0].id)
    assert caller.get("/v1/agents").json()["error"] == "key_revoked"
    assert caller.get("/v1/agents").status_code == 401
