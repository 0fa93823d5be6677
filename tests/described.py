"""Answers held against the OpenAPI document: every member of a body must be described, and nothing required is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import jsonschema_rs
import orjson

MOST_BYTES = 200_000
"""Larger bodies are not looked at: they repeat what smaller ones have."""
_DOCUMENT = "urn:reverie:openapi"
_KNOWN: WeakKeyDictionary[Any, Described] = WeakKeyDictionary()


class _Document:
    """A document with every object closed that does not say otherwise. Applications that have the same share it."""

    def __init__(self, text: bytes) -> None:
        self.closed = close(orjson.loads(text))
        # One copy of the components for all validators: each holds and compiles what it is given, which is 2 MB.
        self.components = jsonschema_rs.Registry([(_DOCUMENT, {"components": self.closed["components"]})])
        self.patterns = [
            (method.upper(), path, re.compile(_pattern(path)))
            for path, methods in sorted(self.closed["paths"].items(), key=lambda item: item[0].count("{"))
            for method in methods
        ]
        self.validators: dict[tuple[str, str, int], Any] = {}


_document = lru_cache(maxsize=16)(_Document)


class Described:
    """The document of one application, and which of its operations were seen."""

    def __init__(self, document: bytes) -> None:
        known = _document(document)
        self._document, self._patterns, self._validators = known.closed, known.patterns, known.validators
        self._components = known.components
        self.seen: set[tuple[str, str]] = set()
        """Operations that answered with success, as (method, path)."""

    @property
    def operations(self) -> set[tuple[str, str]]:
        """Every operation as (method, path)."""
        return {(method, path) for method, path, _ in self._patterns}

    def operation(self, method: str, path: str) -> str | None:
        """The described path that a path is one of."""
        return next((at for verb, at, rx in self._patterns if verb == method and rx.fullmatch(path)), None)

    def check(self, method: str, path: str, status: int, media: str, body: Any) -> None:
        """Hold an answer against the operation that gave it. Paths that are not described are nobody's."""
        found = self.operation(method, path)
        if found is None:
            return
        name = f"{method} {found} -> {status}"
        answers = self._document["paths"][found][method.lower()]["responses"]
        answer = answers.get(str(status))
        if 200 <= status < 300:
            assert answer is not None, f"{name}: the document does not name this answer"
            self.seen.add((method, found))
        content = (answer or {}).get("content", {}).get(media)
        if media != "application/json" or content is None:
            assert answer is None or not 200 <= status < 300 or not body or content, f"{name}: {media} is not named"
            return
        key = (method, found, status)
        if key not in self._validators:
            schema = _absolute(content["schema"])
            self._validators[key] = jsonschema_rs.Draft202012Validator(schema, registry=self._components)
        fault = next(self._validators[key].iter_errors(body), None)
        assert fault is None, f"{name}: {fault.instance_path}: {fault.message[:300]}"


def described(app: Any, fetch: Any) -> Described:
    """The document of an application, read once: `fetch()` gets it."""
    if app not in _KNOWN:
        _KNOWN[app] = Described(fetch())
    return _KNOWN[app]


def _pattern(path: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", lambda found: ".+" if found[1] == "path" else "[^/]+", re.escape(path))


def _absolute(schema: Any) -> Any:
    """The schema with references that lead into the document from wherever it stands."""
    if isinstance(schema, list):
        return [_absolute(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: _DOCUMENT + value if name == "$ref" and str(value).startswith("#/") else _absolute(value)
        for name, value in schema.items()
    }


def close(schema: Any) -> Any:
    """The schema with every object closed that does not say otherwise."""
    if isinstance(schema, list):
        return [close(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {name: close(value) for name, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema and "additionalProperties" not in schema:
        made["additionalProperties"] = False
    return made
