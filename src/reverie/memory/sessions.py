"""Sessions of a browser: opened with a key, known by an opaque id, ended by idleness, age, sign-out or the key's end.

The id is `KEY.SECRET`: the public id of the key, which finds the tenant, and 256 random bits. Only a keyed hash of the
secret is stored, as a document of the key's tenant; opening and closing are events of its log.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import Scope
from reverie.core.errors import Conflict, Unauthenticated
from reverie.core.event import NewEvent
from reverie.memory.keys import Keys
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

SPACE = "console-session"
IDLE_MS = 8 * 3_600_000
ABSOLUTE_MS = 7 * MS_PER_DAY
_NOTED_MS = 15 * 60_000
"""Interval at which a use is recorded: a session in constant use ends at most this much early."""
_ID = re.compile(r"([0-9a-z]{12})\.([A-Za-z0-9_-]{43})")
_LABEL = b"reverie session v1"
_MOST = 100
"""Expired sessions of a key that one sign-in clears away."""


class Session(Struct, frozen=True):
    """A session as stored."""

    opened_at: int
    used_at: int

    def over(self, now: int) -> bool:
        """Whether it was idle or open for too long."""
        return now - self.used_at >= IDLE_MS or now - self.opened_at >= ABSOLUTE_MS


class Sessions:
    """Opens, resumes and closes. A read-only host keeps its sessions in this process."""

    def __init__(self, parts: Services, keys: Keys) -> None:
        self._parts = parts
        self._keys = keys
        self._lock = threading.Lock()
        self._own: dict[str, Session] = {}

    def open(self, actor: Actor) -> str:
        """A new session of the caller's key. The id is given here and never again."""
        if actor.key_id is None:
            raise Unauthenticated("A session needs a key.")
        secret = secrets.token_urlsafe(32)
        name, now = _name(actor.key_id, secret), self._parts.clock.now()
        session = Session(now, now)
        if self._parts.read_only:
            with self._lock:
                self._own = {key: one for key, one in self._own.items() if not one.over(now)} | {name: session}
            return f"{actor.key_id}.{secret}"

        def body(tx: WriteTx) -> None:
            seq = tx.append(NewEvent("document.saved", "SIGN_IN", actor.id, data={"space": SPACE}))
            for document in tx.documents(SPACE, prefix=f"{actor.key_id}/", limit=_MOST).items:
                if document.body and msgspec.json.decode(document.body, type=Session).over(now):
                    tx.drop(SPACE, document.key, seq=seq)
            tx.save(SPACE, name, msgspec.json.encode(session), seq=seq, expected=0)

        self._parts.store.write(Scope(actor.tenant), body)
        return f"{actor.key_id}.{secret}"

    def resume(self, session_id: str | None, *, door: str) -> Actor:
        """The caller of a session. Raises Unauthenticated when it is over, or its key is."""
        parsed = _ID.fullmatch(session_id or "")
        if parsed is None:
            raise Unauthenticated()
        actor = self._keys.actor_of(parsed[1], door=door)
        name, now = _name(parsed[1], parsed[2]), self._parts.clock.now()
        session = self._find(actor, name)
        if session is None or session.over(now):
            raise Unauthenticated("The session has ended. Sign in again.")
        if now - session.used_at >= _NOTED_MS:
            self._note(actor, name, msgspec.structs.replace(session, used_at=now))
        return actor

    def close(self, session_id: str) -> None:
        """End a session. Nothing happens when there is none."""
        parsed = _ID.fullmatch(session_id)
        if parsed is None:
            return
        name = _name(parsed[1], parsed[2])
        with self._lock:
            self._own.pop(name, None)
        try:
            actor = self._keys.actor_of(parsed[1], door="console")
        except Unauthenticated:
            return  # with its key the session has ended too
        if self._parts.read_only or self._find(actor, name) is None:
            return

        def body(tx: WriteTx) -> None:
            seq = tx.append(NewEvent("document.dropped", "SIGN_OUT", actor.id, data={"space": SPACE}))
            tx.drop(SPACE, name, seq=seq)

        self._parts.store.write(Scope(actor.tenant), body)

    def _find(self, actor: Actor, name: str) -> Session | None:
        if self._parts.read_only:
            return self._own.get(name)

        def body(tx: ReadTx) -> Session | None:
            document = tx.load(SPACE, name)
            return msgspec.json.decode(document.body, type=Session) if document and document.body else None

        return self._parts.store.read(Scope(actor.tenant), body)

    def _note(self, actor: Actor, name: str, session: Session) -> None:
        if self._parts.read_only:
            with self._lock:
                if name in self._own:
                    self._own[name] = session
            return

        def body(tx: WriteTx) -> None:
            current = tx.load(SPACE, name)
            if current is None:
                raise Conflict  # signed out meanwhile
            seq = tx.append(NewEvent("document.saved", "SESSION", actor.id, data={"space": SPACE}))
            tx.save(SPACE, name, msgspec.json.encode(session), seq=seq, expected=current.version)

        try:
            self._parts.store.write(Scope(actor.tenant), body)
        except Conflict:
            return  # another request noted it, or ended it


def _name(key_id: str, secret: str) -> str:
    return f"{key_id}/{hmac.new(_LABEL, secret.encode(), hashlib.sha256).hexdigest()}"
