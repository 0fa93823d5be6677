"""The memory file of the MCP reference server: entities with observations, and relations between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reverie.importers.record import Item, Record, Skipped, damaged, in_pieces, json_lines

ENTITY = '{"type": "entity", "name": ..., "entityType": ..., "observations": [...]}'
RELATION = '{"type": "relation", "from": ..., "to": ..., "relationType": ...}'
EXPECTED = f"one of {ENTITY} and {RELATION}"


def fits(path: Path, head: bytes) -> bool:
    """A file whose first line is an entity or a relation."""
    first = head.lstrip().partition(b"\n")[0]
    return path.is_file() and (
        (b'"entity"' in first and b'"observations"' in first) or (b'"relation"' in first and b'"relationType"' in first)
    )


def read(path: Path) -> Iterator[Item]:
    """One record per observation, with the entity as subject; one per relation, linked to its entities."""
    first: dict[str, str] = {}
    for number, line in json_lines(path, EXPECTED):
        if isinstance(line, dict) and line.get("type") == "entity":
            yield from _entity(line, path, number, first)
    for number, line in json_lines(path, EXPECTED):
        if isinstance(line, dict) and line.get("type") == "relation":
            yield _relation(line, path, number, first)
        elif not isinstance(line, dict) or line.get("type") != "entity":
            raise damaged(path, f"expected {EXPECTED}.", number)


def _entity(line: dict[str, Any], path: Path, number: int, first: dict[str, str]) -> Iterator[Item]:
    name, kind, observations = line.get("name"), line.get("entityType"), line.get("observations")
    sound = isinstance(name, str) and name and isinstance(kind, str) and isinstance(observations, list)
    if not sound or not all(isinstance(text, str) for text in observations or ()):
        raise damaged(path, f"expected {ENTITY}.", number)
    assert isinstance(name, str)
    assert isinstance(kind, str)
    place = f"{path.name}, line {number}"
    texts = [text for text in observations or () if text.strip()]
    for text in texts or [f"{name} ({kind})" if kind else name]:
        key = f"{name}\0{text}"
        first.setdefault(name, key)
        content = text if name.casefold() in text.casefold() else f"{name}: {text}"
        about = {"entity": name, "entity_type": kind}
        tags = (kind[:200],) if kind else ()
        yield from in_pieces(Record(key, content, place, subject=name[:256], tags=tags, attributes=about))
    if len(texts) < len(observations or ()):
        yield Skipped(place, "an observation without text")


def _relation(line: dict[str, Any], path: Path, number: int, first: dict[str, str]) -> Record:
    ends = [line.get(name) for name in ("from", "relationType", "to")]
    if not all(isinstance(end, str) and end for end in ends):
        raise damaged(path, f"expected {RELATION}.", number)
    source, relation, target = map(str, ends)
    content = f"{source} {relation.replace('_', ' ')} {target}"
    links = tuple((first[end], relation) for end in (source, target) if end in first)
    about = {"from": source, "relation": relation, "to": target}
    place = f"{path.name}, line {number}"
    key = f"{source}\0{relation}\0{target}"
    return Record(key, content, place, kind="relation", subject=source[:256], attributes=about, links=links)
