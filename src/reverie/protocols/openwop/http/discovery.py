"""The discovery document: capabilities of this host, computed from the running parts."""

from __future__ import annotations

import hashlib
from typing import Any

from starlette.responses import Response

from reverie.core.run import ENGINE_VERSION
from reverie.host import Host
from reverie.http.call import Call
from reverie.http.door import MEMORY_QUERY
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer
from reverie.protocols.openwop.capabilities import families, wired
from reverie.protocols.openwop.http import described
from reverie.protocols.openwop.http.call import EVENT_LOG_VERSION, WELL_KNOWN, api
from reverie.protocols.openwop.runs import Runs
from reverie.settings import Settings

router = api("")
PROTOCOL_VERSION = "1.0"


@router.route(
    WELL_KNOWN,
    ["GET", "HEAD"],
    id="discover",
    summary="Capabilities of this host",
    answers={200: DocumentedAnswer(body=described.Discovery), 304: DocumentedAnswer("The caller has this version.")},
    open=True,
)
def discover(request: Call) -> Response:
    """Return the discovery document. It is public, and the same for every tenant."""
    state = request.app.state
    document = discovery(state.host, state.settings, version=request.app.version)
    answer = Reply(document, 200, {"Cache-Control": "public, max-age=300"})
    etag = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
    answer.headers["ETag"] = etag
    held = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if held & {etag, "*"}:
        return Response(None, 304, {"Cache-Control": "public, max-age=300", "ETag": etag})
    return answer


def discovery(host: Host, settings: Settings, *, version: str) -> dict[str, Any]:
    """Families at the root; the deprecated mirror repeats the same objects, so that they cannot differ."""
    has = advertised(host, settings)
    document: dict[str, Any] = {
        "protocolVersion": PROTOCOL_VERSION,
        "protocolVersions": [PROTOCOL_VERSION],
        "preferredVersion": PROTOCOL_VERSION,  # clients of version 2 read nothing of a document without it
        "minClientVersion": PROTOCOL_VERSION,
        "engineVersion": ENGINE_VERSION,
        "eventLogSchemaVersion": EVENT_LOG_VERSION,
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
        document["fixtures"] = host.use(Runs).fixtures()
    if settings.openwop_mirror:
        document["capabilities"] = has
    return document


def advertised(host: Host, settings: Settings) -> dict[str, Any]:
    """The families of this process."""
    return families(wired(host.parts, scheduler=settings.scheduler, workspace=settings.openwop_workspace))
