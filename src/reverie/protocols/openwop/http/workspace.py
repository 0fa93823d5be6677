"""Workspace files: versioned, per tenant and workspace."""

from __future__ import annotations

from typing import Annotated, Any

from starlette.responses import Response

from reverie.core.actor import Right
from reverie.core.clock import to_iso
from reverie.core.errors import Invalid, ReverieError
from reverie.http.call import Call, needs
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Header, Query, Segment
from reverie.protocols.openwop.http import described
from reverie.protocols.openwop.http.call import api, once
from reverie.protocols.openwop.http.wire import Closed
from reverie.protocols.openwop.workspace import StoredFile, Workspace

router = api("/v1/host/workspace")
off = api("/v1/host/workspace")
"""In place of `router` where the family is switched off."""
IfMatch = Annotated[str | None, Header()]


class NotProvided(ReverieError):
    """This host does not provide workspace files."""

    code = "capability_not_provided"


class FileIn(Closed):
    content: str
    content_type: str | None = None


@router.get(
    "/files",
    id="list_files",
    summary="Workspace files, without content",
    answers={200: DocumentedAnswer(body=described.WorkspaceFiles), **described.refusals(501)},
)
def files(call: Call, prefix: Annotated[str, Query()] = "") -> Response:
    return Reply({"files": [file_document(file) for file in call.host.use(Workspace).files(call.actor, prefix=prefix)]})


@router.get(
    "/files/{path:path}",
    id="get_file",
    summary="One workspace file, or one version of it",
    answers={200: DocumentedAnswer(body=described.WorkspaceFile), **described.refusals(501)},
)
def get(call: Call, path: Segment, version: Annotated[str | None, Query()] = None) -> Response:
    return answer(call.host.use(Workspace).get(call.actor, path, version=version_number(version)))


@router.put(
    "/files/{path:path}",
    id="put_file",
    summary="Write a workspace file; with `If-Match` only over the version that was read",
    parameters=[described.ONCE],
    answers={200: DocumentedAnswer(body=described.WorkspaceFile), **described.refusals(501)},
)
@once("workspace.put")
@needs(Right.WRITE)
def put(call: Call, path: Segment, body: FileIn, if_match: IfMatch = None) -> Response:
    files, kind = call.host.use(Workspace), body.content_type
    return answer(files.put(call.actor, path, body.content, content_type=kind, if_match=if_match))


@router.delete(
    "/files/{path:path}",
    id="delete_file",
    summary="Delete a workspace file",
    parameters=[described.ONCE],
    answers={204: DocumentedAnswer("Deleted."), **described.refusals(501)},
)
@once("workspace.delete")
@needs(Right.WRITE)
def delete(call: Call, path: Segment, if_match: IfMatch = None) -> Response:
    call.host.use(Workspace).delete(call.actor, path, if_match=if_match)
    return Response(None, 204)


def file_document(file: StoredFile) -> dict[str, Any]:
    """A file, closed; without content in a list."""
    document: dict[str, Any] = {"path": file.path}
    if file.content is not None:
        document["content"] = file.content
    return document | {
        "version": file.version,
        "updatedAt": to_iso(file.updated_at),
        "contentType": file.content_type,
        "etag": file.etag,
    }


def answer(file: StoredFile) -> Response:
    """One file."""
    return Reply(file_document(file), 200, {"ETag": file.etag})


def version_number(text: str | None) -> int | None:
    """Parse a version. Raises Invalid."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise Invalid("version is a whole number of at least 1.", pointer="/version")
    return int(text)


@off.route("/{rest:path}", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
async def not_provided() -> Response:
    """Refuse every path of the family when it is not advertised, before the body is read."""
    raise NotProvided()
