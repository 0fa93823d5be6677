"""Provider windows as an operator sees them: listed, shown, dropped, rebuilt. Never their payloads.

A window is found by its scope. Its ref for checkpoints and turns is the scope itself where that names a memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import FOREIGN_PREFIX, Document, Scope, valid_ref
from reverie.core.errors import Invalid, NotFound, ReadOnly, ReverieError
from reverie.core.event import NewEvent
from reverie.core.query import Page, each
from reverie.memory.entries import Entries
from reverie.memory.policy import RuleBook
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx
from reverie.window.attempts import Attempts
from reverie.window.blocks import readable
from reverie.window.compaction import trigger_tokens
from reverie.window.items import Item, payload_hash
from reverie.window.policy import NegativeCache, WindowPolicy
from reverie.window.record import CorruptWindow, load
from reverie.window.sealed import PASS_SPACE, SPACES, WINDOW_SPACE, SealedWindow, unseal
from reverie.window.state import WindowState
from reverie.window.storage import WindowStore
from reverie.window.transcript import words_of

MAX_SCOPE = 512
_UNFIT = re.compile(r"[^A-Za-z0-9._:/-]+")


class WindowSummary(Struct, frozen=True):
    """One window in a list."""

    scope: str
    ref: str
    generation: int
    items: int
    compactions: int
    updated_at: int


class WindowAdmin:
    """The windows of a tenant."""

    def __init__(self, parts: Services, rules: RuleBook, entries: Entries) -> None:
        self._parts = parts
        self._rules = rules
        self._entries = entries

    def keeper(
        self,
        actor: Actor,
        scope: str,
        *,
        policy: WindowPolicy | None = None,
        negative: NegativeCache | None = None,
        ref: str | None = None,
        subject: str | None = None,
    ) -> WindowStore:
        """The durable side of one scope's window. `ref`: the memory that gets checkpoints and turns."""
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        key = self.key(actor, scope)
        memory = ref or ref_for(key)
        self._rules.check_ref(actor.tenant, memory)
        return WindowStore(
            self._parts,
            self._rules,
            self._entries,
            actor,
            key=key,
            ref=memory,
            policy=policy or WindowPolicy(),
            negative=negative or NegativeCache(),
            subject=subject,
        )

    def key(self, actor: Actor, scope: str) -> str:
        """A scope as it is stored: redacted, with a keyed hash behind it when it held a secret."""
        if not isinstance(scope, str) or not 0 < len(scope) <= MAX_SCOPE or "\x00" in scope:
            raise Invalid(f"A scope is 1 to {MAX_SCOPE} characters.", pointer="/scope")
        try:
            scope.encode()
        except UnicodeEncodeError:
            raise Invalid("The scope is not valid Unicode.", pointer="/scope") from None
        known = self._rules.current(actor.tenant).known
        clean = self._parts.redactor.text(scope, known).text
        if clean == scope:
            return scope

        def log_key(tx: ReadTx) -> bytes:
            return tx.log_key()

        secret = self._parts.store.read(Scope(actor.tenant), log_key)
        return f"{clean}~{hashlib.blake2b(scope.encode(), key=secret[:32], digest_size=8).hexdigest()}"

    def all(self, actor: Actor, *, limit: int = 100, cursor: str | None = None) -> Page[WindowSummary]:
        """Windows by scope."""
        actor.require(Right.READ)
        page = self._parts.store.read(
            Scope(actor.tenant), lambda tx: tx.documents(WINDOW_SPACE, limit=limit, cursor=cursor)
        )
        return Page([_summary(document) for document in page.items], page.cursor)

    def show(self, actor: Actor, scope: str) -> dict[str, Any]:
        """One window without its payloads: its figures, what kind of items it holds, its last attempts and passes."""
        actor.require(Right.READ)
        key = self.key(actor, scope)
        document, attempts, passes = self._parts.store.read(Scope(actor.tenant), lambda tx: self._read(tx, actor, key))
        if document is None:
            raise NotFound("There is no window of that scope. `reverie window list` shows them.")
        shown: dict[str, Any] = {"scope": key, "ref": document.meta.get("ref"), "version": document.version}
        state = self._state(actor, document)
        if state is None:
            return shown | {"state": "corrupt_state", "attempts": attempts, "compactions": passes}
        return (
            shown
            | _figures(state)
            | {
                "items": [_item(item) for item in state.items],
                "attempts": attempts,
                "compactions": passes,
            }
        )

    def texts(self, actor: Actor, scope: str, *, version: int | None = None) -> list[str]:
        """Return the text of a window's items, redacted, for comparing two versions; without encrypted content."""
        actor.require(Right.READ)
        key = self.key(actor, scope)
        document = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.load(WINDOW_SPACE, key, version=version))
        state = self._state(actor, document) if document is not None else None
        if state is None:
            raise NotFound("There is no window of that scope and version.")
        known = self._rules.current(actor.tenant).known
        parts = [part for item in state.items for part in readable(item)]
        texts = [
            f"{part.type}: {words_of(part.value, part.type) or ''}" for part in parts if isinstance(part.value, dict)
        ]
        return [found.text for found in self._parts.redactor.many(texts, known)]

    def passes(self, actor: Actor, scope: str) -> list[dict[str, Any]]:
        """The metadata of every compaction of a scope, oldest first. Observability, never memory."""
        actor.require(Right.READ)
        key = self.key(actor, scope)
        return self._parts.store.read(Scope(actor.tenant), lambda tx: self._read(tx, actor, key))[2]

    def drop(self, actor: Actor, scope: str) -> bool:
        """Remove a scope's window with everything the provider gave. What was said stays in the memory."""
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        key = self.key(actor, scope)
        return self._parts.store.write(Scope(actor.tenant), lambda tx: drop_window(tx, actor, key))

    def rebuild(
        self, actor: Actor, scope: str, *, most_tokens: int = 40_000, ref: str | None = None
    ) -> list[dict[str, Any]]:
        """The conversation as items for another model or provider, from checkpoints and turns alone."""
        actor.require(Right.READ)
        key = self.key(actor, scope)
        memory = ref or ref_for(key)
        keeper = WindowStore(
            self._parts,
            self._rules,
            self._entries,
            actor,
            key=key,
            ref=memory,
            policy=WindowPolicy(),
            negative=NegativeCache(),
        )
        items = keeper.readable(most_tokens=most_tokens).items
        if not items:
            raise NotFound("Nothing can be read of that conversation.")
        return [item.value for item in items]

    def _read(
        self, tx: ReadTx, actor: Actor, key: str
    ) -> tuple[Document | None, list[dict[str, Any]], list[dict[str, Any]]]:
        scope = Scope(actor.tenant, ref_for(key))
        tried = Attempts(self._parts, actor, scope, SealedWindow(self._parts, scope, key=key)).rows(tx)
        attempts = [{k: v for k, v in row.items() if k not in ("holder", "prefix_hash")} for row in tried]
        passes: list[dict[str, Any]] = []
        for document in _passes(tx, key):
            try:
                passes.append(json.loads(unseal(self._parts, actor.tenant, document)))
            except (ValueError, ReverieError):
                continue
        return tx.load(WINDOW_SPACE, key), attempts, passes

    def _state(self, actor: Actor, document: Document) -> WindowState | None:
        try:
            return load(unseal(self._parts, actor.tenant, document))
        except (CorruptWindow, ReverieError):
            return None


def ref_for(key: str) -> str:
    """The memory of a scope: the scope itself where that is a ref."""
    if not key.casefold().startswith(FOREIGN_PREFIX) and valid_ref(key):
        return key
    clean = "/".join(part for part in _UNFIT.sub("-", key.replace(":", "-")).strip("-/.").split("/") if part.strip("."))
    digest = hashlib.sha256(key.encode()).hexdigest()[:12]
    made = f"{clean.lstrip('._:/-')[:200]}-{digest}".lstrip("-")
    return made if valid_ref(made) else f"window-{digest}"


def drop_window(tx: WriteTx, actor: Actor, key: str) -> bool:
    """Remove every document of a scope's window, with one event. False when there was none."""
    if tx.load(WINDOW_SPACE, key) is None:
        return False
    seq = tx.append(NewEvent("provider_window_dropped", "DROP", actor.id, data={"window": key}))
    for space in SPACES:
        for name in [document.key for document in _passes(tx, key)] if space == PASS_SPACE else [key]:
            tx.drop(space, name, seq=seq, keep=1)
    return True


def _passes(tx: ReadTx, key: str) -> Iterator[Document]:
    """The metadata of the passes of a window, and not of a scope whose name begins with this one and `#`."""
    found = each(lambda cursor: tx.documents(PASS_SPACE, prefix=f"{key}#", cursor=cursor))
    return (document for document in found if document.key.rpartition("#")[0] == key)


def _summary(document: Document) -> WindowSummary:
    meta = document.meta
    return WindowSummary(
        scope=document.key,
        ref=str(meta.get("ref", "")),
        generation=int(meta.get("generation", 0)),
        items=int(meta.get("items", 0)),
        compactions=int(meta.get("compactions", 0)),
        updated_at=document.updated_at,
    )


def _figures(state: WindowState) -> dict[str, Any]:
    return {
        "provider": state.provider,
        "base_url": state.base.url,
        "base_kind": state.base.kind,
        "model": state.model,
        "mode": state.mode,
        "generation": state.generation,
        "latest_compaction_index": state.latest_compaction_index,
        "prune_from": state.prune_from,
        "request_shape_hash": state.request_shape_hash,
        "reported_input_tokens": state.reported_input_tokens,
        "estimated_input_tokens": state.pressure()[0],
        "trigger_input_tokens": trigger_tokens(state),
        "cooldown_until_tokens": state.cooldown_until_tokens,
        "replay_loss_reason": state.replay_loss_reason,
    }


def _item(item: Item) -> Mapping[str, Any]:
    """Describe an item by its kind and size; encrypted content only by hash and length."""
    value = item.value if isinstance(item.value, dict) else {}
    document: dict[str, Any] = {"type": item.type, "bytes": len(item.text.encode("utf-8", "surrogatepass"))}
    if isinstance(value.get("role"), str):
        document["role"] = value["role"]
    payload = value.get("encrypted_content")
    if isinstance(payload, str):
        document |= {"encrypted_sha256": payload_hash(payload), "encrypted_bytes": len(payload.encode())}
    return document
