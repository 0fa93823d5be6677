"""Capabilities of this host, computed from the running parts: one function for the advertisement and every projection.

A family that is not wired is absent: clients read an absent block as "not supported".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.core.clock import iso_duration
from reverie.core.policy import TenantPolicy
from reverie.jobs.timetable import HORIZON_MS
from reverie.protocols.openwop.forks import MODES
from reverie.protocols.openwop.passes import MOST_ENTRIES
from reverie.protocols.openwop.workflow import DRAIN_POLICIES
from reverie.protocols.openwop.workspace import MAX_FILE_BYTES, MAX_FILES, MAX_VERSIONS
from reverie.services import Services

MAX_RUN_IDS = 100
"""Maximum number of runs cancelled by one request."""
LONG_TERM = "long-term"
"""The only memory backend that the protocol names."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """The running parts, from which everything advertised follows."""

    durable: bool
    writable: bool
    tokenizer: str | None
    embedder: bool
    sealed: bool
    """Whether secrets of tenants can be stored."""
    scheduler: bool
    """Whether a worker runs due work."""
    dispatch: bool = True
    """Whether installed agents can be dispatched, which writes runs."""
    workspace: bool = False
    """Whether workspace files are served."""


def wired(parts: Services, *, scheduler: bool, workspace: bool = False) -> Wiring:
    """The wiring of a host."""
    writable = not parts.read_only
    return Wiring(
        durable=parts.store.durable,
        writable=writable,
        tokenizer=parts.tokens.name if parts.tokens else None,
        embedder=parts.embedder is not None,
        sealed=parts.cipher is not None,
        dispatch=writable,
        scheduler=scheduler and writable and parts.store.durable,
        workspace=workspace and writable,
    )


def families(has: Wiring) -> dict[str, Any]:
    """Every capability family of the host."""
    results: dict[str, Any] = {"memory": _memory(has), "agents": _agents(has)}
    if has.scheduler:
        results["scheduling"] = {
            "supported": True,
            "cron": True,
            "delayed": True,
            "calendar": False,
            "maxFutureHorizon": iso_duration(HORIZON_MS),
        }
    if has.workspace:
        results["workspace"] = {
            "supported": True,
            "versioned": True,
            "maxFileBytes": MAX_FILE_BYTES,
            "maxFiles": MAX_FILES,
            "maxVersions": MAX_VERSIONS,
        }
    if has.writable:
        results["replay"] = {"supported": True, "modes": list(MODES)}
        results["runs"] = {
            "bulkCancel": {"supported": True, "maxRunIds": MAX_RUN_IDS},
            "pauseResume": {"supported": True, "drainPolicies": list(DRAIN_POLICIES)},
        }
        results["idempotency"] = {
            "supported": True,
            "layer1RetentionSeconds": TenantPolicy().idempotency_ms // 1000,
            "crossRegion": "single-region",
        }
    scopes = [*(["tenant"] if has.sealed else []), "run"]
    results["secrets"] = {"supported": True, "scopes": scopes, "resolution": "host-managed"}
    return results


def _memory(has: Wiring) -> dict[str, Any]:
    policy = TenantPolicy()
    memory: dict[str, Any] = {
        "supported": True,
        "maxEntrySizeBytes": policy.max_entry_bytes,
        "ttlSupported": True,
        "search": {"supported": True, "modes": ["semantic", "filter"] if has.embedder else ["filter"]},
        "retention": {"ttl": True, "forget": has.writable},
    }
    if has.tokenizer:
        memory["injectionBudget"] = {"supported": True, "tokenCounter": has.tokenizer}
    if not has.writable:
        return {**memory, "writable": False}
    memory["compaction"] = {
        "supported": True,
        "trigger": "host-managed",
        "maxInputEntries": MOST_ENTRIES,
        "maxOutputBytes": policy.max_entry_bytes,
    }
    if has.tokenizer:
        memory["distillation"] = {
            "supported": True,
            "maxTokenBudget": policy.dream_budget,
            **({"scheduled": True} if has.scheduler else {}),
            "indexEmitted": has.workspace,
            "tokenizerName": has.tokenizer,
            "archiveRetention": iso_duration(policy.archive_retention_ms),
        }
    memory["attribution"] = {"supported": True, "emitsWriteEvents": True}
    return memory


def _agents(has: Wiring) -> dict[str, Any]:
    agents: dict[str, Any] = {"supported": has.dispatch}
    if has.durable:
        agents["memoryBackends"] = [LONG_TERM]
    if has.durable and has.writable:
        agents["memoryConsolidation"] = {"supported": True, "schedule": "scheduled" if has.scheduler else "on-demand"}
    if has.scheduler:
        agents["commitments"] = {"supported": True, "fireConditions": ["time", "predicate"]}
    if has.dispatch:
        agents["manifestRuntime"] = {"supported": True, "installScope": "tenant"}
    return agents


# dimensions: what an agent may require of a host's memory

READ, WRITE, SEARCH, DURABILITY, COMPACTION, ATTRIBUTION, SNAPSHOT, RETENTION = DIMENSIONS = (
    "read",
    "write",
    "search",
    "long-term-durability",
    "compaction",
    "attribution",
    "replay-snapshot",
    "retention",
)
"""In the order in which unmet ones are listed."""

ASKED = {
    "scratchpad": (READ, WRITE),
    "conversation": (READ, WRITE),
    "longTerm": (READ, WRITE, DURABILITY),
}
"""Capabilities required by each flag of an agent's memory shape."""


@dataclass(frozen=True, slots=True)
class CapabilityVerdict:
    """Whether a claim holds for a discovery document, with the deciding fact."""

    name: str
    holds: bool
    reason: str


def dimensions(document: Mapping[str, Any]) -> list[CapabilityVerdict]:
    """Judge the eight dimensions by any host's discovery document. Never raises, however malformed the document."""
    supported = _at(document, "memory", "supported")
    writable = _at(document, "memory", "writable")
    backends = _at(document, "agents", "memoryBackends")
    durable = isinstance(backends, list) and LONG_TERM in backends
    version = _at(document, "multiAgent", "executionModel", "version")
    replays = isinstance(version, int) and not isinstance(version, bool) and version >= 2
    reduces = [name for name in ("compaction", "distillation") if _at(document, "memory", name, "supported") is True]
    keeps = [name for name in ("ttl", "forget") if _at(document, "memory", "retention", name) is True]
    read = supported is True
    reason = f"memory.supported is {_spelt(supported)}"
    return [
        CapabilityVerdict(READ, read, reason),
        CapabilityVerdict(WRITE, read and writable is not False, f"{reason}, memory.writable is {_spelt(writable)}"),
        _flag(SEARCH, document, "memory", "search", "supported"),
        CapabilityVerdict(DURABILITY, durable, f"agents.memoryBackends is {_spelt(backends)}"),
        CapabilityVerdict(
            COMPACTION,
            bool(reduces),
            f"memory.{reduces[0]}.supported is true" if reduces else "neither compaction nor distillation is supported",
        ),
        _flag(ATTRIBUTION, document, "memory", "attribution", "supported"),
        CapabilityVerdict(
            SNAPSHOT,
            durable and replays,
            f"multiAgent.executionModel.version is {_spelt(version)}, agents.memoryBackends is {_spelt(backends)}",
        ),
        CapabilityVerdict(
            RETENTION,
            bool(keeps),
            f"memory.retention.{keeps[0]} is true" if keeps else "neither retention.ttl nor retention.forget is true",
        ),
    ]


def unmet(shape: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """Dimensions that an agent's memory shape requires and the host lacks, in table order."""
    required = {name for flag, names in ASKED.items() if shape.get(flag) is True for name in names}
    return [verdict.name for verdict in dimensions(document) if verdict.name in required and not verdict.holds]


def lacking(keys: Sequence[str], document: Mapping[str, Any]) -> list[str]:
    """Required capabilities, by dotted key, that a host does not advertise."""
    return [key for key in keys if not _is_advertised(_at(document, *key.removeprefix("host.").split(".")))]


def _is_advertised(value: Any) -> bool:
    """Whether the value at a key is an advertised capability."""
    if isinstance(value, Mapping):
        return value.get("supported", True) is True
    if isinstance(value, bool):
        return value
    return isinstance(value, int | float) or (isinstance(value, str | list) and bool(value))


def _flag(name: str, document: Mapping[str, Any], *path: str) -> CapabilityVerdict:
    value = _at(document, *path)
    return CapabilityVerdict(name, value is True, f"{'.'.join(path)} is {_spelt(value)}")


def _at(document: Any, *path: str) -> Any:
    """The value at a path; None when it is absent, or when a step of the path is not an object."""
    for step in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(step)
    return document


def _spelt(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)[:40]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_spelt(item) for item in list(value)[:4]) + "]"
    text = str(value) if isinstance(value, str) else type(value).__name__
    return "".join(c if c.isprintable() else "?" for c in text[:40])
