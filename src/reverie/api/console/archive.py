"""The archive of a dream, byte for byte: a download whose SHA-256 is in the report."""

from __future__ import annotations

from starlette.responses import Response

from reverie.api.console import access
from reverie.api.console.page import Look, Page
from reverie.core.errors import NotFound


def show(look: Look) -> Response:
    """The canonical bytes, as a download."""
    report = look.host.lineage.report(look.actor, look.path["id"])
    if report.checksum is None:
        raise NotFound("This dream has no archive.")
    content = look.host.archives.get(look.actor, report.checksum)
    named = f'attachment; filename="{report.checksum[:16]}.json"'
    return Response(content, media_type="application/json", headers={**access.HEADERS, "Content-Disposition": named})


PAGE = Page("dreams", "/dreams/{id}/archive", "", show)
