"""The entry, one record of a memory, and the types around it.

A Draft has been parsed; an Entry has been redacted, stamped and stored. They are different types, so unredacted
text cannot reach a store by accident. They are msgspec structs rather than dataclasses: a list of a hundred entries
is built about eight times faster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from reverie.core.clock import to_datetime
from reverie.core.errors import UnsupportedRef

MAX_REF_LENGTH = 256
MAX_ID_LENGTH = 1500
MAX_TAG_LENGTH = 256

_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}")
_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


FOREIGN_PREFIX = "provider_window:"
"""Name prefix of provider windows. They are not memories, and no memory interface serves them."""


def check_namespace(*names: str | None) -> None:
    """Refuse a ref or an id that names a provider window."""
    for name in names:
        if isinstance(name, str) and name.casefold().startswith(FOREIGN_PREFIX):
            raise UnsupportedRef()


def valid_ref(ref: str) -> bool:
    """Whether `ref` names a memory: 1 to 256 letters, digits and `. _ : - /`, beginning with a letter or digit.

    No empty, `.` or `..` path segment and no trailing slash; the `//` right after a scheme's colon is allowed
    (`mem://team/notes`). Any other text names no memory: there is no looser look-up. Raises UnsupportedRef for the
    name of a provider window.
    """
    check_namespace(ref)
    return isinstance(ref, str) and len(ref) <= MAX_REF_LENGTH and _names_a_memory(ref)


@lru_cache(maxsize=1024)
def _names_a_memory(ref: str) -> bool:
    if not _REF.fullmatch(ref):
        return False
    path = ref.replace("://", "/", 1) if "://" in ref else ref
    return all(segment not in ("", ".", "..") for segment in path.split("/"))


def valid_tenant(name: str) -> bool:
    """Whether `name` can name a tenant: 1 to 64 lower-case letters, digits and `. _ -`."""
    return isinstance(name, str) and _TENANT.fullmatch(name) is not None and ".." not in name


class Scope(Struct, frozen=True):
    """Scope of a transaction: one tenant, and one of its memories or (`ref=None`) all of them.

    Bound when a transaction opens. No query takes a tenant as an argument.
    """

    tenant: str
    ref: str | None = None


class EntryState(StrEnum):
    """State of an entry in its life cycle. `archived` is a separate flag: an archived entry keeps its state."""

    ACTIVE = "active"
    DRAFT = "draft"  # seen by its author only
    CONTESTED = "contested"  # readable, part of an open conflict
    PENDING = "pending_enrichment"  # readable, not fully indexed yet
    SUPERSEDED = "superseded"  # replaced by another entry
    RETRACTED = "retracted"  # withdrawn by its author
    DREAMT = "dreamt"  # distilled into a dream; in cold storage
    DELETED = "deleted"  # out of every read; its text waits for destruction
    ERASED = "erased"  # its text is destroyed; id and history remain


READABLE = frozenset({EntryState.ACTIVE, EntryState.CONTESTED, EntryState.PENDING})
"""The states an ordinary read shows."""


FILE_KIND = "file"
"""Kind of entries that are files of a memory store. They have a path, versions, and dreams of their own."""

COMMITMENT_KIND = "commitment"
"""Kind of entries that fire when they are due, or when a tag appears, for as long as they are readable."""

NAMED_SESSIONS = frozenset({"akashik"})
"""Doors whose sessions are named objects with a log of their own. Elsewhere a session is a label set by the caller."""

CREDENTIAL_PREFIXES = ("key:", "host:", "local:")
"""Id prefixes of credentials; a caller cannot name such an actor."""


class Source(Struct, frozen=True):
    """Author and origin of an entry."""

    actor: str = ""
    """Author: an agent or a person named by the caller, else the credential that wrote it."""
    role: str | None = None
    door: str = ""
    session: str | None = None
    run: str | None = None
    node: str | None = None
    trust: int = 10
    """0 to 10; a derived entry is no more trusted than its weakest source."""


def brief(text: str, most: int = 60) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def speaker(source: Source) -> str | None:
    """The agent or person behind an entry; None when only a credential is known."""
    return named(source.actor)


def named(actor: str) -> str | None:
    """The actor, if it is an agent or a person; None for a credential."""
    return None if not actor or actor.startswith(CREDENTIAL_PREFIXES) else actor


class Draft(Struct, frozen=True):
    """An entry as requested by a caller: parsed and typed, not yet redacted."""

    content: str
    kind: str = "note"
    tags: tuple[str, ...] = ()
    subject: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    source: Source = Source()
    state: EntryState = EntryState.ACTIVE
    created_at: int | None = None
    expires_at: int | None = None
    pinned: bool = False
    replaces: str | None = None
    """One of the draft's tags. The new entry replaces the readable entries with this tag, in one transaction."""


class Entry(Struct, frozen=True):
    """A stored entry: redacted and stamped. State, flags, attributes and expiry can change; text only by redaction."""

    ref: str
    id: str
    kind: str
    content: str
    tags: tuple[str, ...]
    subject: str | None
    attributes: Mapping[str, Any]
    source: Source
    state: EntryState
    created_at: int
    expires_at: int | None
    pinned: bool
    archived: bool = False
    held: bool = False
    """On hold: not even a forget erases the entry until the hold is released."""
    version: int = 1
    born_seq: int = 0
    epoch: int = 0
    """Lamport epoch of the operation that wrote the entry."""
    gone_seq: int | None = None
    position: int = 0
    """Order of insertion in the store."""

    @property
    def created(self) -> datetime:
        """`created_at` as an aware datetime, UTC."""
        return to_datetime(self.created_at)

    @property
    def expires(self) -> datetime | None:
        """`expires_at` as an aware datetime, UTC."""
        return None if self.expires_at is None else to_datetime(self.expires_at)

    @property
    def byte_size(self) -> int:
        """UTF-8 bytes of the content: what quotas and limits count."""
        return len(self.content.encode())

    def __repr__(self) -> str:
        return f"<Entry {self.id} ({self.kind}): {brief(self.content)!r}>"


def is_for_members(entry: Entry) -> bool:
    """Whether only members of its session may read an entry, so that no text of several sessions may hold its words."""
    return entry.source.session is not None and entry.source.door in NAMED_SESSIONS


class Link(Struct, frozen=True):
    """A typed, directed link between two entries of one ref: the nine relations of Akashik and `distilled-from`."""

    from_id: str
    to_id: str
    type: str
    note: str | None = None


LINK_TYPES = frozenset(
    {
        "supports",
        "contradicts",
        "depends_on",
        "supersedes",
        "caused_by",
        "elaborates",
        "answers",
        "blocks",
        "informs",
        "distilled-from",
    }
)


class Document(Struct, frozen=True):
    """Versioned state that is not memory: workspace files, provider windows, policies, schedules, agents.

    Never indexed, never searched, never returned by a memory read. `body` is opaque to the store.
    """

    space: str
    key: str
    version: int
    body: bytes | None
    """None in a tombstone: the document was dropped at this version."""
    meta: Mapping[str, Any]
    updated_at: int
    seq: int


class Receipt(Struct, frozen=True):
    """Result of a write, given only after the commit is durable."""

    id: str
    ref: str
    seq: int
    version: int
    created_at: int
    findings: Mapping[str, int] = field(default_factory=dict)
    """Redactions, counted by kind; never a value."""
    indexed: str = "ok"
    """`ok`, or `words` when the vector is still to come."""
    replayed: bool = False
    """True when this answers a retry: nothing was written again."""

    @property
    def created(self) -> datetime:
        """`created_at` as an aware datetime, UTC."""
        return to_datetime(self.created_at)
