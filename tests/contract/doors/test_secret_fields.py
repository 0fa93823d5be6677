"""No string that a caller can send anywhere is kept or logged with a secret in it.

The fields are not listed here: they are read from the schemas of the routes and tools. So a new field is looked at on
the day it is added, and a route without a schema fails the test until it has an example below.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import logging
import os
import random
import re
import string
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from starlette.routing import Route as PlainRoute

from reverie.api.console import access
from reverie.api.console.routes import PAGES
from reverie.api.console.routes import routes as console_routes
from reverie.api.mcp import memory_profile
from reverie.core.actor import Actor
from reverie.http.browser import COOKIE, form_token
from reverie.http.openapi import document
from reverie.http.routes import Operation, Route
from reverie.protocols.akashik.http import mcp_tools as akashik_tools
from reverie.protocols.akashik.operations.table import TABLE

SEAMS = {"openwop_seams": True, "openwop_compaction": True, "openwop_trigger_compaction": True, "akashik_faults": True}
_DIGITS = string.ascii_letters + string.digits
MADE = re.compile(r"gh[p]_[A-Za-z0-9]{36}")
"""The shape of the values that are made up here, wherever one is found."""
PLAIN = {
    "ref": "notes", "memoryRef": "notes", "cron": "0 3 * * *", "zone": "UTC", "id": "plain", "workflowId": "reverie.distill",
    "value": "ordinary-long-value", "content": "The kettle is blue.", "path": "notes.md", "run_id": "none",
}  # fmt: skip
"""Values with which a request gets far, by the name of the field."""
STREAMS = {"/v1/runs/{run_id}/events", "/akashik/v1/subscriptions/stream", "/akashik/v1/subscriptions/socket"}
OWN = {"/", "/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/mcp", "/akashik/mcp"}
"""Without parameters, or (MCP) walked by the schemas of the tools."""
ENVELOPES: dict[str, dict[str, Any]] = {
    "REGISTER": {"id": "a", "role": "r", "interests": ["i"], "capabilities": ["c"], "required_operations": ["RECORD"]},
    "RECORD": {
        "mode": "committed", "type": "finding", "content": "c", "subject": "s", "tags": ["t"],
        "intent": {"purpose": "p", "task_id": "t", "question": "q"},
        "confidence": {"score": 0.5, "reasoning": "r", "evidence": ["e"], "assumptions": ["a"]},
        "relations": [{"type": "supports", "target_id": "t", "description": "d"}], "retracts": ["x"],
    },
    "ATTUNE": {"scope": {"role": "r", "max_units": 5, "session_id": "s", "types": ["finding"]}, "context_hint": "h"},
    "DETECT": {"scope": {"session_id": "s", "involving_agents": ["a"]}},
    "MERGE": {"conflict_id": "c", "strategy": "authority", "winner_id": "w", "rationale": "r", "content": "c"},
    "SUBSCRIBE": {"action": "create", "events": ["memory.recorded"], "filter": {"session_id": "s", "topic": "t"}},
    "REPLAY": {"session_id": "s", "from_epoch": 0, "format": "text"},
    "COMPACT": {"strategy": "archive", "reason": "r", "scope": {"session_id": "s", "unit_ids": ["u"]}},
    "COORDINATE": {
        "action": "create", "reason": "r",
        "task": {"id": "t", "title": "t", "description": "d", "priority": "p", "assignee": "a", "depends_on": ["d"]},
    },
    "HANDOFF": {
        "action": "initiate", "task_id": "t", "to_agent": "b", "reason": "r",
        "context": {"summary": "s", "open_questions": ["q"], "unit_ids": ["u"]},
    },
    "SESSION": {
        "action": "create",
        "session": {"id": "s", "goal": "g", "members": ["m"], "policy": {"role_rules": [{"role": "r", "deny_types": ["question"]}]}},
    },
    "DEREGISTER": {"agent_id": "a", "reason": "r"},
}  # fmt: skip
FORM = {
    "change": "retract",
    "budget": "100",
    "authority": "4",
    "expires": "",
    "rights": "read",
    "sure": "1",
    "kind": "dream",
}
"""Values with which a form of the console gets far."""
QUESTIONS = ["field/log?session_id={}", "field/log?agent_id={}", "agents?x={}", "conflicts?session_id={}", "units/{}"]
HEADERS = ["Idempotency-Key", "If-Match", "Last-Event-ID"]
"""Headers that routes read, and may refuse."""
TOGETHER = ["X-Request-Id", "User-Agent", "Traceparent", "X-Anything"]
"""Headers that are read in front of all routes or not at all, and never refused: they are sent in one request."""


@dataclass
class Walk:
    """Sends a made-up secret in one field at a time and remembers where each of them went.

    `every`: each field gets both kinds of value; otherwise one after the other does, beginning with a new one or with
    the registered one (`new`).
    """

    caller: Any
    registered: str
    every: bool = True
    new: bool = True
    sent: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    reached: int = 0
    _chosen: random.Random = field(default_factory=lambda: random.Random(71))
    _latest: deque[str] = field(default_factory=lambda: deque(maxlen=len(TOGETHER)))

    def __post_init__(self) -> None:
        self._kinds = cycle((self.new, not self.new))

    def values(self, place: str) -> Iterator[str]:
        """A token of a source host, new for every field; and the value that is registered."""
        made = "gh" + "p_" + "".join(self._chosen.choices(_DIGITS, k=36))
        new = next(self._kinds)
        if self.every or new:
            self.sent[made] = place
            self._latest.append(made)
            yield made
        if self.every or not new:
            yield self.registered

    def send(self, place: str, method: str, path: str, **options: Any) -> None:
        answer = self.caller.send(method, path, **options)
        self.reached += answer.status_code < 400
        if answer.status_code >= 500 and answer.status_code != 501:
            self.failed.append(f"{place}: {answer.status_code}")
        for value in (*self._latest, self.registered):
            if answer.status_code >= 400 and value in answer.text:
                self.failed.append(f"{place}: repeated in the refusal")


def sample(schema: dict[str, Any], parts: dict[str, Any], name: str = "", depth: int = 0) -> Any:
    """A value that fits a JSON schema, with every member that has a name."""
    if "$ref" in schema:
        return sample(parts[schema["$ref"].rsplit("/", 1)[-1]], parts, name, depth)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            options = [option for option in schema[choice] if option.get("type") != "null"]
            return sample(options[0], parts, name, depth)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = next(one for one in kind if one != "null")
    if kind == "object":
        if depth > 5:
            return {}
        made = {key: sample(item, parts, key, depth + 1) for key, item in schema.get("properties", {}).items()}
        return made or {"member": "text"}
    if kind == "array":
        return [sample(schema.get("items", {"type": "string"}), parts, name, depth + 1)]
    if kind == "string":
        return PLAIN.get(name, "2030-01-01T00:00:00Z" if schema.get("format") == "date-time" else "word")
    return {"integer": 1, "number": 1, "boolean": False}.get(kind)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in `value` strings stand."""
    if isinstance(value, str):
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(item, (*path, key))


def planted(value: Any, path: tuple[Any, ...], text: str) -> Any:
    made = copy.deepcopy(value)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = text
    return made


def bodies(body: Any) -> Iterator[Any]:
    """The sample whole, and with its required-looking members only: one of them is accepted more often."""
    yield body
    if isinstance(body, dict):
        for key in body:
            if isinstance(body[key], str):
                yield {name: body[name] for name in body if name in ("content", "cron", "memoryRef", "workflowId", key)}


def documented(app: Any) -> dict[str, Any]:
    """One OpenAPI document of every route that reads typed arguments, described or not."""
    routes = [route for route in app.routes if isinstance(route, Route) and route.path not in OWN]
    described = [
        (Operation(id="", summary="", method=method, path=route.path.replace(":path}", "}")), route, ())
        for route in routes
        for method in sorted(route.methods)
    ]
    return document(described, version="1", description="")


def walk_documented(walk: Walk, app: Any) -> set[str]:
    document = documented(app)
    parts = document.get("components", {}).get("schemas", {})
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            walk_operation(walk, path, method, operation, parts)
    whole = app.openapi()  # and routes that read their bodies themselves, as their protocol describes them
    others = {path: found for path, found in whole["paths"].items() if path not in document["paths"]}
    for path, operations in others.items():
        if path.startswith(("/anthropic/", "/v1/memory_stores", "/v1/dreams")):
            for method, operation in operations.items():
                walk_operation(walk, path, method, operation, whole["components"]["schemas"])
    return set(document["paths"]) | set(others)


def walk_operation(walk: Walk, path: str, method: str, operation: dict[str, Any], parts: dict[str, Any]) -> None:
    parameters = operation.get("parameters", [])
    names = [p["name"] for p in parameters if p["in"] == "path"]
    plain = {name: PLAIN.get(name, "plain") for name in names}
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    body = sample(schema, parts) if schema else None

    def send(place: str, *, at: dict[str, str] = plain, sent: Any = body, **options: Any) -> None:
        url = path
        for name, value in at.items():
            url = url.replace("{" + name + "}", quote(value, safe=""))
        more = {"json": sent} if sent is not None else {"content": sent_lines(place)} if content else {}
        walk.send(f"{method} {path} {place}", method.upper(), url, **more, **options)

    def sent_lines(place: str) -> bytes:
        value = next(iter(walk.values(f"{path} {place} body")))
        return json.dumps({"kind": "entry", "ref": "notes", "id": value, "content": value}).encode() + b"\n"

    if path in STREAMS:
        return
    for name in names:
        for value in walk.values(f"{method} {path} path {name}"):
            send(f"path {name}", at={**plain, name: value})
    for parameter in parameters:
        if parameter["in"] == "query" and parameter["name"] not in ("after", "limit", "wait"):
            for value in walk.values(f"{method} {path} query {parameter['name']}"):
                send(f"query {parameter['name']}", params={parameter["name"]: value})
    for name in HEADERS:
        for value in walk.values(f"{method} {path} header {name}"):
            send(f"header {name}", headers={name: value})
    for values in zip(*(walk.values(f"{method} {path} header {name}") for name in TOGETHER), strict=True):
        send("headers", headers=dict(zip(TOGETHER, values, strict=True)))
    for whole in bodies(body) if body is not None else ():
        for leaf in leaves(whole):
            place = f"{method} {path} body {'/'.join(map(str, leaf))}"
            for value in walk.values(place):
                send(place, sent=planted(whole, leaf, value))


def walk_field(walk: Walk) -> None:
    message = 0
    for operation, payload in ENVELOPES.items():
        envelope = {
            "protocol": "akashik", "version": "0.1.0", "id": "", "operation": operation, "agent_id": "a",
            "session_id": "s", "epoch": 0, "payload": payload,
        }  # fmt: skip
        for leaf in leaves(envelope):
            for value in walk.values(f"akashik {operation} {'/'.join(map(str, leaf))}"):
                message += 1
                sent = planted({**envelope, "id": f"m{message}"}, leaf, value)
                walk.send(f"akashik {operation} {leaf}", "POST", f"/akashik/v1/{operation.lower()}", json=sent)
    for question in QUESTIONS:
        for value in walk.values(f"akashik {question}"):
            walk.send(question, "GET", f"/akashik/v1/{question.format(value)}")


def walk_tools(walk: Walk, host: Any, actor: Actor) -> None:
    for tool in (*memory_profile().tools, *akashik_tools()):
        schema = tool.described().input_schema
        whole = sample(schema, {})
        needed = {name: whole[name] for name in schema.get("required", [])}
        for base in (whole, needed, *({**needed, name: whole[name]} for name in whole)):
            for leaf in leaves(base):
                for value in walk.values(f"mcp {tool.name} {'/'.join(map(str, leaf))}"):
                    try:
                        answer = str(tool.call(host, actor, planted(base, leaf, value)))
                        walk.reached += 1
                    except Exception as fault:  # whatever it is, it must not repeat the value
                        answer = str(fault)
                    if value in answer and tool.name not in ("recall", "context"):
                        walk.failed.append(f"mcp {tool.name} {leaf}: repeated in the answer")


CONSOLE = Path(inspect.getsourcefile(access) or "").parent


def fields_of(module: Path) -> dict[str, set[str]]:
    """The names that a module of the console asks a request for: of the address (`text`), of a form (`form`)."""
    asked: dict[str, set[str]] = {"text": set(), "form": set()}
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            kind = {"text": "text", "number": "text", "form_field": "form", "form_fields": "form"}.get(node.func.attr)
            first = node.args[0]
            if kind and isinstance(first, ast.Constant) and isinstance(first.value, str):
                asked[kind].add(first.value)
    return asked


def walk_console(walk: Walk, host: Any, actor: Actor) -> set[str]:
    """Every parameter of every page and every field of every form, by the names that its module asks for."""
    session = host.sessions.open(actor)
    headers = {"Cookie": f"{COOKIE}={session}", "Accept": "text/html", "Authorization": ""}
    walked: set[str] = set()
    own = {inspect.getsourcefile(page.show) for page in PAGES}
    shared = [fields_of(module) for module in CONSOLE.glob("*.py") if str(module) not in own]

    def visit(place: str, method: str, path: str, **options: Any) -> None:
        walk.send(f"console {method} {place}", method, path, headers=headers, **options)

    for page in PAGES:
        folder = Path(inspect.getsourcefile(page.show) or "")
        names = re.findall(r"\{(\w+)(?::\w+)?\}", page.path)
        plain = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: PLAIN.get(found[1], "plain"), page.path)
        for name in names:
            for value in walk.values(f"console {page.path} path {name}"):
                visit(page.path, "GET", re.sub(r"[{}]", "", page.path.replace("{" + name, value)))
        for name in sorted(fields_of(folder)["text"].union(*(module["text"] for module in shared))):
            walked.add(name)
            for value in walk.values(f"console {page.path} query {name}"):
                visit(page.path, "GET", plain, params={name: value})
        for do, change in page.do.items():
            asked = fields_of(Path(inspect.getsourcefile(inspect.unwrap(change)) or ""))["form"]
            form = {name: FORM.get(name, PLAIN.get(name, "word")) for name in sorted(asked)}
            form |= {"do": do, "token": form_token(session)}
            for name in form.keys() - {"do", "token"}:
                walked.add(name)
                for sent in (form, {key: form[key] for key in ("do", "token")} | {"sure": "1"}):
                    for value in walk.values(f"console {page.path} {do} form {name}"):
                        visit(f"{page.path} {do}", "POST", plain, data={**sent, name: value})
    return walked


def everything(folder: Path, host: Any, actor: Actor, request: pytest.FixtureRequest, engine: str) -> bytes:
    """All that is kept: files of the host, a backup, an export, and every row on PostgreSQL."""
    kept = [*host.bundles.export(actor)]
    if engine == "sqlite":
        host.parts.store.backup(str(folder / "copy.db"))
    else:
        server, url = request.getfixturevalue("postgres"), host.parts.store._url
        database = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        tables = "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        for (table,) in server.execute(tables, database=database):
            rows = server.execute(
                f"SELECT t::text, encode(convert_to(t::text, 'UTF8'), 'escape') FROM {table} AS t", database=database
            )
            kept += [str(row).encode() for row in rows]
    host.close()
    return b"".join([*kept, *(path.read_bytes() for path in folder.rglob("*") if path.is_file())])


class Lines(logging.Handler):
    """All that is logged, with every member of every record, before the guard in front of the output sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text.append(f"{record.__dict__}\n")


def test_no_field_of_any_door_keeps_a_secret(
    make_server: Callable[..., Any],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    engine: str,
) -> None:
    server = make_server(data=tmp_path, rate_per_second=0, **SEAMS)
    caller = server.caller()
    actor = server.host.keys.authenticate(caller.key, door="rest")
    registered = "Melancholy.Hippo-" + "".join(random.Random(5).choices(string.ascii_lowercase, k=9))
    server.host.rules.register(actor, "pet", registered)
    lines = Lines()
    logging.getLogger("reverie").addHandler(lines)
    request.addfinalizer(lambda: logging.getLogger("reverie").removeHandler(lines))
    # What a host keeps is redacted before a store sees it: each field gets one kind of value on SQLite and the other on
    # PostgreSQL.
    walk = Walk(caller, registered, every=bool(os.environ.get("REVERIE_SOAK")), new=engine == "sqlite")
    seen = walk_documented(walk, server.app)
    walk_field(walk)
    walk_tools(walk, server.host, actor)
    before = walk.reached
    walked = walk_console(walk, server.host, actor)
    asked = set().union(*(names for module in CONSOLE.glob("*.py") for names in fields_of(module).values()))
    assert asked - walked <= {"do", "token"}, "a field of the console that was not walked"
    assert set(TABLE) == set(ENVELOPES), "an operation of the Field without an example"
    addresses = {route.path.replace(":path}", "}") for route in server.app.routes if isinstance(route, PlainRoute)}
    pages = {route.path for route in console_routes("") if isinstance(route, PlainRoute)}
    others = {path for path in addresses - seen - OWN - STREAMS - pages if not path.startswith("/akashik/v1/")}
    assert not others, "routes without a schema: give them one, or an example here"
    accepted = 150 if walk.every else 75
    assert before > accepted
    assert walk.reached - before > accepted
    assert walk.failed == []
    kept = everything(tmp_path, server.host, actor, request, engine).decode("utf-8", "replace")
    logs = "".join(lines.text)
    spilled = [walk.sent[value] for value in set(MADE.findall(kept)) & walk.sent.keys()]
    logged = [walk.sent[value] for value in set(MADE.findall(logs)) & walk.sent.keys()]
    assert (spilled, logged) == ([], [])
    assert registered not in kept
    assert registered not in logs
