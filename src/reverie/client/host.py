"""The use cases of a host over REST, with the names and signatures that the embedded host has.

`Memory` and the command line work with either. The actor that every method takes is the embedded host's business: over
HTTP the key decides who is acting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from threading import Event as Flag
from typing import Any, NoReturn

import orjson

from reverie.client import documents as doc
from reverie.client.connection import RETRY_SECONDS, Connection, segment
from reverie.client.errors import error_of
from reverie.client.sse import lines, messages
from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.core.draft import When
from reverie.core.dream import DreamPlan, DreamReport, Estimate, Selector
from reverie.core.entry import Draft, Entry, Link, Receipt
from reverie.core.errors import Forbidden, Invalid, ReverieError
from reverie.core.event import Event
from reverie.core.ids import TimeIds
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter, Page
from reverie.distil.archive import index_page
from reverie.dreams.consolidate import Consolidated
from reverie.dreams.engine import Progress
from reverie.dreams.lineage import Diff, Verified, Why
from reverie.jobs.timetable import Due, Outcome, Schedule
from reverie.memory.audit import Verdict
from reverie.memory.export import Imported, check_bundle
from reverie.memory.search import Context, Deep, Include, Mode, SearchResult
from reverie.privacy.forget import Forgotten
from reverie.privacy.rescan import ScanReport

_ANY = Filter()
_NOBODY = Actor(tenant="", id="")
"""Over HTTP no method looks at the actor it is given."""
EVENT_STREAM = "text/event-stream"


def connect(url: str, *, key: str, tenant: str | None = None, retry_seconds: float = RETRY_SECONDS) -> RemoteHost:
    """A host that runs elsewhere. Asks it who the key is. Raises HostUnreachable, Unauthenticated, Forbidden.

    `tenant`, when given, must be the key's own.
    """
    connection = Connection(url, key, retry_seconds=retry_seconds)
    try:
        me = connection.get("/me")
        if tenant is not None and me["tenant"] != tenant:
            raise Forbidden(f"The key belongs to the tenant {me['tenant']}, not to {tenant}. Use a key of that tenant.")
        actor = Actor(
            tenant=me["tenant"],
            id=me["id"],
            rights=frozenset(Right(right) for right in me["rights"]),
            authority=me["authority"],
            scopes=frozenset(me["scopes"]),
            door="rest",
        )
        return RemoteHost(connection, actor)
    except BaseException:
        connection.close()
        raise


class RemoteHost:
    """A host over HTTP: one tenant's use cases, as far as they exist over REST."""

    def __init__(self, connection: Connection, actor: Actor) -> None:
        self.connection = connection
        self.actor = actor
        self.entries = RemoteEntries(connection)
        self.reader = RemoteReader(connection)
        self.search = RemoteSearch(connection)
        self.lifecycle = RemoteLifecycle(connection)
        self.dreams = RemoteDreams(connection)
        self.lineage = RemoteLineage(connection)
        self.consolidator = RemoteConsolidator(connection)
        self.archives = RemoteArchives(connection)
        self.schedules = RemoteSchedules(connection)
        self.forget = RemoteForget(connection)
        self.rules = RemoteRules(connection)
        self.audit = RemoteAudit(connection)
        self.rescan = RemoteRescan(connection)
        self.bundles = RemoteBundles(connection)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise Invalid(
            "This works on a data folder or a database only, not on a running host. Run it on the host's machine, "
            "without --url and REVERIE_URL.",
            code="not_remote",
            details={"part": name},
        )

    def tenants(self) -> list[str]:
        """The tenant of the key."""
        return [self.actor.tenant]

    def close(self) -> None:
        """Close the connections."""
        self.connection.close()

    def __repr__(self) -> str:
        return f"<RemoteHost {self.connection.url}, tenant {self.actor.tenant}>"


class _Part:
    def __init__(self, connection: Connection) -> None:
        self._http = connection


class RemoteEntries(_Part):
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
        del actor, operation
        if not drafts:
            raise Invalid("There is nothing to store.", pointer="/entries")
        sent = [doc.draft_document(draft) for draft in drafts]
        body = sent[0] if len(sent) == 1 else {"entries": sent}
        answer = self._keyed(f"/memory/{segment(ref)}/entries", body, idempotency_key)
        found = [answer] if len(sent) == 1 else answer["receipts"]
        return [doc.to_receipt(one, own_key=idempotency_key is None) for one in found]

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
        del actor
        path = f"/memory/{segment(ref)}/entries/{segment(entry_id)}/supersede"
        answer = self._keyed(path, doc.draft_document(draft), idempotency_key, _match(expected))
        return doc.to_receipt(answer, own_key=idempotency_key is None)

    def _keyed(self, path: str, body: Any, key: str | None, headers: Mapping[str, str] | None = None) -> Any:
        if key is not None and not (key and key.isascii() and key.isprintable()):
            raise Invalid("Over HTTP an idempotency key is printable ASCII.", pointer="/idempotency_key")
        key = self._ids.new() if key is None else key
        return self._http.post(path, body, again=True, headers={**(headers or {}), "Idempotency-Key": key})


class RemoteReader(_Part):
    """The read path."""

    def get(self, actor: Actor, ref: str, entry_id: str, *, as_of: int | None = None, cold: bool = False) -> Entry:
        """One entry. Raises NotFound."""
        del actor
        return doc.to_entry(self._http.get(_entry(ref, entry_id), {"as_of": as_of, "cold": cold or None}))

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
        del actor
        query = doc.filter_query(where) | {"limit": limit, "cursor": cursor, "as_of": as_of}
        query |= {"order": "oldest" if oldest_first else None, "zone": zone, **doc.times(where, since, until)}
        if doc.matches_nothing(where):
            return Page([])
        found = self._http.get(f"/memory/{segment(ref)}/entries", query)
        return Page([doc.to_entry(entry) for entry in found["entries"]], found["cursor"])

    def links(self, actor: Actor, ref: str, entry_id: str, *, incoming: bool = False) -> list[Link]:
        """The arrows from an entry, or to it."""
        del actor
        found = self._http.get(f"{_entry(ref, entry_id)}/links", {"incoming": incoming or None})
        return [doc.to_struct(link, Link) for link in found["links"]]

    def refs(self, actor: Actor, prefix: str = "") -> list[tuple[str, int]]:
        """The tenant's memories with the number of their entries."""
        del actor
        found = self._http.get("/memory", {"prefix": prefix or None})
        return [(one["ref"], one["entries"]) for one in found["refs"]]

    def ids(self, actor: Actor, ref: str, prefix: str, *, limit: int = 10) -> list[str]:
        """Ids of a memory that begin with `prefix`."""
        del actor
        found = self._http.get(f"/memory/{segment(ref)}/ids", {"prefix": prefix, "limit": limit})
        return list(found["ids"])

    def snapshot(self, actor: Actor) -> int:
        """The log position now."""
        return int(self.stats(actor)["events"])

    def events(
        self, actor: Actor, *, after: int = 0, limit: int = 1000, types: tuple[str, ...] | None = None
    ) -> list[Event]:
        """Events after a position."""
        del actor
        if types == ():
            return []
        found = self._http.get("/events", {"after": after, "limit": limit, "type": types})
        return [doc.to_event(event) for event in found["events"]]

    def follow(self, actor: Actor, *, after: int, types: tuple[str, ...] | None, over: Flag) -> Iterator[Event]:
        """Events as they happen. A stream that breaks is taken up again where it ended."""
        import httpx2

        del actor
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
                continue
            except RuntimeError:  # the client was closed
                if not over.is_set():
                    raise

    def stats(self, actor: Actor) -> Mapping[str, Any]:
        """Counts and sizes."""
        del actor
        found: Mapping[str, Any] = self._http.get("/stats")
        return found


class RemoteSearch(_Part):
    """search and context."""

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
        del actor
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
        del actor
        chosen = doc.filter_document(where) | doc.times(where, since, until)
        body = {"purpose": purpose, "budget": budget, "limit": limit, "filter": chosen, "zone": zone}
        return doc.to_struct(self._http.post(f"/memory/{segment(ref)}/context", body, again=True), Context)


class RemoteLifecycle(_Part):
    """Changes of state."""

    def pin(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Never dream this away."""
        del actor
        return self._change(ref, entry_id, expected, again=True, pinned=True)

    def unpin(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Treat it like the others again."""
        del actor
        return self._change(ref, entry_id, expected, again=True, pinned=False)

    def hold(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Forbid erasing it."""
        del actor
        return self._change(ref, entry_id, expected, again=True, held=True)

    def release(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """End a hold."""
        del actor
        return self._change(ref, entry_id, expected, again=True, held=False)

    def renew(self, actor: Actor, ref: str, entry_id: str, expires_at: int, *, expected: int | None = None) -> Entry:
        """Give it another expiry."""
        del actor
        return self._change(ref, entry_id, expected, again=True, expires_at=to_iso(expires_at))

    def archive(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Take it out of recall and keep it."""
        del actor
        return self._change(ref, entry_id, expected, archived=True)

    def retract(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Withdraw it."""
        del actor
        return self._change(ref, entry_id, expected, state="retracted")

    def restore(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Make it readable again."""
        del actor
        return doc.to_entry(self._http.post(f"{_entry(ref, entry_id)}/restore", headers=_match(expected)))

    def delete(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> Entry:
        """Take it out of every read."""
        del actor
        return doc.to_entry(self._http.send("DELETE", _entry(ref, entry_id), headers=_match(expected)))

    def erase(self, actor: Actor, ref: str, entry_id: str, *, expected: int | None = None) -> int:
        """Destroy its text now; the bytes destroyed."""
        del actor
        headers = _match(expected)
        answer = self._http.send("DELETE", _entry(ref, entry_id), query={"erase": True}, headers=headers)
        return int(answer["erased_bytes"])

    def sweep(self, actor: Actor) -> int:
        """Destroy what has expired or outlived the undo window."""
        del actor
        return int(self._http.post("/sweep", again=True, long=True)["destroyed"])

    def _change(self, ref: str, entry_id: str, expected: int | None, *, again: bool = False, **change: Any) -> Entry:
        path, headers = _entry(ref, entry_id), _match(expected)
        return doc.to_entry(
            self._http.send("PATCH", path, body=change, headers=headers, again=again and expected is None)
        )


class RemoteDreams(_Part):
    """plan and run."""

    def plan(self, actor: Actor, plan: DreamPlan) -> Estimate:
        """What a dream would do."""
        del actor
        answer = self._http.post(_dreams(plan.ref), {**_plan(plan), "plan": True}, again=True, long=True)
        return doc.to_struct(answer, Estimate)

    def run(self, actor: Actor, plan: DreamPlan, *, progress: Progress | None = None) -> DreamReport | None:
        """Dream, with its steps as they happen."""
        import httpx2

        del actor
        headers = {"Accept": EVENT_STREAM}
        with self._http.stream("POST", _dreams(plan.ref), body=_plan(plan), headers=headers) as stream:
            try:
                for message in messages(stream.iter_bytes()):
                    if message.name == "step" and progress is not None:
                        step = orjson.loads(message.data)
                        progress(step["step"], step["done"], step["total"])
                    elif message.name == "report":
                        return doc.to_report(orjson.loads(message.data))
                    elif message.name == "nothing":
                        return None
                    elif message.name == "error":
                        raise error_of(500, message.data) or ReverieError("The dream failed.")
            except (httpx2.TransportError, httpx2.StreamError) as fault:
                raise self._http.lost(fault, _MAY_GO_ON) from None
        raise self._http.lost(EOFError(), _MAY_GO_ON)


class RemoteLineage(_Part):
    """Everything that looks back from a dream."""

    def reports(self, actor: Actor, *, ref: str | None = None, limit: int = 100) -> list[DreamReport]:
        """Reports, newest first."""
        del actor
        found = self._http.get("/dreams", {"ref": ref, "limit": limit})
        return [doc.to_report(report) for report in found["dreams"]]

    def ids(self, actor: Actor, prefix: str, *, ref: str | None = None, limit: int = 10) -> list[str]:
        """Ids of dreams that begin with `prefix`, among the newest thousand."""
        found = sorted(report.id for report in self.reports(actor, ref=ref, limit=1000))
        return [one for one in found if one.startswith(prefix)][:limit]

    def report(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> DreamReport:
        """The stored report. Raises NotFound."""
        del actor
        return doc.to_report(self._http.get(_dream(dream_id, ref)))

    def undo(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> DreamReport:
        """Put the sources back."""
        del actor
        return doc.to_report(self._http.post(f"{_dream(dream_id, ref)}/undo", long=True))

    def diff(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> Diff:
        """What became of every entry."""
        del actor
        return doc.to_struct(self._http.get(f"{_dream(dream_id, ref)}/diff"), Diff)

    def verify(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> Verified:
        """Dream again and compare bytes."""
        del actor
        return doc.to_struct(self._http.get(f"{_dream(dream_id, ref)}/verify", long=True), Verified)

    def why(self, actor: Actor, ref: str, entry_id: str) -> Why:
        """The tree down to the original words."""
        del actor
        return doc.to_why(self._http.get(f"{_entry(ref, entry_id)}/why"))

    def derived(self, actor: Actor, ref: str, entry_id: str) -> list[str]:
        """Ids of everything made from an entry."""
        del actor
        return list(self._http.get(f"{_entry(ref, entry_id)}/derived")["derived"])


class RemoteConsolidator(_Part):
    """Merging duplicates."""

    def run(self, actor: Actor, ref: str) -> Consolidated:
        """One pass over one memory."""
        del actor
        return doc.to_struct(
            self._http.post(f"/memory/{segment(ref)}/consolidate", again=True, long=True), Consolidated
        )


class RemoteArchives(_Part):
    """Archives and the index."""

    def get(self, actor: Actor, checksum: str) -> bytes:
        """The bytes of an archive."""
        del actor
        return self._http.raw("GET", f"/archives/{segment(checksum)}", again=True)

    def index(self, actor: Actor, *, ref: str | None = None) -> dict[str, Any]:
        """MEMORY-INDEX.json."""
        del actor
        found: dict[str, Any] = self._http.get("/index", {"ref": ref})
        return found

    def index_page(self, actor: Actor, *, ref: str | None = None) -> str:
        """The same for people."""
        return index_page(self.index(actor, ref=ref))


class RemoteSchedules(_Part):
    """Schedules."""

    def all(self, actor: Actor) -> list[Due]:
        """Every schedule."""
        del actor
        return [doc.to_due(due) for due in self._http.get("/schedules")["schedules"]]

    def save(self, actor: Actor, fields: Mapping[str, Any], *, existing: bool = False) -> Schedule:
        """Make a schedule, or change one."""
        del actor
        sent = dict(fields)
        for name in ("older_than", "jitter"):
            if (ms := sent.pop(f"{name}_ms", None)) is not None:
                sent[name] = f"{ms}ms"
        if existing:
            answer = self._http.send("PATCH", f"/schedules/{segment(sent.pop('id'))}", body=sent, again=True)
        else:
            answer = self._http.post("/schedules", sent, again="id" in sent)
        return doc.to_schedule(answer)

    def due(self, schedule: Schedule) -> Due:
        """A schedule as people see it."""
        found = (due for due in self.all(_NOBODY) if due.schedule.id == schedule.id)
        return next(found, Due(schedule, None, None))

    def drop(self, actor: Actor, schedule_id: str) -> None:
        """Remove a schedule."""
        del actor
        self._http.send("DELETE", f"/schedules/{segment(schedule_id)}")

    def run_now(self, actor: Actor, schedule_id: str, *, progress: Progress | None = None) -> Outcome:
        """Run a schedule now. Its steps are not shown over HTTP."""
        del actor, progress
        return doc.to_outcome(self._http.post(f"/schedules/{segment(schedule_id)}/run", long=True))


class RemoteForget(_Part):
    """Forgetting."""

    def forget(
        self, actor: Actor, subject: str, *, ref: str | None = None, mentions: bool = False, preview: bool = False
    ) -> Forgotten:
        """Destroy everything about a subject."""
        del actor
        body = {"subject": subject, "ref": ref, "mentions": mentions, "preview": preview}
        return doc.to_struct(self._http.post("/memory/forget", body, again=preview, long=True), Forgotten)


class RemoteRules(_Part):
    """Policy and registered secrets."""

    def policy(self, actor: Actor) -> TenantPolicy:
        """The tenant's policy."""
        del actor
        return doc.to_policy(self._http.get("/policy"))

    def set_policy(self, actor: Actor, changes: Mapping[str, Any]) -> TenantPolicy:
        """Change it."""
        del actor
        return doc.to_policy(self._http.send("PATCH", "/policy", body=dict(changes), again=True))

    def secret_ids(self, actor: Actor) -> list[str]:
        """The ids of registered secrets."""
        del actor
        return list(self._http.get("/secrets")["secrets"])

    def register(self, actor: Actor, secret_id: str, value: str) -> int:
        """Register a secret; the log position."""
        del actor
        return int(self._http.post("/secrets", {"id": secret_id, "value": value}, again=True)["seq"])

    def remove(self, actor: Actor, secret_id: str) -> int:
        """Remove a secret; the log position."""
        del actor
        return int(self._http.send("DELETE", f"/secrets/{segment(secret_id)}")["seq"])


class RemoteAudit(_Part):
    """The proof of the log."""

    def verify(self, actor: Actor, *, progress: Any = None) -> Verdict:
        """Prove the log."""
        del actor, progress
        return doc.to_struct(self._http.get("/audit/verify", long=True), Verdict)

    def export(self, actor: Actor, *, after: int = 0) -> Iterator[Event]:
        """Every event after a position, read page by page."""
        reader = RemoteReader(self._http)
        while page := reader.events(actor, after=after):
            yield from page
            after = page[-1].seq


class RemoteRescan(_Part):
    """Looking again for secrets."""

    def scan(self, actor: Actor, *, dry_run: bool = False, progress: Any = None) -> ScanReport:
        """Re-scan what is stored."""
        del actor, progress
        return doc.to_struct(self._http.post("/scan", {"dry_run": dry_run}, again=True, long=True), ScanReport)


class RemoteBundles(_Part):
    """Bundles."""

    def export(self, actor: Actor, *, ref: str | None = None, events: bool = True) -> Iterator[bytes]:
        """The lines of a bundle."""
        import httpx2

        del actor
        with self._http.stream("GET", "/export", query={"ref": ref, "events": events}, again=True) as stream:
            try:
                for line in lines(stream.iter_bytes()):
                    yield line + b"\n"
            except (httpx2.TransportError, httpx2.StreamError) as fault:
                raise self._http.lost(fault, "The bundle is cut short: export it again.") from None

    def check(self, lines: Iterable[bytes]) -> Mapping[str, Any]:
        """Read a bundle to the end. Raises Invalid when it is damaged or cut short."""
        return check_bundle(lines)

    def load(
        self,
        actor: Actor,
        lines: Iterable[bytes],
        *,
        ref: str | None = None,
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Imported:
        """Store a checked bundle, in one request. Importing twice is importing once, so it may be repeated."""
        del actor, total, progress
        headers = {"Content-Type": "application/x-ndjson"}
        query = {"ref": ref}
        answer = self._http.send(
            "POST", "/import", query=query, body=b"".join(lines), headers=headers, again=True, long=True
        )
        return doc.to_struct(answer, Imported)


_MAY_GO_ON = "The dream goes on without a listener: its report appears in the list of dreams when it is done."


def _entry(ref: str, entry_id: str) -> str:
    return f"/memory/{segment(ref)}/entries/{segment(entry_id)}"


def _dreams(ref: str) -> str:
    return f"/memory/{segment(ref)}/dreams"


def _dream(dream_id: str, ref: str | None) -> str:
    return f"/dreams/{segment(dream_id)}" if ref is None else f"{_dreams(ref)}/{segment(dream_id)}"


def _match(expected: int | None) -> dict[str, str]:
    return {} if expected is None else {"If-Match": f'"{expected}"'}


def _plan(plan: DreamPlan) -> dict[str, Any]:
    chosen = plan.selector or Selector()
    return {
        "budget": plan.budget,
        "fit": plan.fit,
        "distiller": plan.distiller,
        "after": plan.after.value,
        "older_than": f"{chosen.older_than_ms}ms" if chosen.older_than_ms else None,
        "kinds": None if chosen.kinds is None else list(chosen.kinds),
        "tags": list(chosen.tags),
        "session": chosen.session,
    }
