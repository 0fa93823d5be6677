"""Every route of the door, and the scope each needs. The one place to look when the protocol moves."""

from __future__ import annotations

import re

from starlette.routing import BaseRoute

from reverie.protocols.openwop.conformance import memory_seams, run_seams
from reverie.protocols.openwop.conformance.seams import seams_of
from reverie.protocols.openwop.http import agents, discovery, runs, workflows, workspace
from reverie.settings import Settings

SCOPES = [
    ("GET", r"/v1/agents(/.*)?", "manifest:read"),
    ("GET", r"/v1/workflows/.*", "manifest:read"),
    ("POST", r"/v1/runs", "runs:create"),
    ("POST", r"/v1/runs/[^/]+/cancel", "runs:cancel"),
    ("POST", r"/v1/runs:bulk-cancel", "runs:cancel"),
    ("POST", r"/v1/runs/[^/]+:fork", "runs:create"),
    ("POST", r"/v1/runs/[^/]+:(pause|resume)", "runs:cancel"),
    ("GET", r"/v1/runs/.*", "runs:read"),
    ("GET", r"/v1/host/workspace/.*", "workspace:read"),
    ("PUT", r"/v1/host/workspace/.*", "workspace:write"),
    ("DELETE", r"/v1/host/workspace/.*", "workspace:write"),
]
"""(method, path as sent, scope). One scope never implies another; a key without scopes is not limited by them."""

_SCOPES = [(method, re.compile(path), scope) for method, path, scope in SCOPES]


def routes(settings: Settings) -> list[BaseRoute]:
    """In the order they are tried. A seam that is switched off has no route."""
    seams = seams_of(settings)
    routers = [part.router for part in (discovery, workflows, runs, agents)]
    routers.append(workspace.router if settings.openwop_workspace and not settings.read_only else workspace.off)
    routers += memory_seams.routers(seams) + run_seams.routers(seams)
    return [route for router in routers for route in router.routes]


def scope_of(method: str, path: str) -> str | None:
    """The scope a request needs."""
    verb = "GET" if method == "HEAD" else method
    return next((scope for kind, pattern, scope in _SCOPES if kind == verb and pattern.fullmatch(path)), None)
