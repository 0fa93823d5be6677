"""Payloads of OpenWOP's memory events, from rows of the log. No payload holds text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.core.clock import to_iso
from reverie.core.event import Event

TRIGGER = "host-managed"
"""The only trigger with defined behaviour; also sent for scheduled and requested passes."""


def compacted(event: Event) -> dict[str, Any]:
    """`memory.compacted`: names all sources when there are at most a hundred, else none."""
    data = event.data
    payload: dict[str, Any] = {
        "memoryRef": data["ref"],
        "outputId": event.entry_id,
        "sourceCount": data["sources"],
        "trigger": TRIGGER,
        "byteSize": data["bytes"],
    }
    if data.get("source_ids"):
        payload["sourceIds"] = list(data["source_ids"])
    if data.get("checksum"):
        payload["distillation"] = {
            "tokenBudget": data["budget"],
            "tokensUsed": data["tokens"],
            "indexUpdated": bool(data.get("index")),
        }
    return payload


def written(event: Event) -> dict[str, Any]:
    """`memory.written`: the entry, and the node and agent that wrote it, if any."""
    data = event.data
    payload = {"memoryRef": data["ref"], "memoryId": event.entry_id}
    return payload | {wire: data[name] for wire, name in (("nodeId", "node"), ("agentId", "agent")) if data.get(name)}


def consolidated(event: Event) -> dict[str, Any]:
    """`agent.memory.consolidated`."""
    data = event.data
    payload: dict[str, Any] = {
        "memoryRef": data["ref"],
        "inputCount": data["input_count"],
        "outputCount": data["output_count"],
    }
    if data.get("merged_ids") and len(data["merged_ids"]) == data["input_count"] - data["output_count"]:
        payload["mergedIds"] = list(data["merged_ids"])
    if data.get("trigger") in ("host-managed", "scheduled", "on-demand"):
        payload["trigger"] = data["trigger"]
    return payload


def fired(event: Event) -> dict[str, Any]:
    """`commitment.fired`: without the intention."""
    data = event.data
    payload = {"commitmentId": data["commitment"], "memoryRef": data["ref"], "condition": data["condition"]}
    return payload | ({"memoryId": event.entry_id} if event.entry_id else {})


def updated(event: Event) -> dict[str, Any]:
    """`workspace.updated`: closed to path and version."""
    return {"path": event.data["path"], "version": event.data["version"]}


def reasoned(event: Event) -> dict[str, Any]:
    """`agent.reasoned`: counts and entry ids."""
    data = event.data
    return {
        "agentId": data["agent"],
        "memoryRef": data["ref"],
        "considered": data["considered"],
        "used": data["used"],
        "tokens": data["tokens"],
        "memoryIds": list(data["ids"]),
        "toolsRefused": data["tools_refused"],
    }


def decided(event: Event) -> dict[str, Any]:
    """`agent.decided`: the outcome and the confidence that decided it."""
    data = event.data
    return {
        "agentId": data["agent"],
        "outcome": data["outcome"],
        "confidence": data["confidence"] / 1000,
        "confidenceThreshold": data["threshold"] / 1000,
    }


PAYLOADS = {
    "memory.compacted": compacted,
    "memory.written": written,
    "agent.memory.consolidated": consolidated,
    "commitment.fired": fired,
    "workspace.updated": updated,
    "agent.reasoned": reasoned,
    "agent.decided": decided,
}
"""Functions that make a payload from a row of the log, by event type."""


def payload_of(event: Event) -> dict[str, Any] | None:
    """The payload of a memory event; None for any other event."""
    project = PAYLOADS.get(event.type)
    return project(event) if project else None


def flat(event: Event) -> dict[str, Any]:
    """Render an event for a seam: flat with its time, and with its payload repeated."""
    payload: Mapping[str, Any] = payload_of(event) or {}
    return {"type": event.type, "ts": to_iso(event.at), **payload, "payload": dict(payload)}
