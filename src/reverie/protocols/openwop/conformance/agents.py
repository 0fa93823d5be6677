"""Agents for conformance suites: one that this host satisfies, and one that no memory host satisfies."""

from __future__ import annotations

from reverie.protocols.openwop.agents import Agent, read_manifest
from reverie.redact import Redactor

_PACK = {
    "name": "conformance.agents",
    "version": "1.0.0",
    "agents": [
        {
            "agentId": "conformance-plain",
            "persona": "Plain",
            "modelClass": "general",
            "memoryShape": {"scratchpad": True},
        },
        {
            "agentId": "conformance-requiring",
            "persona": "Requiring",
            "modelClass": "general",
            "memoryShape": {"longTerm": True},
            "requiresCapabilities": ["sandbox"],
        },
    ],
}


def fixture_agents(redactor: Redactor) -> list[Agent]:
    """The two agents. The second needs a sandbox, which no memory host has, and long-term memory, which some have."""
    return read_manifest(_PACK, redactor)
