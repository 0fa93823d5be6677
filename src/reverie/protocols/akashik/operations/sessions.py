"""SESSION: a partition of the Field with members and a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from reverie.protocols.akashik import documents
from reverie.protocols.akashik.call import Operation, OperationCall, Ready
from reverie.protocols.akashik.envelope import MAX_NAME
from reverie.protocols.akashik.units import TYPES
from reverie.store.contract import ReadTx

SESSIONS = "akashik.session"
MAX_TEXT = 65_536


class RoleRule(Struct, frozen=True, forbid_unknown_fields=True):
    """Types that a role does not see."""

    role: str
    deny_types: list[str] = []


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """Policy of a session."""

    membership: str = "invite"
    role_rules: list[RoleRule] = []
    min_authority: dict[str, int] = {}
    vote_quorum: int = 3
    cross_session: bool = False

    def denied(self, role: str | None) -> frozenset[str]:
        """The types a role does not see."""
        return frozenset(kind for rule in self.role_rules if rule.role == role for kind in rule.deny_types)


class FieldSession(Struct, frozen=True):
    """A session. An implicit one was never created: every agent that names it is a member."""

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


def load_session(tx: ReadTx, session_id: str) -> FieldSession | None:
    """A session that was created or used."""
    found = documents.load(tx, SESSIONS, session_id)
    return msgspec.convert(found[0], FieldSession) if found else None


def each_session(tx: ReadTx) -> Iterator[FieldSession]:
    """Every session, by id."""
    for _, body, _ in documents.each(tx, SESSIONS):
        yield msgspec.convert(body, FieldSession)


READS = frozenset({"get", "list"})
"""Actions of COORDINATE and HANDOFF that only look."""
_STOPPED_BY_PAUSE = frozenset({"RECORD", "COORDINATE", "HANDOFF"})
_GOES_ON_AFTER_END = frozenset({"ATTUNE", "DETECT", "REPLAY", "COMPACT", "SUBSCRIBE"})


def check_session(ready: Ready, session: FieldSession | None) -> None:
    """Refuse an operation that a session does not allow. A session that was never created is open to all.

    Paused: nothing is recorded, coordinated or handed over; reads continue. Ended: only reads, REPLAY and COMPACT.
    """
    if session is None or ready.level < 3:
        return
    looks = str(ready.payload.get("action")) in READS and ready.operation in ("COORDINATE", "HANDOFF")
    stopped = session.status == "paused" and ready.operation in _STOPPED_BY_PAUSE
    ended = session.status == "ended" and ready.operation not in _GOES_ON_AFTER_END
    if (stopped or ended) and not looks:
        raise ready.error("INVALID_TRANSITION", f"The session is {session.status}.")
    if not _may_enter(ready, session):
        raise ready.error("NOT_A_MEMBER", "You are not a member of this session.")


def _may_enter(ready: Ready, session: FieldSession) -> bool:
    return session.implicit or session.has(ready.speaker.id) or _authority_in(ready, session) >= 10


def _authority_in(ready: Ready, session: FieldSession) -> int:
    own = min(ready.speaker.authority_level, ready.actor.authority)
    return max(own, 8) if session.creator_id == ready.speaker.id else own


def enter(call: OperationCall) -> None:
    """Note the first use of a session that was never created, and the first by this agent."""
    if call.session_id is None or call.level < 3:
        return
    session = call.session
    if session is None:
        session = FieldSession(call.session_id, members=[call.speaker.id], created_epoch=call.epoch, implicit=True)
        _save(call, session, call.append("session.opened"), expected=0)
    elif session.implicit and call.speaker.id not in session.members and session.status == "active":
        session = msgspec.structs.replace(session, members=[*session.members, call.speaker.id])
        _save(call, session, call.append("session.joined", data={"members": [call.speaker.id]}))
    call.session = session


def _save(call: OperationCall, session: FieldSession, seq: int, *, expected: int | None = None) -> None:
    if expected is None:
        found = documents.load(call.tx, SESSIONS, session.id)
        expected = found[1] if found else 0
    documents.save(call.tx, SESSIONS, session.id, msgspec.to_builtins(session), seq=seq, expected=expected)


def _execute(call: OperationCall) -> dict[str, Any]:
    action, given = call.payload.get("action"), call.payload.get("session")
    given = {} if given is None else given
    if action not in ("list", *_ACTIONS) or not isinstance(given, dict):
        raise call.error("INVALID_REQUEST", f"action is one of list, {', '.join(_ACTIONS)}; session is an object.")
    goal, members = given.get("goal"), given.get("members")
    if goal is not None and (not isinstance(goal, str) or len(goal) > MAX_TEXT):
        raise call.error("INVALID_REQUEST", f"session.goal is a string of at most {MAX_TEXT} characters.")
    if members is not None and not (isinstance(members, list) and all(_is_name(member) for member in members)):
        raise call.error("INVALID_REQUEST", "session.members is a list of agent ids.")
    if action == "list":
        return {"status": "ok", "sessions": [_bare(s) for s in each_session(call.tx) if _may_look(call, s)]}
    name: Any = given.get("id") or call.session_id
    if name is None and action == "create":
        name = call.services.parts.ids.new()
    if not _is_name(name):
        raise call.error("INVALID_REQUEST", f"session.id is a string of 1 to {MAX_NAME} characters.")
    policy = _policy(call, given.get("policy"))
    if action == "create":
        return {"status": "ok", "session": _bare(_create(call, name, goal, members or [], policy))}
    session = load_session(call.tx, name)
    if session is None:
        raise call.error("NOT_FOUND", "There is no such session.")
    changed = _ACTIONS[action](call, session, members or [], policy)
    return {"status": "ok", "session": _bare(changed)}


def _bare(session: FieldSession) -> dict[str, Any]:
    """The session without its goal, as an answer is remembered: a forget reaches the goal in the session alone."""
    return {name: value for name, value in session.document().items() if name != "goal"}


def _show(call: OperationCall, result: dict[str, Any]) -> dict[str, Any]:
    """The answer with the goals that the sessions have now."""
    if "session" in result:
        session = load_session(call.tx, result["session"]["id"])
        return {**result, "session": (session.document() if session else {}) | result["session"]}
    now = {session.id: session.document() for session in each_session(call.tx)}
    return {**result, "sessions": [now.get(shown["id"], {}) | shown for shown in result["sessions"]]}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_NAME


def _policy(call: OperationCall, given: Any) -> dict[str, Any]:
    """The members of a policy that were given, checked."""
    if given is None:
        return {}
    try:
        policy = msgspec.convert(given, Policy)
        kinds = [*policy.min_authority, *(kind for rule in policy.role_rules for kind in rule.deny_types)]
        sound = (
            policy.membership in ("invite", "open")
            and all(kind in TYPES for kind in kinds)
            and all(0 <= least <= 10 for least in policy.min_authority.values())
            and 1 <= policy.vote_quorum <= 10_000
        )
    except msgspec.ValidationError:
        sound = False
    if not sound:
        raise call.error(
            "INVALID_REQUEST",
            "session.policy is {membership: invite|open, role_rules: [{role, deny_types[]}], min_authority: {type: n},"
            " vote_quorum: 1 or more, cross_session: true|false}.",
        )
    return dict(given)


def _create(
    call: OperationCall, name: str, goal: str | None, members: list[str], policy: dict[str, Any]
) -> FieldSession:
    call.require(4, "SESSION create")
    if load_session(call.tx, name) is not None:
        raise call.error("INVALID_TRANSITION", "A session with this id exists already.")
    session = FieldSession(
        id=name,
        goal=goal,
        creator_id=call.speaker.id,
        members=list(dict.fromkeys([call.speaker.id, *members])),
        policy=msgspec.convert(policy, Policy),
        created_epoch=call.epoch,
    )
    _save(call, session, call.append("session.created", session=name), expected=0)
    return session


def _join(call: OperationCall, session: FieldSession, members: list[str], _: dict[str, Any]) -> FieldSession:
    if session.status == "ended":
        raise call.error("INVALID_TRANSITION", "The session has ended.")
    invited = [member for member in dict.fromkeys(members) if member != call.speaker.id]
    if invited:
        if call.speaker.id != session.creator_id and _authority_in(call, session) < 10:
            raise call.error("INSUFFICIENT_AUTHORITY", "Only its creator, or authority 10, invites into a session.")
        new = [member for member in dict.fromkeys(members) if member not in session.members]
    else:
        if session.policy.membership != "open" and not _may_enter(call, session):
            raise call.error("NOT_A_MEMBER", "This session is by invitation of its creator.")
        new = [call.speaker.id] if call.speaker.id not in session.members else []
    if not new:
        return session
    return _change(call, session, "session.joined", {"members": new}, members=[*session.members, *new])


def _leave(call: OperationCall, session: FieldSession, *_: Any) -> FieldSession:
    _active(call, session)
    if call.speaker.id not in session.members:
        raise call.error("NOT_A_MEMBER", "You are not a member of this session.")
    rest = [member for member in session.members if member != call.speaker.id]
    return _change(call, session, "session.left", {}, members=rest)


def _pause(call: OperationCall, session: FieldSession, *_: Any) -> FieldSession:
    return _move(call, session, ("active",), "paused", "session.paused")


def _resume(call: OperationCall, session: FieldSession, *_: Any) -> FieldSession:
    return _move(call, session, ("paused",), "active", "session.resumed")


def _end(call: OperationCall, session: FieldSession, *_: Any) -> FieldSession:
    return _move(call, session, ("active", "paused"), "ended", "session.ended")


def _set_policy(call: OperationCall, session: FieldSession, _: list[str], policy: dict[str, Any]) -> FieldSession:
    if not policy:
        raise call.error("INVALID_REQUEST", "session.policy is missing.")
    _rule(call, session)
    _active(call, session)
    merged = msgspec.convert({**msgspec.to_builtins(session.policy), **policy}, Policy)
    return _change(call, session, "session.policy_changed", {"names": sorted(policy)}, policy=merged)


def _get(call: OperationCall, session: FieldSession, *_: Any) -> FieldSession:
    if not _may_look(call, session):
        raise call.error("NOT_A_MEMBER", "You are not a member of this session.")
    return session


_ACTIONS: dict[str, Callable[[OperationCall, FieldSession, list[str], dict[str, Any]], FieldSession]] = {
    "create": _get,
    "join": _join,
    "leave": _leave,
    "pause": _pause,
    "resume": _resume,
    "end": _end,
    "get": _get,
    "set_policy": _set_policy,
}


def _may_look(call: OperationCall, session: FieldSession) -> bool:
    return session.policy.membership == "open" or _may_enter(call, session)


def _active(call: OperationCall, session: FieldSession) -> None:
    if session.status == "ended":
        raise call.error("INVALID_TRANSITION", "The session has ended.")


def _rule(call: OperationCall, session: FieldSession) -> None:
    """Only members of authority 8 steer a session; its creator has that."""
    if not _may_enter(call, session):
        raise call.error("NOT_A_MEMBER", "You are not a member of this session.")
    if _authority_in(call, session) < 8:
        raise call.error("INSUFFICIENT_AUTHORITY", "Steering a session needs authority 8, as its creator has.")


def _move(call: OperationCall, session: FieldSession, before: tuple[str, ...], after: str, event: str) -> FieldSession:
    _rule(call, session)
    if session.status not in before:
        raise call.error("INVALID_TRANSITION", f"The session is {session.status}.")
    return _change(
        call, session, event, {}, status=after, ended_epoch=call.epoch if after == "ended" else session.ended_epoch
    )


def _change(
    call: OperationCall, session: FieldSession, event: str, data: dict[str, Any], **changes: Any
) -> FieldSession:
    changed = msgspec.structs.replace(session, **changes)
    _save(call, changed, call.append(event, session=session.id, data=data))
    return changed


SESSION = Operation("SESSION", level=3, execute=_execute, show=_show, in_session=False)
