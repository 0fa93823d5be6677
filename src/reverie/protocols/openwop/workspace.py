"""Workspace files: versioned texts that are not memory, such as MEMORY-INDEX.json.

A file is a document. Its version goes up by one with every write; a delete leaves a tombstone that takes a version
too, so the count never restarts. Everything written passes the redactor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.canonical import sha256
from reverie.core.entry import Document, Scope
from reverie.core.errors import Conflict, Forbidden, Invalid, NotFound, StoreBusy, TooLarge
from reverie.core.event import NewEvent
from reverie.core.query import each
from reverie.core.retry import Moved, retry
from reverie.core.run import RUN_SPACE, Interrupted, Run, RunStatus, mark
from reverie.distil.archive import INDEX_PATH
from reverie.dreams.archive import WORKSPACE
from reverie.memory.policy import RuleBook, Rules
from reverie.protocols.openwop.run_records import save_run
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

T = TypeVar("T")
Owner = Sequence[str | None] | None
"""The parts of an owner's name; None: the tenant itself."""
MAX_FILE_BYTES = 65_536
MAX_FILES = 200
MAX_VERSIONS = 20
WORKFLOW = "reverie.workspace"
"""Workflow of the host's own run, one per workspace, to which file writes outside any run belong. It never ends."""
DEFAULT_TYPE = "text/markdown"
_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,255}")
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}(?:; ?[A-Za-z0-9_.-]{1,32}=[\w.-]{1,64})*")


class StoredFile(Struct, frozen=True):
    """A workspace file; without its content in a list."""

    path: str
    version: int
    updated_at: int
    content_type: str
    content: str | None = None

    @property
    def etag(self) -> str:
        """Changes with every version, also across a delete."""
        return f'"v{self.version}"'


class Workspace:
    """Files of a tenant. `owner` names one of its workspaces; without it, the tenant's own."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def files(self, actor: Actor, *, prefix: str = "", owner: Owner = None) -> list[StoredFile]:
        """Every file whose path begins with `prefix`, by path, without content."""
        actor.require(Right.READ)
        found = self._parts.store.read(Scope(actor.tenant), lambda tx: _current(tx, space_of(owner), prefix))
        return [_file(document, content=False) for document in found]

    def get(self, actor: Actor, path: str, *, version: int | None = None, owner: Owner = None) -> StoredFile:
        """A file, or one of its kept versions. Raises NotFound, also for a version that is no longer kept."""
        actor.require(Right.READ)
        check_path(path)
        found = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.load(space_of(owner), path, version=version))
        if found is None:
            raise NotFound("There is no such file.")
        return _file(found)

    def put(
        self,
        actor: Actor,
        path: str,
        content: str,
        *,
        content_type: str | None = None,
        if_match: str | None = None,
        owner: Owner = None,
    ) -> StoredFile:
        """Write a whole file. With `if_match`, only if the current etag is among those; else raises Conflict."""
        actor.require(Right.WRITE)
        check_writable(path, owner)
        check_segments(path)
        kind = content_type or DEFAULT_TYPE
        if not _TYPE.fullmatch(kind):
            raise Invalid("contentType is a media type such as text/markdown.", pointer="/contentType")
        if len(content.encode()) > MAX_FILE_BYTES:
            raise _too_large(f"A file is at most {MAX_FILE_BYTES} bytes.", maxFileBytes=MAX_FILE_BYTES)
        space = space_of(owner)

        def prepare(rules: Rules) -> Callable[[WriteTx], StoredFile]:
            known = self._rules.known(actor.tenant, actor.run, rules)
            clean = self._parts.redactor.text(content, known).text
            names = {"/path": path, "/contentType": kind}
            self._rules.check_names(actor.tenant, names, run=actor.run, rules=rules)

            def body(tx: WriteTx) -> StoredFile:
                current = tx.load(space, path, dropped=True)
                _match(if_match, current)
                if (current is None or current.body is None) and len(_current(tx, space)) >= MAX_FILES:
                    raise _too_large(f"A workspace has at most {MAX_FILES} files.", maxFiles=MAX_FILES)
                version = (current.version if current else 0) + 1
                seq = _append(tx, actor, space, path, version)
                saved = tx.save(space, path, clean.encode(), seq=seq, meta={"contentType": kind}, keep=MAX_VERSIONS)
                if saved.version != version:
                    raise Moved
                return _file(saved)

            return body

        return _retry(lambda: self._rules.guard(actor.tenant, prepare, Scope(actor.tenant)))

    def delete(self, actor: Actor, path: str, *, if_match: str | None = None, owner: Owner = None) -> int:
        """Delete a file; returns the version of its tombstone. Raises NotFound, Conflict."""
        actor.require(Right.WRITE)
        check_writable(path, owner)
        space = space_of(owner)

        def body(tx: WriteTx) -> int:
            current = tx.load(space, path, dropped=True)
            _match(if_match, current)
            if current is None or current.body is None:
                raise NotFound("There is no such file.")
            seq = _append(tx, actor, space, path, current.version + 1)
            tx.drop(space, path, seq=seq, keep=MAX_VERSIONS)
            after = tx.load(space, path, dropped=True)
            if after is None or after.version != current.version + 1:
                raise Moved
            return after.version

        return _retry(lambda: self._rules.guard(actor.tenant, lambda _: body, Scope(actor.tenant)))


def space_of(owner: Owner) -> str:
    """Return the document space of a workspace. The owner is hashed whole: no name can reach another owner's space."""
    return WORKSPACE if owner is None else f"{WORKSPACE}~{sha256(list(owner))}"


def snapshot(tx: ReadTx, owner: Owner = None) -> tuple[tuple[str, int], ...]:
    """(path, version) of every file, by path."""
    return tuple((document.key, document.version) for document in _current(tx, space_of(owner)))


def check_path(path: str) -> None:
    """Refuse a text that is not a file name: no `..` segment, no leading slash, letters, digits and `. _ / -` only."""
    if not _PATH.fullmatch(path) or ".." in path.split("/"):
        raise Invalid(
            "A path is 1 to 256 letters, digits and . _ / - , begins with a letter or digit and has no '..' segment.",
            pointer="/path",
        )


def check_segments(path: str) -> None:
    """Refuse a new name with an empty or `.` segment. Such files of earlier releases can still be read and deleted."""
    if not {"", "."}.isdisjoint(path.split("/")):
        raise Invalid("A segment of a path is neither empty nor '.'.", pointer="/path")


def check_writable(path: str, owner: Owner) -> None:
    """Refuse a path that callers may not write: the index of dreams belongs to the host."""
    check_path(path)
    if owner is None and path == INDEX_PATH:
        raise Forbidden(f"{INDEX_PATH} is written by dreams alone.")


def host_run(space: str) -> str:
    """The id of a workspace's host run: the same in every process."""
    return sha256([WORKFLOW, space])[:26].upper()


def _append(tx: WriteTx, actor: Actor, space: str, path: str, version: int) -> int:
    """`workspace.updated`, in the stream of the run that writes, else of the workspace's host run."""
    run = mark(tx, actor).get("run") or host_run(space)
    if actor.run is None and tx.load(RUN_SPACE, run) is None:
        data = {"run": run, "workflow": WORKFLOW}
        seq = tx.append(NewEvent("run.started", "WORKSPACE", "host:reverie", data=data), tick=False)
        made = Run(
            id=run,
            workflow=WORKFLOW,
            status=RunStatus.RUNNING,
            actor="host:reverie",
            rights=(),
            authority=0,
            snapshot=seq,
            started_at=tx.now,
            interrupted=Interrupted.ELSEWHERE,
        )
        save_run(tx, made, seq=seq, new=True)
    data = {"run": run, "path": path, "version": version}
    return tx.append(NewEvent("workspace.updated", "WORKSPACE", actor.id, data=data))


def _current(tx: ReadTx, space: str, prefix: str = "") -> list[Document]:
    return list(each(lambda cursor: tx.documents(space, prefix=prefix, limit=200, cursor=cursor)))


def _file(document: Document, *, content: bool = True) -> StoredFile:
    return StoredFile(
        path=document.key,
        version=document.version,
        updated_at=document.updated_at,
        content_type=str(document.meta.get("contentType", DEFAULT_TYPE)),
        content=(document.body or b"").decode() if content else None,
    )


def _match(if_match: str | None, current: Document | None) -> None:
    """Raise `workspace_conflict` unless one of the named etags is the current one; `*` is any file that exists."""
    if if_match is None:
        return
    there = current.version if current is not None and current.body is not None else 0
    wanted = {tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(",")}
    if not there or not wanted & {"*", f"v{there}"}:
        raise Conflict(
            "The file is not the version you expected. Read it again.",
            code="workspace_conflict",
            details={"currentVersion": there},
        )


def _retry(write: Callable[[], T]) -> T:
    return retry(
        lambda _: write(), busy=lambda: StoreBusy("The file changes faster than it can be written. Try again.")
    )


def _too_large(message: str, **details: int) -> TooLarge:
    return TooLarge(message, code="workspace_too_large", details=details)
