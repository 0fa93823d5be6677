"""Entries, reads, search and lifecycle over REST."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from threading import Event as Flag
from typing import Any

import orjson

from reverie.client import documents as doc
from reverie.client.connection import RemoteUseCase, entry_path, segment
from reverie.client.sse import messages
from reverie.core.actor import Actor
from reverie.core.clock import to_iso
from reverie.core.draft import When
from reverie.core.entry import Draft, Entry, EntryState, Link, Receipt
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.ids import TimeIds
from reverie.core.query import Filter, Page
from reverie.memory.hits import Context, Mode, SearchResult
from reverie.memory.search import Deep, Include

_ANY = Filter()
EVENT_STREAM = "text/event-stream"
_RESUME_SECONDS = 0.2
"""Pause before a stream that ended is opened again."""


class RemoteEntries(RemoteUseCase):
    """The write path. A put without an idempotency key gets one, so that it can be repeated after a fault."""

    _ids = TimeIds()

    def put(
        self,
        actor: Actor,
        ref: str,
        drafts: Sequence[Draft],
        *,
        idempotency_key: str | None = None,
        operation: str = "PUT",
    ) -> list[Receipt]:
        """Store drafts in one transaction: all of them, or none."""
        if not drafts:
            raise Invalid("There is nothing to store.", pointer="/entries")
        sent = [doc.draft_document(draft) for draft in drafts]
        body = sent[0] if len(sent) == 1 else {"entries": sent}
        answer = self._post_once(f"/memory/{segment(ref)}/entries", body, idempotency_key)
        results = [answer] if len(sent) == 1 else answer["receipts"]
        return [doc.to_receipt(one, own_key=idempotency_key is None) for one in results]

    async def put_soon(
        self, pool: Executor, actor: Actor, ref: str, drafts: Sequence[Draft], *, idempotency_key: str | None = None
    ) -> list[Receipt]:
        """`put` for callers in an event loop."""
        put = partial(self.put, actor, ref, drafts, idempotency_key=idempotency_key)
        return await asyncio.get_running_loop().run_in_executor(pool, put)

    def supersede(
        self,
        actor: Actor,
        ref: str,
        entry_id: str,
        draft: Draft,
        *,
        expected: int | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store an entry in place of a readable one."""
        path = f"/memory/{segment(ref)}/entries/{segment(entry_id)}/supersede"
        answer = self._post_once(path, doc.draft_document(draft), idempotency_key, _match(expected))
        return doc.to_receipt(answer, own_key=idempotency_key is None)

    def _post_once(self, path: str, body: Any, key: str | None, headers: Mapping[str, str] | None = None) -> Any:
        if key is not None and not (key and key.isascii() and key.isprintable()):
            raise Invalid("Over HTTP an idempotency key is printable ASCII.", pointer="/idempotency_key")
        key = self._ids.new() if key is None else key
        return self._http.post(path, body, again=True, headers={**(headers or {}), "Idempotency-Key": key})


class RemoteReader(RemoteUseCase):
    """The read path."""

    def get(self, actor: Actor, ref: str, entry_id: str, *, as_of: int | None = None, cold: bool = False) -> Entry:
        """One entry. Raises NotFound."""
        return doc.to_entry(self._http.get(entry_path(ref, entry_id), {"as_of": as_of, "cold": cold or None}))

    def states(self, actor: Actor, ref: str, ids: Sequence[str]) -> Mapping[str, tuple[EntryState, int]]:
        """State and version of many entries, readable or not."""
        if not ids:
            return {}
        found = self._http.post(f"/memory/{segment(ref)}/states", {"ids": list(ids)}, again=True)
        return {one["id"]: (EntryState(one["state"]), one["version"]) for one in found["states"]}

    def page(
        self,
        actor: Actor,
        ref: str,
        where: Filter = _ANY,
        *,
        limit: int = 100,
        cursor: str | None = None,
        as_of: int | None = None,
        oldest_first: bool = False,
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Page[Entry]:
        """Entries newest first."""
        query = doc.filter_query(where) | {"limit": limit, "cursor": cursor, "as_of": as_of}
        query |= {"order": "oldest" if oldest_first else None, "zone": zone, **doc.times(where, since, until)}
        if doc.matches_nothing(where):
            return Page([])
        found = self._http.get(f"/memory/{segment(ref)}/entries", query)
        return Page([doc.to_entry(entry) for entry in found["entries"]], found["cursor"])

    def links(self, actor: Actor, ref: str, entry_id: str, *, incoming: bool = False) -> list[Link]:
        """The links from an entry, or to it."""
        found = self._http.get(f"{entry_path(ref, entry_id)}/links", {"incoming": incoming or None})
        return [doc.to_struct(link, Link) for link in found["links"]]

    def refs(self, actor: Actor, prefix: str = "") -> list[tuple[str, int]]:
        """The tenant's memories with the number of their entries."""
        found = self._http.get("/memory", {"prefix": prefix or None})
        return [(one["ref"], one["entries"]) for one in found["refs"]]

    def ids(self, actor: Actor, ref: str, prefix: str, *, limit: int = 10) -> list[str]:
        """Ids of a memory that begin with `prefix`."""
        found = self._http.get(f"/memory/{segment(ref)}/ids", {"prefix": prefix, "limit": limit})
        return list(found["ids"])

    def snapshot(self, actor: Actor) -> int:
        """The log position now."""
        return int(self.stats(actor)["events"])

    def events(
        self, actor: Actor, *, after: int = 0, limit: int = 1000, types: tuple[str, ...] | None = None
    ) -> list[Event]:
        """Events after a position."""
        if types == ():
            return []
        found = self._http.get("/events", {"after": after, "limit": limit, "type": types})
        return [doc.to_event(event) for event in found["events"]]

    def follow(self, actor: Actor, *, after: int, types: tuple[str, ...] | None, over: Flag) -> Iterator[Event]:
        """Yield events as they happen. A broken stream is resumed where it ended."""
        import httpx2

        while not over.is_set():
            query = {"after": after, "type": types}
            headers = {"Accept": EVENT_STREAM}
            try:
                with self._http.stream("GET", "/events", query=query, headers=headers, again=True) as stream:
                    for message in messages(stream.iter_bytes()):
                        if over.is_set():
                            return
                        event = doc.to_event(orjson.loads(message.data))
                        after = event.seq
                        yield event
            except (httpx2.TransportError, httpx2.StreamError):
                pass
            except RuntimeError:  # the client was closed
                if not over.is_set():
                    raise
            over.wait(_RESUME_SECONDS)  # a proxy may end every stream at once

    def stats(self, actor: Actor) -> Mapping[str, Any]:
        """Counts and sizes."""
        found: Mapping[str, Any] = self._http.get("/stats")
        return found


class RemoteSearch(RemoteUseCase):
    """Search and context."""

    def search(
        self,
        actor: Actor,
        ref: str,
        query: str,
        *,
        where: Filter = _ANY,
        limit: int = 10,
        mode: Mode = "hybrid",
        explain: bool = False,
        include: Include = None,
        zone: str | None = None,
        deep: Deep = "auto",
        since: When | None = None,
        until: When | None = None,
    ) -> SearchResult:
        """The passages that best answer a query."""
        chosen = doc.filter_document(where) | doc.times(where, since, until)
        body = {"query": query, "limit": limit, "mode": mode, "filter": chosen, "zone": zone}
        body |= {"explain": explain, "include": include, "deep": deep}
        return doc.to_search_result(self._http.post(f"/memory/{segment(ref)}/search", body, again=True))

    def context(
        self,
        actor: Actor,
        ref: str,
        purpose: str,
        *,
        budget: int = 2000,
        where: Filter = _ANY,
        limit: int = 50,
        zone: str | None = None,
        since: When | None = None,
        until: When | None = None,
    ) -> Context:
        """Memory for a prompt."""
        chosen = doc.filter_document(where) | doc.times(where, since, until)
        body = {"purpose": purpose, "budget": budget, "limit": limit, "filter": chosen, "zone": zone}
        return doc.to_struct(self._http.post(f"/memory/{segment(ref)}/context", body, again=True), Context)


class RemoteLifecycle(RemoteUseCase):
    """Changes of state."""

    def pin(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Keep this entry out of dreams."""
        return self._change(ref, entry_id, expected, again=True, pinned=True)

    def unpin(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Let dreams take it again."""
        return self._change(ref, entry_id, expected, again=True, pinned=False)

    def hold(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Forbid erasing it."""
        return self._change(ref, entry_id, expected, again=True, held=True)

    def release(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """End a hold."""
        return self._change(ref, entry_id, expected, again=True, held=False)

    def renew(self, actor: Actor, ref: str, entry_id: str, expires_at: int, *, expected: int | None = None) -> Entry:
        """Change its expiry."""
        return self._change(ref, entry_id, expected, again=True, expires_at=to_iso(expires_at))

    def archive(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Take it out of recall and keep it."""
        return self._change(ref, entry_id, expected, archived=True)

    def retract(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Withdraw it."""
        return self._change(ref, entry_id, expected, state="retracted")

    def change_many(self, actor: Actor, ref: str, change: str, seen: Sequence[tuple[str, int]]) -> Mapping[str, int]:
        """Pin, archive, retract or restore entries at the versions seen; the answer is as in `Lifecycle`."""
        body = {"change": change, "entries": [{"id": name, "version": version} for name, version in seen]}
        headers = {"Idempotency-Key": TimeIds().new()}
        answer = self._http.post(f"/memory/{segment(ref)}/changes", body, again=True, headers=headers)
        return {"done": answer["changed"], **answer["left"]}

    def restore(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Make it readable again."""
        return doc.to_entry(self._http.post(f"{entry_path(ref, entry_id)}/restore", headers=_match(expected)))

    def delete(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Take it out of every read."""
        return doc.to_entry(self._http.send("DELETE", entry_path(ref, entry_id), headers=_match(expected)))

    def erase(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> int:
        """Destroy its text now; the bytes destroyed."""
        headers = _match(expected)
        answer = self._http.send("DELETE", entry_path(ref, entry_id), query={"erase": True}, headers=headers)
        return int(answer["erased_bytes"])

    def sweep(self, actor: Actor) -> int:
        """Destroy entries that have expired or outlived the undo window."""
        return int(self._http.post("/sweep", again=True, long=True)["destroyed"])

    def _change(self, ref: str, entry_id: str, expected: int | None, *, again: bool = False, **change: Any) -> Entry:
        path, headers = entry_path(ref, entry_id), _match(expected)
        return doc.to_entry(
            self._http.send("PATCH", path, body=change, headers=headers, again=again and expected is None)
        )


def _match(expected: int | None) -> dict[str, str]:
    return {} if expected is None else {"If-Match": f'"{expected}"'}
