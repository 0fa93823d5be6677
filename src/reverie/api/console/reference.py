"""The API reference at `/docs`: the OpenAPI document as a page, with the signed-in session ready to try."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reverie.api.console.page import Look, render_page
from reverie.core.errors import Unauthenticated
from reverie.http.browser import session_of
from reverie.http.threads import Lane, Threads

METHODS = ("get", "post", "put", "patch", "delete")
PROTOCOLS = ("akashik", "anthropic", "mcp", "mem0", "openwop")
"""Groups of operations that come after our own."""
OWN = ("entries", "recall", "dreams", "schedules", "tenant", "secrets", "log", "bundles")
"""Our own, in the order in which they are needed."""


async def docs(request: Request) -> Response:
    """The page. Reading it needs no session."""
    request.scope["state"]["route"] = "/docs"
    threads: Threads = request.app.state.threads
    return await threads.run(Lane.READ, "", partial(_page, request))


def _page(request: Request) -> Response:
    session, actor = session_of(request.scope), None
    if session is not None:
        try:
            actor = request.app.state.host.sessions.resume(session, door="console")
        except Unauthenticated:
            session = None
    document = described(request.app)
    state, look = request.app.state, None
    if actor is not None:
        look = Look(state.host, actor, state, {}, request.query_params)
    return render_page("docs.html", request, {**document, "signed_in": actor}, page="docs", look=look, session=session)


def described(app: Any) -> dict[str, Any]:
    """The operations by tag, each with its parameters, an example of its body and its answers. Made once."""
    results: dict[str, Any] | None = getattr(app.state, "console_reference", None)
    if results is None:
        results = _describe_operation(app.openapi())
        app.state.console_reference = results
    return results


def _describe_operation(document: Mapping[str, Any]) -> dict[str, Any]:
    tags: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                tag = (operation.get("tags") or ["other"])[0]
                tags.setdefault(tag, []).append(_operation(path, method, operation))
    order = sorted(tags, key=lambda tag: (tag in PROTOCOLS, OWN.index(tag) if tag in OWN else len(OWN), tag))
    return {
        "title": document["info"]["title"],
        "introduction": _paragraphs(document["info"].get("description", "")),
        "groups": [{"tag": tag, "operations": tags[tag]} for tag in order],
    }


def _paragraphs(description: str) -> list[tuple[str, str]]:
    """The description, a paragraph for each point: its first words, when marked, and the rest."""
    plain = description.replace("\n  ", " ")
    lines = [line.removeprefix("* ").strip() for line in plain.split("\n") if line.strip()]
    parted = [line.split("**") if line.startswith("**") else ["", "", line] for line in lines]
    return [(lead, "".join(rest).strip()) for _, lead, *rest in parted]


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    answers = operation.get("responses", {})
    good: Any = next((answer for status, answer in answers.items() if str(status).startswith("2")), {})
    return {
        "id": operation.get("operationId", f"{method}-{path}"),
        "method": method.upper(),
        "path": path,
        "summary": operation.get("summary", ""),
        "description": operation.get("description", ""),
        "parameters": [
            {
                "name": one["name"],
                "in": one["in"],
                "required": bool(one.get("required")),
                "description": one.get("description", "") or one.get("schema", {}).get("description", ""),
            }
            for one in operation.get("parameters", ())
            if "name" in one
        ],
        "body": _example(operation.get("requestBody", {})),
        "answer": _example(good),
        "statuses": [
            {"status": str(status), "description": answer.get("description", "")} for status, answer in answers.items()
        ],
    }


def _example(message: Mapping[str, Any]) -> str | None:
    """The JSON example of a body or an answer, to be read."""
    content = message.get("content", {}).get("application/json", {})
    return orjson.dumps(content["example"], option=orjson.OPT_INDENT_2).decode() if "example" in content else None
