"""Write clients/typescript/index.js and index.d.ts from the OpenAPI document of the native REST interface.

    python tools/generate_typescript.py            write them
    python tools/generate_typescript.py --check    exit 1 when they are not up to date

Each operation becomes one method: the segments of its path, its body, then an object with query parameters and headers.
What goes over the wire is in runtime.js, which is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "clients" / "typescript"
PREFIX = "/v1/host/reverie"
STREAM = "text/event-stream"
KEY = "idempotency-key"
HEADER = "// Written by tools/generate_typescript.py from the OpenAPI document; do not edit.\n"
Document = Mapping[str, Any]


def document() -> Document:
    """The OpenAPI document."""
    from reverie.app import build_app, build_host
    from reverie.settings import Settings

    configured = Settings.load({}, database_url="sqlite://")
    host = build_host(configured)
    try:
        found: Document = build_app(configured, host).openapi()
        return found
    finally:
        host.close()


class Operation:
    """One method of the client."""

    def __init__(self, path: str, method: str, operation: Document) -> None:
        self.path, self.method = path.removeprefix(PREFIX), method.upper()
        self.name = camel(operation["operationId"])
        self.summary = operation.get("summary", "")
        parameters = operation.get("parameters", ())
        self.segments = re.findall(r"{(\w+)}", self.path)
        self.query = [one for one in parameters if one["in"] == "query"]
        headers = [{**one, "name": one["name"].lower()} for one in parameters if one["in"] == "header"]
        self.headers = [one for one in headers if one["name"] != "last-event-id"]
        body = operation.get("requestBody", {}).get("content", {})
        self.media = next(iter(body), None)
        self.body = None if self.media is None else type_of(body[self.media]["schema"])
        answers = {status: one for status, one in operation["responses"].items() if str(status).startswith("2")}
        self.streams = any(STREAM in one.get("content", {}) for one in answers.values())
        self.returns, self.reads = _answer(answers)

    @property
    def keyed(self) -> bool:
        return any(one["name"] == KEY for one in self.headers)

    def streamed(self) -> Operation:
        """The method that streams: without an idempotency key, since a request with one is answered by its result."""
        found = copy(self)
        found.name = f"{self.name}Stream"
        found.headers = [one for one in self.headers if one["name"] != KEY]
        return found

    def arguments(self, *, typed: bool) -> str:
        """The parameters of the method."""
        found = [f"{camel(one)}: string" if typed else camel(one) for one in self.segments]
        if self.body is not None:
            found.append(f"body: {self.body}" if typed else "body")
        if typed:
            found.append(f"options?: {self._options()}")
        else:
            found.append("options = {}")
        return ", ".join(found)

    def overloads(self) -> list[str]:
        """The method's types. A body of several forms with as many answers has one for each form."""
        forms, answers = (self.body or "").split(" | "), self.returns.split(" | ")
        typed = self.arguments(typed=True)
        if len(forms) < 2 or len(forms) != len(answers):
            return [f"{self.name}({typed}): Promise<{self.returns}>;"]
        pairs = zip(forms, answers, strict=True)
        return [
            f"{self.name}({typed.replace(f'body: {self.body}', f'body: {form}')}): Promise<{answer}>;"
            for form, answer in pairs
        ]

    def _options(self) -> str:
        fields = [f"{one['name']}?: {type_of(one['schema'])}" for one in self.query]
        fields += [f"{camel(one['name'])}?: string" for one in self.headers]
        return "{ " + "; ".join([*fields, "signal?: AbortSignal"]) + " }"

    def call(self, verb: str) -> str:
        """The call of the runtime."""
        path = re.sub(r"{(\w+)}", lambda found: "${segment(" + camel(found[1]) + ")}", self.path)
        parts = [f'method: "{self.method}"', f"path: `{path}`", "options"]
        if self.query:
            parts.append("query: [" + ", ".join(f'"{one["name"]}"' for one in self.query) + "]")
        if self.headers:
            named = (f'{camel(one["name"])}: "{one["name"]}"' for one in self.headers)
            parts.append("headers: { " + ", ".join(named) + " }")
        if self.body is not None:
            parts.append("body")
            if self.media != "application/json":
                parts.append(f'media: "{self.media}"')
        if self.reads != "json":
            parts.append(f'reads: "{self.reads}"')
        if self.keyed:
            parts.append("keyed: true")
        return f"this.{verb}({{ {', '.join(parts)} }})"


def _answer(answers: Mapping[str, Document]) -> tuple[str, str]:
    """What a method returns, and how the answer is read."""
    kinds: list[str] = []
    reads = "json"
    for answer in answers.values():
        content = answer.get("content", {})
        if "application/json" in content:
            kinds.append(type_of(content["application/json"].get("schema", {})))
        elif content and STREAM not in content:
            reads = "text"
            kinds.append("string")
        elif not content:
            kinds.append("null")
    return " | ".join(dict.fromkeys(kinds)) or "null", reads


def type_of(schema: Document | bool) -> str:
    """A JSON schema as a TypeScript type."""
    if isinstance(schema, bool):
        return "unknown" if schema else "never"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        import json

        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            joined = " & " if name == "allOf" else " | "
            return joined.join(dict.fromkeys(type_of(one) for one in schema[name]))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " | ".join(dict.fromkeys(type_of({**schema, "type": kind}) for kind in kinds))
    if kinds == "array" and "prefixItems" in schema:
        return f"[{', '.join(type_of(one) for one in schema['prefixItems'])}]"
    if kinds == "array":
        inner = type_of(schema.get("items", {}))
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    if kinds == "object":
        if schema.get("properties"):
            return "{ " + "; ".join(_fields(schema)) + " }"
        more = schema.get("additionalProperties")
        return f"Record<string, {type_of(more) if isinstance(more, Mapping) else 'unknown'}>"
    plain = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
    return plain.get(str(kinds), "unknown")


def _fields(schema: Document) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, one in schema.get("properties", {}).items():
        key = name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'
        yield f"{key}{'' if name in required else '?'}: {type_of(one)}"


def used(found: Document, roots: list[str]) -> list[str]:
    """The schemas that the types name, directly or through others."""
    schemas = found["components"]["schemas"]
    waiting, seen = [name for name in schemas if any(re.search(rf"\b{name}\b", text) for text in roots)], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        text = " ".join(_fields(schemas[name])) or type_of(schemas[name])
        waiting += [other for other in schemas if re.search(rf"\b{other}\b", text)]
    return sorted(seen)


def interface(name: str, schema: Document) -> str:
    """A schema as an interface, with its descriptions."""
    if schema.get("type") != "object" or not schema.get("properties"):
        return f"export type {name} = {type_of(schema)};\n"
    lines = [f"export interface {name} {{"]
    for field, one in zip(_fields(schema), schema["properties"].values(), strict=True):
        if one.get("description"):
            lines.append(f"  /** {one['description'].replace('*/', '* /')} */")
        lines.append(f"  {field};")
    return "\n".join([*lines, "}"]) + "\n"


def camel(name: str) -> str:
    """`put_entries`, `if-match` as `putEntries`, `ifMatch`."""
    first, *rest = re.split(r"[_-]", name)
    return first + "".join(word.capitalize() for word in rest)


def generate() -> dict[str, str]:
    """The texts of the generated files by name."""
    found = document()
    operations = [
        Operation(path, method, operation)
        for path, methods in found["paths"].items()
        if path == PREFIX or path.startswith(f"{PREFIX}/")
        for method, operation in methods.items()
        if isinstance(operation, Mapping) and "operationId" in operation
    ]
    script = [
        HEADER,
        'import { Host, segment } from "./runtime.js";',
        'export { ReverieError } from "./runtime.js";',
        "",
    ]
    script.append("export class Reverie extends Host {")
    types = ["export interface ReverieOptions {"]
    types += ["  url: string;", "  key: string;", "  retrySeconds?: number;", "  fetch?: typeof fetch;", "}", ""]
    types += ["/** An answer that is not a success: `code` is one of the codes in docs/errors.md. */"]
    types += ["export class ReverieError extends Error {", "  code: string;", "  status: number;"]
    types += ["  details: Record<string, unknown>;", "}", ""]
    types += ["export interface StreamMessage {", "  event: string;", "  id?: string;", "  data: unknown;", "}", ""]
    types += ["export class Reverie {", "  constructor(options: ReverieOptions);"]
    for one in operations:
        script += [f"  {one.name}({one.arguments(typed=False)}) {{", f"    return {one.call('request')};", "  }", ""]
        types += [line for typed in one.overloads() for line in (f"  /** {one.summary}. */", f"  {typed}")]
        if one.streams:
            flow = one.streamed()
            script += [
                f"  {flow.name}({flow.arguments(typed=False)}) {{",
                f"    return {flow.call('stream')};",
                "  }",
                "",
            ]
            types += [f"  /** {flow.summary}, as a stream. */"]
            types += [f"  {flow.name}({flow.arguments(typed=True)}): AsyncGenerator<StreamMessage, void, void>;"]
    script[-1] = "}\n"
    types.append("}\n")
    names = used(found, types)
    shapes = [interface(name, found["components"]["schemas"][name]) for name in names]
    return {"index.js": "\n".join(script), "index.d.ts": "\n".join([HEADER, *types, *shapes])}


def main() -> int:
    stale = []
    for name, text in generate().items():
        target = FOLDER / name
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                target.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"not up to date: clients/typescript/{', '.join(stale)}\nrun `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
