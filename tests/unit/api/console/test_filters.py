"""A page and its JSON share one address: what filters one filters the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.api.console.test_pages import Site


def test_filters_of_an_address_hold_for_its_json(tmp_path: Path) -> None:
    site = Site(tmp_path)
    tenant = "filters"
    old = site.put(tenant, "A red kettle.", tags=("red",), kind="decision", subject="ada")
    new = site.put(tenant, "A blue kettle.", tags=("blue",))
    site.host.lifecycle.pin(site.host.system_actor(tenant), "notes", old)
    client = site.browser()
    client.headers["authorization"] = f"Bearer {site.key(tenant)}"

    def asked(path: str) -> Any:
        return client.get(path).json()

    def ids(query: str) -> list[str]:
        return [entry["id"] for entry in asked(f"/memories.json?ref=notes&{query}")["items"]]

    for query in ("tag=red", "kind=decision", "subject=ada", "where=pinned"):
        assert ids(query) == [old], query
    assert set(ids("age=1")) == set(ids("source=host:reverie")) == {old, new}
    assert [hit["entry"]["id"] for hit in asked("/memories.json?ref=notes&q=kettle&tag=blue")["hits"]] == [new]
    assert asked("/memories/change.json?ref=notes&change=pin&tag=blue")["count"] == 1
    assert {event["type"] for event in asked("/audit.json?type=memory.pinned")["events"]} == {"memory.pinned"}
    assert asked("/audit.json?actor=nobody")["events"] == []
    assert asked("/audit.json?until=2020-01-01")["events"] == []
    two = asked("/context.json?ref=notes&q=kettle&budget=300&other=90&other_as_of=0")
    assert [(one["budget"], one["position"]) for one in two["packed"]] == [(300, None), (90, 0)]
    assert two["packed"][1]["included"] == []
    for page in ("home", "dreams"):
        assert asked(f"/{page}.json?days=7")["span"]["days"] == 7
    assert asked("/dreams.json?ref=elsewhere")["dreams"] == []
    assert asked("/windows.json?scope=none")["error"] == "not_found"
    site.host.close()
