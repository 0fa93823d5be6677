"""Claude Agent SDK: session transcripts kept in Reverie, resumed on any machine.

    from reverie.integrations.claude_agent import ReverieSessionStore

    options = ClaudeAgentOptions(session_store=ReverieSessionStore(reverie.open("./memory")))

A session is a memory, `claude/PROJECT/SESSION`; the transcript of a subagent is a memory below it. Lines are redacted
like everything that is stored: a secret that a tool printed is not in the transcript that is resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from reverie.core.errors import NotFound
from reverie.core.extras import require_release
from reverie.core.names import digest, segment
from reverie.core.query import Filter
from reverie.integrations.transcript import documents, drafts, oldest_first

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.library import Memory, Ref

Key = Mapping[str, str]
_KIND = "transcript"


class ReverieSessionStore:
    """The SDK's `SessionStore`: append, load, list, summaries, delete. Calls run in threads, under asyncio and trio."""

    def __init__(self, memory: Memory, *, root: str = "claude") -> None:
        require_release("claude-agent-sdk", "0.2.100", extra="claude-agent", purpose="The session store")
        self.memory = memory
        self._root = root

    async def append(self, key: Key, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add lines in order; a line whose uuid is stored already is left out."""
        await anyio.to_thread.run_sync(self._append, key, entries)

    async def load(self, key: Key) -> list[dict[str, Any]] | None:
        """Every line of a transcript; None when it was never written."""
        return await anyio.to_thread.run_sync(self._load, key)

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """The sessions of a project, with the time each was last written to."""
        return await anyio.to_thread.run_sync(self._list_sessions, project_key)

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """The summaries of a project's sessions, as the SDK made them."""
        return await anyio.to_thread.run_sync(self._list_summaries, project_key)

    async def list_subkeys(self, key: Key) -> list[str]:
        """The transcripts of subagents of a session."""
        return await anyio.to_thread.run_sync(self._list_subkeys, key)

    async def delete(self, key: Key) -> None:
        """Delete a transcript and, without a subpath, those of its subagents. `restore` can undo it for some days."""
        await anyio.to_thread.run_sync(self._delete, key)

    def _append(self, key: Key, entries: Sequence[Mapping[str, Any]]) -> None:
        if not entries:
            return
        ref = self._ref(key)
        marks = {str(line["uuid"]): f"~line:{digest(str(line['uuid']))}" for line in entries if line.get("uuid")}
        known: set[str] = set()
        if marks:
            known = {tag for entry in ref.entries(Filter(any_tags=tuple(marks.values()))) for tag in entry.tags}
        made: list[dict[str, Any]] = []
        for line in entries:
            mark = marks.get(str(line.get("uuid")))
            if mark in known:
                continue
            known |= {mark} if mark else set()
            about = {"session": key["session_id"], "subpath": key.get("subpath")}
            made += drafts(
                dict(line),
                _text_of(line),
                kind=_KIND,
                tags=[mark] if mark else [],
                attributes=about,
                source={"role": str(line.get("type") or "")[:64] or None, "session": key["session_id"][:256]},
            )
        if made:
            ref.put_many(made)
            if not key.get("subpath"):
                self._fold(key, entries)

    def _fold(self, key: Key, entries: Sequence[Mapping[str, Any]]) -> None:
        """Keep the SDK's own summary of the session up to date."""
        from claude_agent_sdk import fold_session_summary

        ref, mark = self._summaries(key["project_key"]), f"~session:{digest(key['session_id'])}"
        before = ref.list(Filter(tags=(mark,)), limit=1).items
        previous = _summary(before[0]) if before else None
        folded: Any = fold_session_summary(previous, dict(key), [dict(line) for line in entries])  # type: ignore[arg-type]
        document = {"session_id": key["session_id"], "data": folded["data"]}
        ref.put_many(drafts(document, f"Session {key['session_id']}", kind="summary", tags=[mark], replaces=mark))

    def _load(self, key: Key) -> list[dict[str, Any]] | None:
        found = oldest_first(self._ref(key), Filter(kinds=(_KIND,)))
        return [document for _, document in documents(found)] if found else None

    def _list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        prefix = f"{self._root}/{segment(project_key)}/"
        sessions = []
        for name, _ in self.memory.refs(prefix):
            newest = self._newest(name) if "/" not in name.removeprefix(prefix) else None
            if newest is not None:
                sessions.append({"session_id": newest.attributes["session"], "mtime": newest.created_at})
        return sessions

    def _newest(self, name: str) -> Entry | None:
        found = self.memory.ref(name).list(Filter(kinds=(_KIND,)), limit=100).items
        return next((entry for entry in found if "session" in entry.attributes), None)

    def _list_summaries(self, project_key: str) -> list[dict[str, Any]]:
        return [_summary(entry) for entry in self._summaries(project_key).entries()]

    def _list_subkeys(self, key: Key) -> list[str]:
        found = (self._newest(name) for name in self._below(key))
        return [entry.attributes["subpath"] for entry in found if entry is not None]

    def _below(self, key: Key) -> list[str]:
        prefix = self._name({"project_key": key["project_key"], "session_id": key["session_id"]}) + "/"
        return [name for name, _ in self.memory.refs(prefix)]

    def _delete(self, key: Key) -> None:
        names = [self._name(key)]
        if not key.get("subpath"):
            names += self._below(key)
            mark = f"~session:{digest(key['session_id'])}"
            _remove(self._summaries(key["project_key"]), Filter(tags=(mark,)))
        for name in names:
            _remove(self.memory.ref(name), Filter(kinds=(_KIND,)))

    def _name(self, key: Key) -> str:
        parts = [key["project_key"], key["session_id"], *([key["subpath"]] if key.get("subpath") else [])]
        return "/".join([self._root, *map(segment, parts)])

    def _ref(self, key: Key) -> Ref:
        return self.memory.ref(self._name(key))

    def _summaries(self, project_key: str) -> Ref:
        return self.memory.ref(f"{self._root}-summaries/{segment(project_key)}")


def _summary(entry: Entry) -> dict[str, Any]:
    return {**entry.attributes["document"], "mtime": entry.created_at}


def _remove(ref: Ref, where: Filter) -> None:
    for entry in list(ref.entries(where)):
        try:
            ref.delete(entry.id)
        except NotFound:
            continue


def _text_of(line: Mapping[str, Any]) -> str:
    """Return the words of a transcript line: its message, or its type."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, Mapping) else line.get("content") or line.get("summary")
    return "\n".join(_texts(content)) or str(line.get("type") or "line")


def _texts(content: Any) -> Iterable[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for part in content:
            if isinstance(part, Mapping):
                yield from _texts(part.get("text") or part.get("content") or "")
