"""One named memory: its entries, search, context, lifecycle and dreams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from reverie.core.draft import When, to_draft, to_ms
from reverie.core.dream import DreamReport, Estimate
from reverie.core.entry import Entry, Link, Receipt, Source
from reverie.core.errors import Invalid
from reverie.core.query import Filter, Page, each
from reverie.dreams.consolidate import Consolidated
from reverie.dreams.engine import Progress
from reverie.dreams.lineage import Why
from reverie.library.dreams import Age, dream_plan
from reverie.memory.hits import Context, SearchResult

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from reverie.library.memory import Memory


_PAGE = 500


class Ref:
    """One named memory.

    >>> notes
    <Ref notes of <Memory of tenant default at ...>>
    """

    def __init__(self, memory: Memory, name: str) -> None:
        self.memory = memory
        self.name = name
        self._host = memory.host
        self._actor = memory.actor

    def __repr__(self) -> str:
        return f"<Ref {self.name} of {self.memory!r}>"

    def put(
        self,
        content: str,
        *,
        kind: str = "note",
        tags: Iterable[str] = (),
        subject: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002
        source: Source | Mapping[str, Any] | None = None,
        created_at: When | None = None,
        expires_at: When | None = None,
        pinned: bool = False,
        replaces: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store one entry. Returns after it is durable.

        `replaces`, one of its tags: readable entries with this tag are deleted in the same transaction.

        >>> receipt = notes.put("We meet on Mondays.", tags=["meeting"], subject="team")
        >>> receipt.ref, receipt.replayed
        ('notes', False)
        """
        draft = to_draft(
            {
                "content": content,
                "kind": kind,
                "tags": tags,
                "subject": subject,
                "attributes": attributes,
                "id": id,
                "source": source,
                "created_at": created_at,
                "expires_at": expires_at,
                "pinned": pinned,
                "replaces": replaces,
            }
        )
        return self._host.entries.put(self._actor, self.name, [draft], idempotency_key=idempotency_key)[0]

    async def _put(self, pool: Executor, content: str, *, idempotency_key: str | None, **fields: Any) -> Receipt:
        """`put` for the asyncio facade: its callers share a thread and a commit instead of taking a thread each."""
        draft = to_draft({"content": content, **fields})
        entries, actor = self._host.entries, self._actor
        return (await entries.put_soon(pool, actor, self.name, [draft], idempotency_key=idempotency_key))[0]

    def put_many(
        self, entries: Iterable[str | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[Receipt]:
        """Store many entries in one transaction: all of them, or none.

        >>> len(notes.put_many(["One.", {"content": "Two.", "tags": ["even"]}]))
        2
        """
        drafts = [to_draft({"content": entry} if isinstance(entry, str) else entry) for entry in entries]
        return self._host.entries.put(self._actor, self.name, drafts, idempotency_key=idempotency_key)

    def supersede(
        self,
        entry_id: str,
        content: str,
        *,
        kind: str = "note",
        tags: Iterable[str] = (),
        subject: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        expected: int | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store an entry in place of a readable one, in one transaction: the new one links to the old one.

        The old entry leaves every read and rests in cold storage. `expected` is the version you saw. Raises NotFound,
        and Conflict when the entry has changed.

        >>> new = notes.supersede(first.id, "Ana prefers to be called.", subject="ana")
        >>> notes.get(new.id).content
        'Ana prefers to be called.'
        """
        draft = to_draft({"content": content, "kind": kind, "tags": tags, "subject": subject, "attributes": attributes})
        return self._host.entries.supersede(
            self._actor, self.name, entry_id, draft, expected=expected, idempotency_key=idempotency_key
        )

    def get(self, entry_id: str, *, as_of: int | None = None, cold: bool = False) -> Entry:
        """One entry. Raises NotFound.

        >>> notes.get(first.id).tags
        ('preference',)
        """
        return self._host.reader.get(self._actor, self.name, entry_id, as_of=as_of, cold=cold)

    def list(
        self,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        *,
        limit: int = 100,
        cursor: str | None = None,
        as_of: int | None = None,
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Page[Entry]:
        """Entries newest first; follow `cursor` to the end.

        `since` and `until` are times or words such as "yesterday", "3d" and "2026-11-01", read in the time zone `zone`.

        >>> [entry.content for entry in notes.list(limit=1).items]
        ['The office is in Nantes.']
        """
        return self._host.reader.page(
            self._actor,
            self.name,
            where,
            limit=limit,
            cursor=cursor,
            as_of=as_of,
            since=since,
            until=until,
            zone=zone,
        )

    def entries(
        self,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        *,
        as_of: int | None = None,
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Iterator[Entry]:
        """Every entry, newest first, read page by page.

        >>> len(list(notes.entries()))
        3
        """
        return each(
            lambda cursor: self.list(
                where, limit=_PAGE, cursor=cursor, as_of=as_of, since=since, until=until, zone=zone
            )
        )

    def search(
        self,
        query: str,
        *,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        limit: int = 10,
        mode: Literal["hybrid", "words", "meaning"] = "hybrid",
        explain: bool = False,
        include: Literal["superseded"] | None = None,
        zone: str | None = None,
        deep: Literal["auto", "never", "always"] = "auto",
        since: When | None = None,
        until: When | None = None,
    ) -> SearchResult:
        """The passages that best answer a query, best first; `weak` marks those that hardly do.

        `since` and `until` are times or words ("yesterday", "3d", "2026-11-01"). They and dates in the query are read
        in the time zone `zone`, such as "Europe/Lisbon"; by default that of the tenant's policy. With
        `include="superseded"`, superseded entries follow their successors. When nothing answers well, the sources of
        dreams are searched too: such hits are `cold` and name the `dream` that holds them. With `deep="always"` or
        `"never"` they are searched always, or never.

        >>> found = notes.search("how to reach Ana", limit=1)
        >>> found[0].text
        'Ana prefers e-mail to phone calls.'
        """
        return self._host.search.search(
            self._actor,
            self.name,
            query,
            where=where,
            limit=limit,
            mode=mode,
            explain=explain,
            include=include,
            zone=zone,
            deep=deep,
            since=since,
            until=until,
        )

    def context(
        self,
        purpose: str,
        *,
        budget: int = 2000,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Context:
        """The best entries for a purpose within a token budget, ready to paste into a prompt.

        >>> packed = notes.context("write to Ana", budget=300)
        >>> packed.tokens <= 300, "prefers e-mail" in packed.text
        (True, True)
        """
        return self._host.search.context(
            self._actor, self.name, purpose, budget=budget, where=where, since=since, until=until, zone=zone
        )

    def pin(self, entry_id: str) -> Entry:
        """Keep this entry out of dreams.

        >>> notes.pin(first.id).pinned
        True
        """
        return self._host.lifecycle.pin(self._actor, self.name, entry_id)

    def unpin(self, entry_id: str) -> Entry:
        """Let dreams take it again.

        >>> notes.unpin(first.id).pinned
        False
        """
        return self._host.lifecycle.unpin(self._actor, self.name, entry_id)

    def archive(self, entry_id: str) -> Entry:
        """Take it out of recall and keep it.

        >>> notes.archive(first.id).archived
        True
        """
        return self._host.lifecycle.archive(self._actor, self.name, entry_id)

    def retract(self, entry_id: str) -> Entry:
        """Withdraw it.

        >>> notes.retract(first.id).state.value
        'retracted'
        """
        return self._host.lifecycle.retract(self._actor, self.name, entry_id)

    def restore(self, entry_id: str) -> Entry:
        """Make an archived, retracted or deleted entry readable again.

        >>> _ = notes.delete(first.id)
        >>> notes.restore(first.id).state.value
        'active'
        """
        return self._host.lifecycle.restore(self._actor, self.name, entry_id)

    def delete(self, entry_id: str) -> Entry:
        """Take it out of every read; its text is destroyed after the undo window.

        >>> notes.delete(first.id).state.value
        'deleted'
        """
        return self._host.lifecycle.delete(self._actor, self.name, entry_id)

    def renew(self, entry_id: str, expires_at: When) -> Entry:
        """Change its expiry.

        >>> notes.renew(first.id, "2099-01-01T00:00:00Z").version
        2
        """
        when = to_ms(expires_at, "/expires_at")
        if when is None:
            raise Invalid("expires_at is a time.", pointer="/expires_at")
        return self._host.lifecycle.renew(self._actor, self.name, entry_id, when)

    def erase(self, entry_id: str) -> int:
        """Destroy its text now. Cannot be undone.

        >>> notes.erase(first.id)
        34
        """
        return self._host.lifecycle.erase(self._actor, self.name, entry_id)

    def links(self, entry_id: str, *, incoming: bool = False) -> Sequence[Link]:
        """The links from an entry, or to it.

        >>> new = notes.supersede(first.id, "Ana prefers to be called.")
        >>> [link.type for link in notes.links(new.id)]
        ['supersedes']
        """
        return self._host.reader.links(self._actor, self.name, entry_id, incoming=incoming)

    def plan_dream(
        self,
        budget: int | None = None,
        *,
        fit: bool = False,
        distiller: str | None = None,
        after: Literal["cold", "archive", "purge"] = "cold",
        older_than: Age | None = None,
        kinds: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        session: str | None = None,
    ) -> Estimate:
        """Estimate the effect of `dream` with the same arguments now. Changes nothing.

        >>> notes.plan_dream().sources
        3
        """
        distiller = self.memory._distiller if distiller is None else distiller
        plan = dream_plan(self.name, budget, fit, distiller, after, older_than, kinds, tags, session)
        return self._host.dreams.plan(self._actor, plan)

    def dream(
        self,
        budget: int | None = None,
        *,
        fit: bool = False,
        distiller: str | None = None,
        after: Literal["cold", "archive", "purge"] = "cold",
        older_than: Age | None = None,
        kinds: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        session: str | None = None,
        instructions: str | None = None,
        progress: Progress | None = None,
    ) -> DreamReport | None:
        """Distil many entries into one, within `budget` tokens of input and output. None: nothing to do.

        All or nothing. Pinned and held entries stay as they are. `fit` takes the oldest part that the budget can hold;
        call it again for the others. A dream without a budget does so where not everything fits. `instructions`
        say what to keep, to drop and how to word it: a model reads them, and `report.instructions_applied` says
        whether one did. `progress(step, done, total)` is called as it proceeds.

        >>> days = memory.ref("weather")
        >>> _ = days.put_many([f"Day {n}: the ferry left at {n + 5} o'clock, and it rained." for n in range(12)])
        >>> report = days.dream(budget=4000)
        >>> report.output_tokens < report.tokens_before
        True
        """
        distiller = self.memory._distiller if distiller is None else distiller
        plan = dream_plan(self.name, budget, fit, distiller, after, older_than, kinds, tags, session, instructions)
        return self._host.dreams.run(self._actor, plan, progress=progress)

    def why(self, entry_id: str) -> Why:
        """The tree from an entry down to the original words it was made from.

        >>> len(memory.ref("days").why(dream.output_id).sources)
        12
        """
        return self._host.lineage.why(self._actor, self.name, entry_id)

    def derived(self, entry_id: str) -> Sequence[str]:
        """Ids of everything made from this entry, directly or through others.

        >>> list(notes.derived(first.id))
        []
        """
        return self._host.lineage.derived(self._actor, self.name, entry_id)

    def consolidate(self) -> Consolidated:
        """Merge duplicates and supersede outdated statements. A second pass changes nothing.

        >>> notes.consolidate().duplicates
        0
        """
        return self._host.consolidator.run(self._actor, self.name)
