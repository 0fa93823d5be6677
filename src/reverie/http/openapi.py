"""The OpenAPI document: every operation of every door, from the declarations that also answer requests.

A route made by `Router` describes itself. A door whose routes are plain Starlette ones lists its operations in
`Door.operations`. The examples are what a real host was sent and answered (examples.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute

from reverie.http.door import Door
from reverie.http.routes import DocumentedAnswer, Form, Operation, Route, Values

JSON = "application/json"
PLACE = "#/components/schemas/{name}"
KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key, made with `reverie keys create`. A key with scopes needs those that an operation lists.",
}
_NAMES = re.compile(r"\{(\w+)\}")
MEANINGS = {
    "ref": "Name of the memory, percent-encoded: a slash is `%2F`.",
    "id": "Id, as the list of the same path gives it.",
    "checksum": "SHA-256 of the archive, as the report of the dream names it.",
    "kind": "Kind of the entity: `user`, `agent`, `app` or `run`.",
    "name": "Id of the entity.",
    "path": "Path of the file in the workspace; slashes stay as they are.",
    "run_id": "Id of the run, from the answer that created it.",
    "workflow_id": "Id of a workflow that this host provides.",
    "agent_id": "Id of the agent, from its manifest.",
    "store": "Id of the memory store (`memstore_...`).",
    "memory": "Id of the memory (`mem_...`).",
    "dream": "Id of the dream (`drm_...`).",
    "version": "Id of the version (`memver_...`).",
    "memory_id": "Id of the memory.",
}
"""Meaning of each part of a path, by its name."""
EXAMPLES = Path(__file__).with_name("examples.json")
"""Bodies and answers of a real host by operation, written by tools/record_examples.py."""
ROOT_TWIN = "root_"
"""Prefix in the id of an operation that repeats another at a second path."""
Described = tuple[Operation, Route | None, Sequence[str]]
"""An operation, the route that answers it, and the scopes it needs."""


def document(described: Sequence[Described], *, version: str, description: str) -> dict[str, Any]:
    """The whole document."""
    schemas = Schemas(form for operation, route, _ in described for form in _forms(operation, route))
    paths: dict[str, dict[str, Any]] = {}
    for operation, route, scopes in described:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, route, scopes, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reverie",
            "summary": "A memory host for AI agents.",
            "description": description,
            "version": version,
        },
        "paths": paths,
        "components": {"schemas": schemas.components, "securitySchemes": {"key": KEY}},
    }


def operations(door: Door) -> list[Described]:
    """The operations of a door, in the order of its routes."""
    found = [(route.operation, route) for route in _routes(door.routes) if route.operation is not None]
    every = [*found, *((operation, None) for operation in door.operations)]
    return [(operation, route, door.scopes_for(operation.method, operation.path)) for operation, route in every]


class Schemas:
    """The schemas of structs by name, and references to them."""

    def __init__(self, forms: Iterable[Form | None]) -> None:
        kinds: dict[type[Struct], None] = {}
        for form in forms:
            for kind in _kinds(form):
                kinds[kind] = None
        self.components: dict[str, Any] = {}
        self._refs: dict[type[Struct], Mapping[str, Any]] = {}
        for prefix in dict.fromkeys(map(_prefix, kinds)):
            own = tuple(kind for kind in kinds if _prefix(kind) == prefix)
            made, components = _components(own, PLACE.replace("{name}", prefix + "{name}"))
            self._refs |= zip(own, made, strict=True)
            self.components |= {prefix + name: dict(schema) for name, schema in components.items()}
        self._extend(kinds)

    def of(self, form: Form) -> Mapping[str, Any]:
        """The schema of a body."""
        if isinstance(form, Mapping):
            return form
        if isinstance(form, tuple):
            return {"anyOf": [self._refs[kind] for kind in form]}
        return self._refs[form]

    def values(self, values: Values) -> dict[str, tuple[Mapping[str, Any], bool]]:
        """The schema of every parameter, and whether the parameter is required."""
        _, made = _components((values.kind,), PLACE)
        own = made[values.kind.__name__]
        return {name: (schema, name in own["required"]) for name, schema in own["properties"].items()}

    def _extend(self, kinds: Iterable[type[Struct]]) -> None:
        """Add a struct's own schema beyond its fields: examples, limits of the whole object."""
        for kind in kinds:
            name = self._refs[kind].get("$ref", "").rpartition("/")[2]
            more: Mapping[str, Any] = getattr(kind, "schema_extra", {})
            if name and more:
                self.components[name] |= more


@cache
def _components(kinds: tuple[type[Struct], ...], place: str) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Schemas that refer to components, and the components; to be copied before they are changed."""
    return msgspec.json.schema_components(kinds, ref_template=place)


def _prefix(kind: type[Struct]) -> str:
    """Return the schema prefix of a protocol's structs, where another protocol has the same names."""
    prefix: str = getattr(kind, "schema_prefix", "")
    return prefix


def _kinds(form: Form | None) -> tuple[type[Struct], ...]:
    if form is None or isinstance(form, Mapping):
        return ()
    return form if isinstance(form, tuple) else (form,)


def _routes(routes: Iterable[BaseRoute]) -> list[Route]:
    return [route for route in routes if isinstance(route, Route)]


def _forms(operation: Operation, route: Route | None) -> Iterable[Form | None]:
    yield operation.body
    if route is not None:
        yield route.body
    for answer in operation.answers.values():
        yield answer.body


def _operation(operation: Operation, route: Route | None, scopes: Sequence[str], schemas: Schemas) -> dict[str, Any]:
    shown: dict[str, Any] = {"operationId": operation.id, "summary": operation.summary}
    if operation.tags:
        shown["tags"] = list(operation.tags)
    if operation.description:
        shown["description"] = operation.description
    if not operation.open:
        shown["security"] = [{"key": list(scopes)}]
    parameters = list(_parameters(operation, route, schemas))
    if parameters:
        shown["parameters"] = parameters
    recorded = _examples().get(operation.id.removeprefix(ROOT_TWIN), {})
    body = operation.body if operation.body is not None else (route.body if route else None)
    if body:
        schema = schemas.of(body[0] if isinstance(body, tuple) and len(body) == 1 else body)
        if isinstance(body, tuple) and len(body) > 1:
            schema = {"oneOf": schema["anyOf"]}
        content: dict[str, Any] = {"schema": schema}
        bodies = [recorded[status]["body"] for status in sorted(recorded) if "body" in recorded[status]]
        if bodies:
            content["example"] = bodies[-1]
        shown["requestBody"] = {"required": operation.body_required, "content": {operation.body_media: content}}
    shown["responses"] = {
        str(status): _answer(status, answer, schemas, recorded.get(str(status), {}))
        for status, answer in sorted(operation.answers.items())
    }
    return shown


def _parameters(operation: Operation, route: Route | None, schemas: Schemas) -> Iterable[Mapping[str, Any]]:
    own = {(one["in"], one["name"]) for one in operation.parameters}
    for name in _NAMES.findall(operation.path):
        if ("path", name) not in own:
            meaning = {"description": MEANINGS[name]} if name in MEANINGS else {}
            yield {"in": "path", "name": name, "required": True, "schema": {"type": "string"}, **meaning}
    yield from operation.parameters
    for values in route.values if route else ():
        for name, (schema, required) in schemas.values(values).items():
            said = values.descriptions.get(name) or schema.get("description")
            plain = {key: value for key, value in schema.items() if (key, value) not in (("default", None),)}
            yield {
                "in": values.place,
                "name": name,
                "required": required,
                "schema": plain,
                **({"description": said} if said else {}),
            }


@cache
def _examples() -> dict[str, dict[str, dict[str, Any]]]:
    """The recorded examples: by operation, then by status, `body` and `answer`."""
    examples: dict[str, dict[str, dict[str, Any]]] = msgspec.json.decode(EXAMPLES.read_bytes())
    return examples


def _answer(status: int, answer: DocumentedAnswer, schemas: Schemas, recorded: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": answer.description or HTTPStatus(status).phrase}
    content: dict[str, Any] = {}
    if answer.body is not None:
        content[JSON] = {"schema": schemas.of(answer.body)}
    for media, schema in answer.media.items():
        content[media] = {"schema": schema}
    if content:
        shown["content"] = content
        if "answer" in recorded:
            next(iter(content.values()))["example"] = recorded["answer"]
    return shown
