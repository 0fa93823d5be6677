"""The discovery document: what this host can do, computed from what is wired."""

from __future__ import annotations

from fastapi import Request, Response

from reverie.doors.openwop.call import WELL_KNOWN, api, reply

router = api("")


@router.get(WELL_KNOWN)
def discover(request: Request) -> Response:
    document = {
        "protocolVersion": "1.0",
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "limits": {"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0},
        "implementation": {"name": "reverie", "version": request.app.version, "vendor": "reverie"},
        "supportedTransports": ["rest"],
    }
    return reply(document, 200, {"Cache-Control": "public, max-age=300"})
