"""SESSION: a partition of the Field with members and a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from reverie.core.actor import Right
from reverie.host.field import documents
from reverie.host.field.call import Call, Operation, Ready
from reverie.store.contract import ReadTx

SESSIONS = "akashik.session"


class RoleRule(Struct, frozen=True, forbid_unknown_fields=True):
    """Types that a role does not see."""

    role: str
    deny_types: list[str] = []


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """How a session is used."""

    membership: str = "invite"
    role_rules: list[RoleRule] = []
    min_authority: dict[str, int] = {}
    vote_quorum: int = 3
    cross_session: bool = False

    def denied(self, role: str | None) -> frozenset[str]:
        """The types a role does not see."""
        return frozenset(kind for rule in self.role_rules if rule.role == role for kind in rule.deny_types)


class Session(Struct, frozen=True):
    """A session. An implicit one was never created: whoever names it is a member."""

    id: str
    goal: str | None = None
    status: str = "active"
    creator_id: str | None = None
    members: list[str] = []
    policy: Policy = Policy()
    created_epoch: int = 0
    ended_epoch: int | None = None
    implicit: bool = False

    def has(self, agent_id: str) -> bool:
        """Whether an agent is a member."""
        return agent_id == self.creator_id or agent_id in self.members

    def document(self) -> dict[str, Any]:
        """The session on the wire."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        del shown["implicit"]
        return shown


def load_session(tx: ReadTx, session_id: str) -> Session | None:
    """A session that was created or used."""
    found = documents.load(tx, SESSIONS, session_id)
    return msgspec.convert(found[0], Session) if found else None


def each_session(tx: ReadTx) -> Iterator[Session]:
    """Every session, by id."""
    for _, body, _ in documents.each(tx, SESSIONS):
        yield msgspec.convert(body, Session)


def check_session(ready: Ready, session: Session | None) -> None:
    """Refuse an operation that the session named in the envelope does not allow."""


def enter(call: Call) -> None:
    """Note the first use of an implicit session, and of it by this agent."""


def _execute(call: Call) -> dict[str, Any]:
    raise call.error("UNSUPPORTED_OPERATION", "Not yet.")


SESSION = Operation("SESSION", level=3, execute=_execute, right=Right.READ, in_session=False)
