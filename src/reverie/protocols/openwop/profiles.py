"""Profiles: named sets of promises in a discovery document. Derived by readers, never advertised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.protocols.openwop.capabilities import DURABILITY, WRITE, CapabilityVerdict, dimensions

LIMITS = ("clarificationRounds", "schemaRounds", "envelopesPerTurn")


def profiles(document: Mapping[str, Any]) -> list[CapabilityVerdict]:
    """The profiles that can be derived from any host's discovery document, each with its reason."""
    flaws = core_flaws(document)
    core = CapabilityVerdict("openwop-core", not flaws, flaws[0] if flaws else "every required field is well formed")
    held = {verdict.name: verdict for verdict in dimensions(document)}
    wanted = [core, held[WRITE], held[DURABILITY]]
    missing = [verdict for verdict in wanted if not verdict.holds]
    reason = "; ".join(verdict.reason for verdict in (missing or wanted[1:]))
    fixtures = document.get("fixtures")
    has_fixtures = isinstance(fixtures, list) and bool(fixtures)
    replay = _object(document, "replay")
    modes = replay.get("modes")
    forks = replay.get("supported") is True and isinstance(modes, list) and bool(modes)
    secrets = _object(document, "secrets")
    scopes = secrets.get("scopes")
    keeps = secrets.get("supported") is True and isinstance(scopes, list) and "user" in scopes
    return [
        core,
        CapabilityVerdict("openwop-memory", not missing, reason),
        CapabilityVerdict(
            "openwop-fixtures", has_fixtures, f"fixtures: {len(fixtures) if isinstance(fixtures, list) else 0}"
        ),
        CapabilityVerdict(
            "openwop-replay-fork", forks, "replay.supported with modes" if forks else "replay is not supported"
        ),
        CapabilityVerdict("openwop-secrets", keeps, "secrets at user scope" if keeps else "secrets has no user scope"),
    ]


def core_flaws(document: Mapping[str, Any]) -> list[str]:
    """List the faults that exclude a document from `openwop-core`."""
    flaws = []
    version = document.get("protocolVersion")
    if not isinstance(version, str) or not version.startswith("1."):
        flaws.append("protocolVersion is not 1.x")
    envelopes = document.get("supportedEnvelopes")
    if not isinstance(envelopes, list) or any(not isinstance(item, str) for item in envelopes):
        flaws.append("supportedEnvelopes is not a list of strings")
    versions = document.get("schemaVersions")
    if not isinstance(versions, Mapping) or any(not _count(value) for value in versions.values()):
        flaws.append("schemaVersions is not an object of whole numbers")
    limits = _object(document, "limits")
    flaws += [f"limits.{name} is not a whole number" for name in LIMITS if not _count(limits.get(name))]
    return flaws


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _object(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    return value if isinstance(value, Mapping) else {}
