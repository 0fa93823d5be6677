"""The Field in the console: both sides of a conflict, the decision, and what the log says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.api.console.test_pages import Site, token

from reverie.protocols.akashik.envelope import VERSION


def test_a_conflict_is_decided_once_and_its_events_are_in_the_audit(tmp_path: Path) -> None:
    site = Site(tmp_path)
    browser = site.browser(site.key("team"))
    actor = site.host.keys.authenticate(site.key("team"), door="akashik")

    def perform(operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        message = {
            "protocol": "akashik", "version": VERSION, "id": site.host.parts.ids.new(), "operation": operation,
            "agent_id": "scout", "session_id": None, "epoch": 0, "payload": payload,
        }  # fmt: skip
        return site.host.field.perform(actor, message)

    perform("REGISTER", {"id": "scout", "role": "scout", "interests": []})
    said = {
        "mode": "committed",
        "type": "finding",
        "intent": {"purpose": "to know"},
        "confidence": {"score": 0.8, "reasoning": "seen"},
    }
    one = perform("RECORD", {**said, "content": "The bridge carries 12 tons."})
    unit = str(one["memory_unit_id"])
    against = [{"type": "contradicts", "target_id": unit}]
    perform("RECORD", {**said, "content": "The bridge carries 9 tons.", "relations": against})
    document = browser.get("/field.json").json()
    [conflict] = document["conflicts"]
    assert all(side["unit"] for side in conflict["sides"])
    assert "contested" in browser.get("/").text
    form = {"do": "decide", "conflict": conflict["id"], "winner": unit, "token": token(browser, "/field")}
    assert browser.post("/field", data=form).status_code == 303
    assert browser.get("/field.json").json()["conflicts"] == []
    log = browser.get("/audit")  # events of the Field name a unit, but not all of them a memory
    assert log.status_code == 200
    assert "conflict" in log.text
    site.host.close()
