"""The content-addressed archive of a dream, and the index of archives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reverie.core.canonical import canonical
from reverie.core.clock import to_iso
from reverie.distil.source import Source
from reverie.distil.tokens import tokenize

ARCHIVE_SCHEMA = "reverie.archive/1"
INDEX_SCHEMA = "reverie.memory-index/1"
INDEX_PATH = "MEMORY-INDEX.json"
MAX_TOPICS = 8
INDEX_NAMES = ("memoryRef", "outputId", "archiveChecksum", "createdAt")
INDEX_FIELDS = (*INDEX_NAMES[:3], "sourceCount", "byteSize", "tokenBudget", "tokensUsed", "createdAt")
"""Fields of an archive in the index file: no text, and no words of it."""


def archive_document(sources: Sequence[Source], text: str, *, budget: int, tokenizer: str) -> dict[str, Any]:
    """Build the archive of a dream, without time, run, tenant, ref or output id: the same work gives the same bytes."""
    ordered = sorted(sources, key=lambda source: (source.created_at, source.id))
    return {
        "schema": ARCHIVE_SCHEMA,
        "tokenBudget": budget,
        "tokenizerName": tokenizer,
        "sources": [
            {"id": source.id, "sha256": hashlib.sha256(source.content.encode()).hexdigest()} for source in ordered
        ],
        "content": text,
    }


def archive_bytes(document: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the canonical bytes of an archive and their SHA-256."""
    encoded = canonical(dict(document))
    return encoded, hashlib.sha256(encoded).hexdigest()


def work_key(sources: Sequence[Source], *, budget: int, fingerprint: str, tokenizer: str) -> str:
    """Return the key of a piece of work: equal for the same sources, budget, tokenizer and distiller."""
    document = archive_document(sources, "", budget=budget, tokenizer=tokenizer)
    return hashlib.sha256(canonical([document, fingerprint])).hexdigest()


def topics(text: str) -> list[str]:
    """Return the recurring words of a text, most frequent first: for the index, from redacted text only."""
    seen: dict[str, tuple[int, int, str]] = {}
    for place, token in enumerate(tokenize(text)):
        if not token.telling or len(token.text) < 4 or "REDACTED" in token.text or any(c.isdigit() for c in token.text):
            continue
        times, first, shown = seen.get(token.stem, (0, place, token.text.lower()))
        seen[token.stem] = (times + 1, first, shown)
    often = sorted((item for item in seen.values() if item[0] > 1), key=lambda item: (-item[0], item[1]))
    return [shown for _, _, shown in often[:MAX_TOPICS]]


def index_entry(
    *,
    ref: str,
    output_id: str,
    checksum: str,
    sources: Sequence[Source],
    text: str,
    byte_size: int,
    budget: int,
    tokens_used: int,
    output_tokens: int,
    created_at: int,
) -> dict[str, Any]:
    """Build the index entry of one archive."""
    return {
        "memoryRef": ref,
        "outputId": output_id,
        "archiveChecksum": checksum,
        "sourceCount": len(sources),
        "byteSize": byte_size,
        "tokenBudget": budget,
        "tokensUsed": tokens_used,
        "tokens": output_tokens,
        "createdAt": to_iso(created_at),
        "from": to_iso(min(source.created_at for source in sources)),
        "to": to_iso(max(source.created_at for source in sources)),
        "topics": topics(text),
    }


def index_document(archives: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Build MEMORY-INDEX.json, which the next session loads at its start."""
    ordered = sorted(archives, key=lambda item: (item["memoryRef"], item["createdAt"], item["outputId"]))
    return {"schema": INDEX_SCHEMA, "archives": [dict(item) for item in ordered]}


def split_index(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Split an index into the file, which has no words of any entry, and the readable fields by output."""
    items = [{name: item[name] for name in INDEX_FIELDS} for item in document["archives"]]
    more = {
        item["outputId"]: {name: value for name, value in item.items() if name not in INDEX_FIELDS}
        for item in document["archives"]
    }
    return {"schema": INDEX_SCHEMA, "archives": items}, more


def checked_item(item: Any) -> dict[str, Any]:
    """Return one item of an index file. Raises ValueError if it is malformed."""
    wanted = {name: str if name in INDEX_NAMES else int for name in INDEX_FIELDS}
    if not isinstance(item, dict) or any(not isinstance(item.get(name), kind) for name, kind in wanted.items()):
        raise ValueError("not an index of archives")
    return dict(item)


def index_page(document: Mapping[str, Any]) -> str:
    """Render the index as Markdown."""
    lines = ["# Memory index", ""]
    ref = None
    for item in document["archives"]:
        if item["memoryRef"] != ref:
            ref = item["memoryRef"]
            lines += [f"## {ref}", ""]
        about = ", ".join(item.get("topics", ())) or "no recurring topic"
        lines.append(
            f"- {item.get('from', '')[:10]} to {item.get('to', item['createdAt'])[:10]}: "
            f"{item['sourceCount']} memories in {item.get('tokens', item['tokensUsed'])} tokens "
            f"({about}); entry `{item['outputId']}`, archive `{item['archiveChecksum'][:12]}`"
        )
    return "\n".join(lines) + "\n"
