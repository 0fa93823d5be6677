"""Memory as resources and prompts: the index, a memory, an entry, the report of a dream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import orjson
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import (
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from reverie.api.mcp.memory import DEFAULT_REF, entry_view
from reverie.api.views import report_document
from reverie.core.actor import Actor
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.mcp.toolset import HostTool, Run

INDEX = "reverie://index"
_MEMORY, _DREAM = "reverie://memory/", "reverie://dream/"
_JSON = "application/json"
_MOST = 100
_NOT_FOUND, _INVALID = -32002, -32602

_TEMPLATES = (
    ("memory", "reverie://memory/{ref}", "The newest entries of a memory. Slashes in a ref are %2F."),
    ("entry", "reverie://memory/{ref}/{id}", "One entry."),
    ("dream", "reverie://dream/{id}", "The report of a dream: sources, tokens, gates."),
)
_WRAP_UP = (
    "Look back over this conversation. For each fact, preference, decision, correction or promise that will matter"
    " later, call remember once: a sentence or two that is understood without this conversation, with its subject."
    " Recall first, and leave out what is known already. Never store secrets. Then say in one line how many were"
    " stored."
)
_PROMPTS = (
    Prompt(
        name="recall",
        description="Begin with what is known about a topic.",
        arguments=[
            PromptArgument(name="topic", description="What the work is about.", required=True),
            PromptArgument(name="ref", description="Which memory."),
        ],
    ),
    Prompt(name="wrap-up", description="Remember what matters from this conversation."),
)


def handlers(host: Host, actor: Actor, run: Run) -> dict[str, Any]:
    """Return the server's handlers of resources and prompts."""

    async def work(call: Callable[[], Any]) -> Any:
        try:
            return await run(_READ, call)
        except ReverieError as error:
            code = _NOT_FOUND if error.code == "not_found" else _INVALID
            raise MCPError(code, error.message) from None

    async def list_resources(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListResourcesResult:
        refs = await work(lambda: host.reader.refs(actor))
        results = [Resource(name="index", uri=INDEX, description="What a session loads at its start.", mime_type=_JSON)]
        for ref, count in refs[:_MOST]:
            uri = _MEMORY + quote(ref, safe="")
            results.append(Resource(name=ref, uri=uri, description=f"{count} entries", mime_type=_JSON))
        return ListResourcesResult(resources=results)

    async def list_templates(
        _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        made = [
            ResourceTemplate(name=name, uri_template=uri, description=text, mime_type=_JSON)
            for name, uri, text in _TEMPLATES
        ]
        return ListResourceTemplatesResult(resource_templates=made)

    async def read(_: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        document = await work(lambda: _read(host, actor, params.uri))
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type=_JSON, text=text)])

    async def list_prompts(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=list(_PROMPTS))

    async def get_prompt(_: ServerRequestContext[Any], params: GetPromptRequestParams) -> GetPromptResult:
        text = await work(lambda: _prompt(host, actor, params.name, params.arguments or {}))
        return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(text=text))])

    return {
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read,
        "on_list_prompts": list_prompts,
        "on_get_prompt": get_prompt,
    }


_READ = HostTool("documents", "", {}, lambda *_: {}, reads=True)


def _read(host: Host, actor: Actor, uri: str) -> Mapping[str, Any]:
    if uri == INDEX:
        return dict(host.archives.index(actor))
    if uri.startswith(_DREAM):
        return report_document(host.lineage.report(actor, unquote(uri.removeprefix(_DREAM))))
    if not uri.startswith(_MEMORY):
        raise MCPError(_NOT_FOUND, "There is no such resource. List resources and their templates.")
    ref, _, entry_id = uri.removeprefix(_MEMORY).partition("/")
    if entry_id:
        return entry_view(host.reader.get(actor, unquote(ref), unquote(entry_id)))
    page = host.reader.page(actor, unquote(ref), limit=_MOST)
    return {
        "ref": unquote(ref),
        "entries": [entry_view(entry) for entry in page.items],
        "more": page.cursor is not None,
    }


def _prompt(host: Host, actor: Actor, name: str, given: Mapping[str, str]) -> str:
    if name == "wrap-up":
        return _WRAP_UP
    topic = given.get("topic", "").strip()
    if name != "recall" or not topic:
        raise MCPError(_INVALID, "The prompts are recall (with a topic) and wrap-up.")
    packed = host.search.context(actor, given.get("ref") or DEFAULT_REF, topic[:4096], budget=1000)
    return f"{packed.text or 'Nothing is known about this yet.'}\n\nTask: {topic}"
