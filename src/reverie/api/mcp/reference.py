"""A knowledge graph with the nine tool names of the reference memory server.

An entity is an entry of kind `entity` with its name as subject. Its observations are the entries about that subject,
by any author; a relation is an entry of kind `relation`. So the graph is searched, dreamt and forgotten like any
other memory, and `forget` of an entity's name takes all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Entry
from reverie.core.errors import NotFound
from reverie.core.query import Filter, each
from reverie.core.subject import SUBJECT_TAG
from reverie.host import Host
from reverie.mcp.toolset import Arguments, HostTool, ToolRefused
from reverie.redact import load_redactor

INSTRUCTIONS = (
    "Reverie is durable memory, here as a knowledge graph. Search it at the start of a task and before you answer"
    " about people, projects or earlier decisions. Store lasting facts as observations, one fact each."
)
REF = "graph"
_ENTITY, _RELATION, _OBSERVATION = "entity", "relation", "observation"
_PAGE = 1000
_HITS = 50


def _create_entities(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    named: dict[str, dict[str, Any]] = {}
    for entity in arguments["entities"]:
        named.setdefault(entity["name"], entity)
    drafts = []
    for name, entity in named.items():
        if _about(host, actor, name):
            continue
        mark = f"entity:{name}"
        text = f"{name} is a {entity['entityType']}."
        kept = {"entity": {"name": name, "type": entity["entityType"]}}
        drafts.append(
            Draft(text, kind=_ENTITY, subject=name, tags=(mark,), attributes=kept, replaces=mark, pinned=True)
        )
        drafts += [Draft(text, kind=_OBSERVATION, subject=name) for text in dict.fromkeys(entity["observations"])]
    return {"entities": _graph(_store(host, actor, drafts))["entities"]}


def _create_relations(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    drafts, relations = [], arguments["relations"]
    known = {_parts(_arrow(entry)) for entry in _arrows(host, actor, {relation["from"] for relation in relations})}
    for relation in relations:
        if _parts(relation) in known:
            continue
        known.add(_parts(relation))
        text = f"{relation['from']} {relation['relationType']} {relation['to']}."
        ends = tuple(dict.fromkeys(SUBJECT_TAG + relation[end] for end in ("from", "to")))
        drafts.append(Draft(text, kind=_RELATION, tags=ends, attributes={"relation": dict(relation)}, pinned=True))
    return {"relations": _graph(_store(host, actor, drafts))["relations"]}


def _add_observations(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    drafts: list[Draft] = []
    results: list[dict[str, Any]] = []
    entities: dict[str, list[Entry]] = {}
    for wanted in arguments["observations"]:
        name = wanted["entityName"]
        if name not in entities:
            entities[name] = _about(host, actor, name)
        about = entities[name]
        if not about:
            redactor = host.parts.redactor if isinstance(host, Host) else load_redactor()
            shown = redactor.text(name[:256]).text
            raise ToolRefused({"code": "not_found", "message": f"Entity with name {shown} not found"})
        known = {entry.content for entry in about}
        added = [text for text in dict.fromkeys(wanted["contents"]) if text not in known]
        drafts += [Draft(text, kind=_OBSERVATION, subject=name) for text in added]
        results.append({"entityName": about[0].subject, "addedObservations": len(added)})
    texts = iter([entry.content for entry in _store(host, actor, drafts)])
    for result in results:
        result["addedObservations"] = list(islice(texts, result["addedObservations"]))
    return {"results": results}


def _delete_entities(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    names = arguments["entityNames"]
    results = [entry for name in names for entry in _about(host, actor, name)]
    _delete(host, actor, [*results, *_arrows(host, actor, names)])
    return {"success": True, "message": "Entities deleted successfully"}


def _delete_observations(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    gone: dict[str, set[str]] = {}
    for wanted in arguments["deletions"]:
        gone.setdefault(wanted["entityName"], set()).update(wanted["observations"])
    for name, texts in gone.items():
        about = _about(host, actor, name)
        _delete(host, actor, [entry for entry in about if entry.kind != _ENTITY and entry.content in texts])
    return {"success": True, "message": "Observations deleted successfully"}


def _delete_relations(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    gone = {_parts(relation) for relation in arguments["relations"]}
    arrows = _arrows(host, actor, {relation["from"] for relation in arguments["relations"]})
    _delete(host, actor, [entry for entry in arrows if _parts(_arrow(entry)) in gone])
    return {"success": True, "message": "Relations deleted successfully"}


def _read_graph(host: Host, actor: Actor, _: Arguments) -> dict[str, Any]:
    return _graph(_scan(host, actor, Filter()))


def _search_nodes(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    """Entities that contain a word of the query; when there are none, those where the query is part of a word."""
    query = arguments["query"].strip()[:4096]
    if not query:
        return {"entities": [], "relations": []}
    found = host.search.search(actor, REF, query, mode="words", limit=_HITS).hits
    parts = query.casefold().split()
    names = [
        hit.entry.subject for hit in found if hit.entry.subject and any(part in _words(hit.entry) for part in parts)
    ]
    if not names:
        part = query.casefold()
        names = [entry.subject for entry in _scan(host, actor, Filter()) if entry.subject and part in _words(entry)]
    return _open(host, actor, names)


def _open_nodes(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    return _open(host, actor, arguments["names"])


def _store(host: Host, actor: Actor, drafts: Sequence[Draft]) -> list[Entry]:
    """Store drafts in one transaction. Returns the entries as stored, without secrets."""
    receipts = host.entries.put(actor, REF, drafts) if drafts else []
    return [host.reader.get(actor, REF, receipt.id) for receipt in receipts]


def _words(entry: Entry) -> str:
    return f"{entry.subject} {entry.content}".casefold()


def _open(host: Host, actor: Actor, names: Iterable[str | None]) -> dict[str, Any]:
    """Entities by name, and every relation that begins or ends at one of them."""
    wanted = [name for name in dict.fromkeys(names) if name]
    results = [entry for name in wanted for entry in _about(host, actor, name)]
    return _graph([*results, *_arrows(host, actor, wanted)])


def _about(host: Host, actor: Actor, name: str) -> list[Entry]:
    """The entity and its observations, oldest first."""
    return [entry for entry in _scan(host, actor, Filter(subject=name)) if entry.subject == name]


def _arrows(host: Host, actor: Actor, names: Iterable[str]) -> list[Entry]:
    """The relations that begin or end at one of these entities, oldest first."""
    wanted = set(names)
    if not wanted:
        return []
    ends = tuple(SUBJECT_TAG + name for name in sorted(wanted))
    found = _scan(host, actor, Filter(kinds=(_RELATION,), any_tags=ends))
    return [entry for entry in found if not wanted.isdisjoint(_parts(_arrow(entry))[:2])]


def _scan(host: Host, actor: Actor, where: Filter) -> list[Entry]:
    read = host.reader.page
    return list(each(lambda cursor: read(actor, REF, where, limit=_PAGE, cursor=cursor, oldest_first=True)))


def _arrow(entry: Entry) -> dict[str, str]:
    """The relation in an entry. Any writer may have set its attributes, so none is taken for granted."""
    stored = entry.attributes.get("relation")
    return {name: str(stored.get(name, "") if isinstance(stored, dict) else "") for name in _RELATIONS}


def _parts(relation: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(relation[name] for name in _RELATIONS)


def _graph(entries: Iterable[Entry]) -> dict[str, Any]:
    entities: dict[str, dict[str, Any]] = {}
    relations = []
    for entry in entries:
        if entry.kind == _RELATION:
            relations.append(_arrow(entry))
        elif entry.subject:
            about = entry.attributes.get("entity")
            node = entities.setdefault(entry.subject, {"name": entry.subject, "entityType": "", "observations": []})
            if entry.kind == _ENTITY:
                node["entityType"] = about.get("type", "") if isinstance(about, dict) else ""
            else:
                node["observations"].append(entry.content)
    return {"entities": list(entities.values()), "relations": relations}


def _delete(host: Host, actor: Actor, entries: Iterable[Entry]) -> None:
    for entry in entries:
        try:
            host.lifecycle.delete(actor, REF, entry.id)
        except NotFound:
            continue


def _list(name: str, properties: dict[str, str]) -> dict[str, Any]:
    """Schema of a list of objects with required members; `*` marks a list of strings."""
    members = {
        member.rstrip("*"): {"type": "array", "items": {"type": "string"}, "description": text}
        if member.endswith("*")
        else {"type": "string", "description": text}
        for member, text in properties.items()
    }
    items = {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}
    return {name: {"type": "array", "items": items}}


_ENTITIES = {"name": "Its name", "entityType": "Its type, such as person", "observations*": "Facts about it"}
_RELATIONS = {"from": "The entity it begins at", "to": "The entity it ends at", "relationType": "In active voice"}
_NAMES = {"type": "array", "items": {"type": "string"}, "description": "Names of entities"}

TOOLS = (
    HostTool(
        "create_entities",
        "Create entities. Those that exist are left as they are.",
        _list("entities", _ENTITIES),
        _create_entities,
        required=("entities",),
        entries=lambda given: sum(1 + len(entity["observations"]) for entity in given["entities"]),
    ),
    HostTool(
        "create_relations",
        "Create relations between entities, in active voice.",
        _list("relations", _RELATIONS),
        _create_relations,
        required=("relations",),
        entries=lambda given: len(given["relations"]),
    ),
    HostTool(
        "add_observations",
        "Add facts to entities that exist.",
        _list("observations", {"entityName": "Which entity", "contents*": "One fact each"}),
        _add_observations,
        required=("observations",),
        entries=lambda given: sum(len(wanted["contents"]) for wanted in given["observations"]),
    ),
    HostTool(
        "delete_entities",
        "Delete entities with their observations and relations.",
        {"entityNames": _NAMES},
        _delete_entities,
        required=("entityNames",),
        destroys=True,
    ),
    HostTool(
        "delete_observations",
        "Delete facts from entities.",
        _list("deletions", {"entityName": "Which entity", "observations*": "Exactly as they were stored"}),
        _delete_observations,
        required=("deletions",),
        destroys=True,
    ),
    HostTool(
        "delete_relations",
        "Delete relations.",
        _list("relations", _RELATIONS),
        _delete_relations,
        required=("relations",),
        destroys=True,
    ),
    HostTool("read_graph", "The whole graph. Large: prefer search_nodes.", {}, _read_graph, reads=True),
    HostTool(
        "search_nodes",
        "Find entities by words in their names, types and observations.",
        {"query": {"type": "string", "description": "A word or a few"}},
        _search_nodes,
        required=("query",),
        reads=True,
    ),
    HostTool(
        "open_nodes",
        "Entities by their names, with their relations.",
        {"names": _NAMES},
        _open_nodes,
        required=("names",),
        reads=True,
    ),
)
