"""Sessions of a dream: words that are already in the record, or came with the request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.dream import SourceText
from reverie.core.entry import Entry, Scope, valid_ref
from reverie.core.errors import Invalid, NotFound
from reverie.core.query import Filter, each
from reverie.dreams.snapshot import stand_in
from reverie.memory.policy import RuleBook, Rules
from reverie.protocols.anthropic.names import SESSION
from reverie.services import Services
from reverie.store.contract import ReadTx

MOST_ENTRIES = 5000
"""Entries of one session that a dream reads."""
_PAGE = 500
_DROPPED = frozenset({"thinking", "redacted_thinking", "compaction"})


class Transcript(Struct, frozen=True):
    """A conversation that came with a request."""

    id: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class SessionGone(NotFound):
    """The text of a session is no longer stored."""


class Sessions:
    """Finds the entries of sessions."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def check(self, actor: Actor, names: Sequence[str]) -> None:
        """Raise NotFound for the first session without entries."""
        for at, name in enumerate(names):
            if not self._words(actor, name, most=1):
                raise NotFound(f"inputs.session_ids[{at}]: there are no words of this session.")

    def words(self, actor: Actor, names: Sequence[str]) -> list[Entry]:
        """The entries of all sessions, each once, in order of time. Raises SessionGone."""
        results: dict[tuple[str, str], Entry] = {}
        for name in names:
            words = self._words(actor, name, most=MOST_ENTRIES)
            if not words:
                raise SessionGone("The words of a session are gone.")
            results |= {(entry.ref, entry.id): entry for entry in words}
        return sorted(results.values(), key=lambda entry: (entry.created_at, entry.id))

    def _words(self, actor: Actor, name: str, *, most: int) -> list[Entry]:
        kind, _, rest = name.partition(":")
        if kind == "ref" and rest:
            return self._read(actor, Filter(), most, ref=rest) if valid_ref(rest) else []
        if kind == "run" and rest:
            return self._read(actor, Filter(run=rest), most)
        if kind in ("session", "window") and rest:
            bare = rest
        elif name.startswith(SESSION):
            bare = name.removeprefix(SESSION)
        else:
            return []
        for session in (bare, name):
            found = self._read(actor, Filter(session=session), most)
            if found:
                return found
        return []

    def _read(self, actor: Actor, where: Filter, most: int, *, ref: str | None = None) -> list[Entry]:
        def body(tx: ReadTx) -> list[Entry]:
            return list(islice(each(lambda cursor: tx.scan(where, limit=min(most, _PAGE), cursor=cursor)), most))

        return self._parts.store.read(Scope(actor.tenant, ref), body)

    def cleaned(self, given: Sequence[Transcript], rules: Rules) -> list[Transcript]:
        """Transcripts without secrets."""
        texts = [one.text for one in given]
        results = self._parts.redactor.many(texts, rules.known) if texts else []
        return [Transcript(one.id, clean.text) for one, clean in zip(given, results, strict=True)]


def stand_ins(ref: str, given: Sequence[Transcript], at: int) -> list[Entry]:
    """Transcripts as the engine sees entries: each line of a conversation is one."""
    return [
        stand_in(ref, SourceText(line, f"{one.id}#{number}"), at)
        for one in given
        for number, line in enumerate(one.text.split("\n"))
        if line.strip()
    ]


def messages_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation in the shape of the Messages API as lines. Thinking and compaction blocks are dropped."""
    lines: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise Invalid("reverie.transcripts: a message has role and content.", pointer="/reverie/transcripts")
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            raise Invalid("reverie.transcripts: content is a text or blocks.", pointer="/reverie/transcripts")
        for block in blocks:
            text = block.get("text") if isinstance(block, Mapping) and block.get("type") not in _DROPPED else None
            if isinstance(text, str) and text.strip():
                lines.append(text.strip())
    return "\n".join(lines)


def encode(given: Sequence[Transcript]) -> bytes:
    """Transcripts as a document keeps them."""
    return msgspec.json.encode(given)


def decode(body: bytes) -> list[Transcript]:
    """Transcripts of a document."""
    return msgspec.json.decode(body, type=list[Transcript])
