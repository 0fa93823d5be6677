"""What the emulated provider keeps: sealed payloads, stored responses, and the prompt cache.

A sealed payload is an opaque string that only the account it was made for, on the base it was made at, can use again,
unaltered. What it stands for stays here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from dataclasses import dataclass, field
from typing import Any

from reverie.providers.tokenizer import TokenCounter

_count = TokenCounter().count
_counted: dict[str, int] = {}


def count(text: str) -> int:
    """Tokens of a text, remembered: long sessions show the same items again and again."""
    known = _counted.get(text)
    if known is None:
        if len(_counted) > 50_000:
            _counted.clear()
        known = _counted[text] = _count(text)
    return known


@dataclass(frozen=True)
class Sealed:
    """What a payload stands for. `facts` are what the model still knows of the items that went into it."""

    org: str
    base: str
    kind: str
    tokens: int
    facts: tuple[str, ...] = ()
    outputs: int = 0
    server: bool = False


@dataclass
class Stored:
    """A stored response: the whole context after it, and what it said."""

    org: str
    context: list[dict[str, Any]]
    response: dict[str, Any]


@dataclass
class Vault:
    """State of one emulated provider, shared by its threads."""

    sealed: dict[str, Sealed] = field(default_factory=dict)
    stored: dict[str, Stored] = field(default_factory=dict)
    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """Stored output items by (org, id)."""
    minted: set[tuple[str, str]] = field(default_factory=set)
    """Ids of messages in compact outputs: not stored, yet to be used as they are."""
    needs: dict[tuple[str, str], str] = field(default_factory=dict)
    """(org, id of a stored item) -> id of the reasoning item it must follow."""
    prefixes: dict[str, list[list[tuple[str, int]]]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    numbers: int = 0

    def new_id(self, prefix: str) -> str:
        with self.lock:
            self.numbers += 1
            return f"{prefix}_{self.numbers:08x}{secrets.token_hex(8)}"

    def seal(self, what: Sealed) -> str:
        """A string as long as such payloads are, with the letters that careless code changes."""
        size = max(90, what.tokens * 3)
        stream = base64.urlsafe_b64encode(hashlib.shake_256(secrets.token_bytes(32)).digest(size)).decode()
        text = "gAAAA" + stream.rstrip("=") + "=="
        with self.lock:
            self.sealed[text] = what
        return text

    def open(self, text: Any, *, org: str, base: str, kind: str) -> Sealed | None:
        """The payload, or None if it is altered, foreign, or of the other kind."""
        found = self.sealed.get(text) if isinstance(text, str) else None
        return found if found and (found.org, found.base, found.kind) == (org, base, kind) else None

    def keep(self, org: str, context: list[dict[str, Any]], response: dict[str, Any]) -> None:
        """Store a response."""
        with self.lock:
            self.stored[response["id"]] = Stored(org, context, response)
            reasoning = ""
            for item in response["output"]:
                if "id" in item:
                    self.items[org, item["id"]] = item
                    if reasoning and item["type"] != "reasoning":
                        self.needs[org, item["id"]] = reasoning
                reasoning = item.get("id", "") if item["type"] == "reasoning" else ""

    def cached(self, key: str, segments: list[tuple[str, int]], *, least: int) -> int:
        """Tokens of the longest prefix seen before under this cache key, in steps of 128."""
        best = 0
        with self.lock:
            for known in self.prefixes.get(key, ()):
                tokens = 0
                for mine, its in zip(segments, known, strict=False):
                    if mine[0] != its[0]:
                        break
                    tokens += mine[1]
                best = max(best, tokens)
        return best - best % 128 if best >= least else 0

    def warm(self, key: str, segments: list[tuple[str, int]]) -> None:
        """Remember a prompt; the eight newest per key stay warm."""
        with self.lock:
            known = self.prefixes.setdefault(key, [])
            known.append(segments)
            del known[:-8]


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def mark(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
