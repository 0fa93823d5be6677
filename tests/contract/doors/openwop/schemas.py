"""JSON schemas of every document and event, written from the published shapes. `valid(document, SCHEMA)` checks one."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs
import orjson

INSTANT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}
DURATION = {"type": "string", "pattern": r"^P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+S)?)?$"}
TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
POSITIVE = {"type": "integer", "minimum": 1}
HEX = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
TRIGGER = {"enum": ["host-managed", "client-requested", "both"]}


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def opened(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with at least these members."""
    return {**closed(required, optional), "additionalProperties": True}


def subset(*names: str) -> dict[str, Any]:
    return {"type": "array", "items": {"enum": list(names)}, "uniqueItems": True}


BOOL = {"type": "boolean"}
ERROR = closed(
    {"error": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}, "message": TEXT}, {"details": {"type": "object"}}
)
LIMITS = closed(
    {"clarificationRounds": COUNT, "schemaRounds": COUNT, "envelopesPerTurn": COUNT},
    {
        "maxNodeExecutions": POSITIVE,
        "maxRunDurationMs": {"type": "integer", "minimum": 1000},
        "maxLoopIterations": COUNT,
        "maxBudgetTokens": COUNT,
        "maxBudgetCostUsd": {"type": "number", "minimum": 0},
        "maxRequestBodyBytes": COUNT,
    },
)
MEMORY = opened(
    {},
    {
        "supported": BOOL,
        "maxEntrySizeBytes": POSITIVE,
        "ttlSupported": BOOL,
        "writable": BOOL,
        "compaction": closed(
            {"supported": BOOL}, {"trigger": TRIGGER, "maxInputEntries": POSITIVE, "maxOutputBytes": COUNT}
        ),
        "distillation": closed(
            {"supported": BOOL},
            {
                "maxTokenBudget": POSITIVE,
                "scheduled": BOOL,
                "indexEmitted": BOOL,
                "tokenizerName": TEXT,
                "archiveRetention": DURATION,
            },
        ),
        "attribution": closed({"supported": {"const": True}}, {"emitsWriteEvents": BOOL}),
        "search": closed({"supported": BOOL}, {"modes": subset("semantic", "filter")}),
        "retention": closed({}, {"ttl": BOOL, "forget": BOOL}),
        "injectionBudget": closed(
            {"supported": BOOL}, {"tokenCounter": {"enum": ["o200k_base", "cl100k_base", "chars", "host-defined"]}}
        ),
    },
)
AGENTS = opened(
    {},
    {
        "supported": BOOL,
        "memoryBackends": subset("long-term"),
        "memoryConsolidation": closed(
            {"supported": BOOL}, {"schedule": {"enum": ["host-managed", "scheduled", "on-demand"]}}
        ),
        "commitments": closed({"supported": BOOL}, {"fireConditions": subset("time", "predicate")}),
        "manifestRuntime": closed(
            {"supported": BOOL}, {"handoffValidation": BOOL, "installScope": {"enum": ["host", "tenant"]}}
        ),
    },
)
FAMILIES = {
    "memory": MEMORY,
    "agents": AGENTS,
    "scheduling": closed(
        {"supported": BOOL}, {"cron": BOOL, "delayed": BOOL, "calendar": BOOL, "maxFutureHorizon": DURATION}
    ),
    "workspace": closed(
        {"supported": BOOL},
        {"versioned": BOOL, "maxFileBytes": POSITIVE, "maxFiles": POSITIVE, "maxVersions": POSITIVE},
    ),
    "heartbeat": closed({"supported": BOOL}, {"minIntervalSec": POSITIVE, "maxRuntimeMs": POSITIVE}),
    "runs": opened(
        {}, {"bulkCancel": closed({"supported": BOOL, "maxRunIds": POSITIVE}), "pauseResume": {"type": "object"}}
    ),
    "idempotency": opened({"supported": BOOL}, {"layer1RetentionSeconds": POSITIVE, "crossRegion": TEXT}),
    "multiAgent": opened(
        {},
        {
            "executionModel": closed(
                {"supported": BOOL},
                {
                    "version": {"type": "integer", "minimum": 1, "maximum": 6},
                    "crossChildMemoryConcurrency": {"enum": ["strict", "advisory"]},
                },
            )
        },
    ),
    "secrets": closed(
        {"supported": BOOL},
        {"scopes": subset("tenant", "user", "run", "workspace"), "resolution": {"const": "host-managed"}},
    ),
    "replay": closed({"supported": BOOL, "modes": subset("replay", "branch")}),
}
CAPABILITIES = opened(
    {
        "protocolVersion": {"type": "string", "pattern": r"^1\.\d+$"},
        "protocolVersions": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "preferredVersion": TEXT,
        "minClientVersion": TEXT,
        "engineVersion": COUNT,
        "eventLogSchemaVersion": COUNT,
        "supportedEnvelopes": {"type": "array", "items": {"type": "string"}},
        "schemaVersions": {"type": "object", "additionalProperties": COUNT},
        "limits": LIMITS,
    },
    {
        "implementation": closed({"name": TEXT, "version": TEXT}, {"vendor": TEXT}),
        "supportedTransports": {"type": "array", "items": TEXT},
        "fixtures": {"type": "array", "items": TEXT},
        "capabilities": {"type": "object", "properties": FAMILIES},
        **FAMILIES,
    },
)
MEMORY_ENTRY = closed(
    {
        "id": {"type": "string", "minLength": 1, "maxLength": 1500},
        "content": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 256}},
        "createdAt": INSTANT,
    },
    {"expiresAt": INSTANT},
)
DISTILLATION = closed({"tokenBudget": POSITIVE, "tokensUsed": COUNT}, {"indexUpdated": BOOL})
COMPACTED = opened(
    {"memoryRef": TEXT, "outputId": TEXT, "sourceCount": POSITIVE, "trigger": TRIGGER, "byteSize": COUNT},
    {"sourceIds": {"type": "array", "items": TEXT}, "distillation": DISTILLATION},
)
WRITTEN = opened(
    {"memoryRef": TEXT, "memoryId": TEXT},
    {"nodeId": TEXT, "agentId": TEXT, "tags": {"type": "array", "items": {"type": "string"}}},
)
CONSOLIDATED = opened(
    {"memoryRef": TEXT, "inputCount": COUNT, "outputCount": COUNT},
    {
        "mergedIds": {"type": "array", "items": TEXT},
        "trigger": {"enum": ["host-managed", "scheduled", "on-demand"]},
    },
)
FIRED = opened(
    {"commitmentId": TEXT, "memoryRef": TEXT, "condition": {"enum": ["time", "predicate"]}},
    {"memoryId": TEXT, "enqueuedRunId": TEXT},
)
UPDATED = closed({"path": TEXT, "version": POSITIVE})
PAYLOADS = {
    "memory.compacted": COMPACTED,
    "memory.written": WRITTEN,
    "agent.memory.consolidated": CONSOLIDATED,
    "commitment.fired": FIRED,
    "workspace.updated": UPDATED,
}
RUN_STATUS = {
    "enum": [
        "pending",
        "running",
        "paused",
        "waiting-approval",
        "waiting-input",
        "waiting-external",
        "completed",
        "failed",
        "cancelling",
        "cancelled",
    ]
}
RUN_EVENT = opened(
    {"eventId": TEXT, "runId": TEXT, "type": TEXT, "payload": {}, "timestamp": INSTANT, "sequence": COUNT},
    {"nodeId": TEXT, "engineVersion": {"const": "1"}, "causationId": TEXT, "schemaVersion": {"const": 1}},
)
RUN_SNAPSHOT = opened(
    {
        "runId": TEXT,
        "workflowId": TEXT,
        "status": RUN_STATUS,
        "eventLogSchemaVersion": {"const": 2},
        "engineVersion": {"const": 1},
    },
    {"variables": {"type": "object"}, "error": {"type": ["object", "null"]}, "startedAt": INSTANT},
)
PORT = {"type": "object", "required": ["type"]}
WORKFLOW = closed(
    {
        "id": TEXT,
        "name": TEXT,
        "version": TEXT,
        "nodes": {
            "type": "array",
            "minItems": 1,
            "items": closed(
                {
                    "id": TEXT,
                    "typeId": {"type": "string", "pattern": r"^[a-z][a-zA-Z0-9._-]*$"},
                    "name": TEXT,
                    "position": closed({"x": {"type": "number"}, "y": {"type": "number"}}),
                    "config": {"type": "object"},
                    "inputs": {"type": "object", "additionalProperties": PORT},
                }
            ),
        },
        "edges": {"type": "array", "items": closed({"id": TEXT, "sourceNodeId": TEXT, "targetNodeId": TEXT})},
        "triggers": {"type": "array", "items": opened({"id": TEXT, "type": {"enum": ["manual", "schedule"]}})},
        "variables": {
            "type": "array",
            "items": closed(
                {"name": TEXT, "type": {"enum": ["string", "number", "boolean", "object", "array"]}},
                {"required": BOOL, "defaultValue": {}},
            ),
        },
        "metadata": {"type": "object"},
        "settings": {"type": "object"},
    }
)
INVENTORY_ENTRY = closed(
    {
        "agentId": TEXT,
        "persona": TEXT,
        "label": TEXT,
        "modelClass": {"type": "string"},
        "packName": TEXT,
        "packVersion": TEXT,
        "toolAllowlist": {"type": "array", "items": {"type": "string"}},
        "hasHandoffSchemas": BOOL,
    },
    {
        "description": {"type": "string"},
        "memoryShape": closed({}, {"scratchpad": BOOL, "conversation": BOOL, "longTerm": BOOL}),
        "confidenceThreshold": {"type": "number", "minimum": 0, "maximum": 1},
        "degraded": {"type": "array", "items": TEXT, "uniqueItems": True, "minItems": 1},
        "memoryDegraded": BOOL,
        "degradedMemoryDimensions": subset(
            "read",
            "write",
            "search",
            "long-term-durability",
            "compaction",
            "attribution",
            "replay-snapshot",
            "retention",
        ),
        "roster": {},
    },
)
ARCHIVE = closed(
    {
        "schema": {"const": "reverie.archive/1"},
        "tokenBudget": POSITIVE,
        "tokenizerName": TEXT,
        "sources": {"type": "array", "items": closed({"id": TEXT, "sha256": HEX})},
        "content": {"type": "string"},
    }
)
INDEX = closed(
    {
        "schema": {"const": "reverie.memory-index/1"},
        "archives": {
            "type": "array",
            "items": closed(
                {
                    "memoryRef": TEXT,
                    "outputId": TEXT,
                    "archiveChecksum": HEX,
                    "sourceCount": POSITIVE,
                    "byteSize": COUNT,
                    "tokenBudget": POSITIVE,
                    "tokensUsed": COUNT,
                    "createdAt": INSTANT,
                }
            ),
        },
    }
)
FILE = closed(
    {"path": TEXT, "content": {"type": "string"}, "version": POSITIVE, "updatedAt": INSTANT},
    {"contentType": TEXT, "etag": TEXT},
)
LISTED_FILE = closed({"path": TEXT, "version": POSITIVE, "updatedAt": INSTANT}, {"contentType": TEXT, "etag": TEXT})


def valid(document: Any, schema: dict[str, Any]) -> None:
    """Fail with the first fault."""
    fault = next(_validator(orjson.dumps(schema)).iter_errors(document), None)
    assert fault is None, f"{fault.instance_path}: {fault.message}"


@cache
def _validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    """A faulty schema is refused."""
    return jsonschema_rs.Draft202012Validator(orjson.loads(schema), validate_formats=True)
