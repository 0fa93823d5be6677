"""The discovery document: what this host can do, computed from what is wired."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from reverie.host import Host
from reverie.protocols.openwop.capabilities import families, wired
from reverie.protocols.openwop.http.call import WELL_KNOWN, api, reply
from reverie.settings import Settings

router = api("")
MEMORY_QUERY = "x-host-reverie-memory-query"


@router.api_route(WELL_KNOWN, methods=["GET", "HEAD"])
def discover(request: Request) -> Response:
    """The document. Anyone may read it, and it tells one tenant from another in nothing."""
    state = request.app.state
    document = discovery(state.host, state.settings, version=request.app.version)
    return reply(document, 200, {"Cache-Control": "public, max-age=300"})


def discovery(host: Host, settings: Settings, *, version: str) -> dict[str, Any]:
    """Families at the root; the deprecated mirror repeats the same objects, so that they cannot differ."""
    has = advertised(host, settings)
    document: dict[str, Any] = {
        "protocolVersion": "1.0",
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "limits": {
            "clarificationRounds": 0,
            "schemaRounds": 0,
            "envelopesPerTurn": 0,
            "maxRequestBodyBytes": settings.max_request_bytes,
        },
        "implementation": {"name": "reverie", "version": version or "0", "vendor": "reverie"},
        "supportedTransports": ["rest"],
        **has,
        "reverie": {"api": "/v1/host/reverie", "memoryQueryScope": MEMORY_QUERY, "secretPolicy": "rewrite"},
    }
    if settings.openwop_seams and not settings.read_only:
        document["fixtures"] = host.runs.fixtures()
    if settings.openwop_mirror:
        document["capabilities"] = has
    return document


def advertised(host: Host, settings: Settings) -> dict[str, Any]:
    """The families of this process."""
    return families(wired(host.parts, scheduler=settings.scheduler, workspace=settings.openwop_workspace))
