"""Visibility of units: the one place that decides it.

At Level 3, in this order: the session (only units of the session the envelope names; no session is a partition of its
own, open to all), the role rules of that session, the minimum authority per type. Drafts are seen by their author only,
at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from reverie.core.entry import Entry, EntryState
from reverie.core.query import Filter, Hidden
from reverie.memory.insertion import HASHED, hashed_session
from reverie.protocols.akashik.units import TYPES, type_of_kind
from reverie.store.contract import ReadTx

if TYPE_CHECKING:
    from reverie.protocols.akashik.operations.agents import FieldAgent
    from reverie.protocols.akashik.operations.sessions import FieldSession


class View:
    """The units visible to one agent from one session."""

    def __init__(
        self, tx: ReadTx, *, level: int, agent: FieldAgent | None, authority: int, session_id: str | None = None
    ) -> None:
        self._tx = tx
        self._level = level
        self._agent = agent
        self._authority = authority
        self._session_id = session_id
        self._sessions: dict[str, FieldSession | None] = {}
        self._hashed: dict[str, str] | None = None

    def sees(self, entry: Entry) -> bool:
        """Whether the unit is visible from the session that the envelope names."""
        if entry.source.session is None and self._session_id is None and entry.state is not EntryState.DRAFT:
            return True  # units of no session are open to all
        if not self.reaches(entry):
            return False
        own = entry.source.session
        if self._level < 3 or own == self._session_id:
            return True
        active = self._session(self._session_id)
        return active is not None and active.policy.cross_session and self._member(own)

    def narrow(self, where: Filter) -> Filter:
        """Restrict a filter to visible units: those of the session, without the types that its rules deny.

        Where the session's policy is `cross_session`: those of every session that the agent may enter.
        """
        if self._level < 3:
            return where
        if self._session_id is None:
            return msgspec.structs.replace(where, sessionless=True)
        across = self._session(self._session_id)
        if across is not None and across.policy.cross_session:
            return msgspec.structs.replace(where, hidden=self._hidden())
        if not self._member(self._session_id):
            return msgspec.structs.replace(where, kinds=())
        denied = self._denied(self._session_id)
        if type_of_kind("") in denied:  # the type of every kind that is not one of the protocol's
            seen = tuple([kind for kind in TYPES if kind not in denied])
            return msgspec.structs.replace(where, session=self._session_id, kinds=seen)
        return msgspec.structs.replace(where, session=self._session_id, without_kinds=tuple(sorted(denied)))

    def _denied(self, session_id: str | None) -> frozenset[str]:
        """The types that the rules of a session deny to the agent."""
        session = self._session(session_id)
        if session is None:
            return frozenset()
        rules, authority = session.policy, self.authority_in(session_id)
        denied = rules.denied(self._agent.role if self._agent else None)
        return denied | {kind for kind, least in rules.min_authority.items() if authority < least}

    def _hidden(self) -> Hidden | None:
        """Sessions that the agent may not enter, and the types denied in others: of sessions that were used, since any
        other is open.
        """
        from reverie.protocols.akashik.operations.sessions import each_session

        self._sessions |= {session.id: session for session in each_session(self._tx)}
        used = [name for name, session in self._sessions.items() if session is not None]
        entered = {name: sorted(self._denied(name)) for name in used if self._member(name)}
        closed = tuple([name for name in used if name not in entered])
        kinds = tuple([(name, kind) for name, denied in entered.items() for kind in denied])
        if not closed and not kinds:
            return None  # a filter without it is counted by indexes alone
        return Hidden(
            sessions=closed,
            kinds=kinds,
            others=tuple([name for name, denied in entered.items() if type_of_kind("") in denied]),
            known=TYPES,
        )

    def reaches(self, entry: Entry) -> bool:
        """Whether the unit is visible from any session the agent is a member of; authority 10 reaches every one."""
        if entry.state is EntryState.DRAFT and not self.wrote(entry):
            return False
        if self._level < 3:
            return True
        return self._member(entry.source.session) and self.allows(kinds_of(entry), entry.source.session)

    def wrote(self, entry: Entry) -> bool:
        """Whether the agent is the author. A later agent of the same id, of another credential, is someone else."""
        agent = self._agent
        return agent is not None and entry.source.actor == agent.id and entry.born_seq >= agent.since_seq

    def enters(self, session_id: str | None) -> bool:
        """Whether the agent may know what happened in a session."""
        return self._level < 3 or self._member(session_id)

    def logged(self, session_id: str | None) -> tuple[str | None, ...]:
        """The sessions that a name in the log may mean: where it is a hash, also the session of that hash.

        Entries of other interfaces log the hash of their session. An agent may name a session like any hash, so that
        both names have to be open to it.
        """
        if session_id is None or not session_id.startswith(HASHED):
            return (session_id,)
        if self._hashed is None:
            from reverie.protocols.akashik.operations.sessions import each_session

            key = self._tx.log_key()
            self._hashed = {hashed_session(key, session.id): session.id for session in each_session(self._tx)}
        meant = self._hashed.get(session_id)
        return (session_id,) if meant is None else (session_id, meant)

    def enters_logged(self, session_id: str | None) -> bool:
        """Whether the agent may know what happened in a session that an event names."""
        return self._level < 3 or all(map(self._member, self.logged(session_id)))

    def allows(self, kinds: Iterable[str], session_id: str | None) -> bool:
        """Whether the role rules and minimum authority of a session allow every one of these types."""
        session = self._session(session_id)
        if session is None or self._level < 3:
            return True
        denied = session.policy.denied(self._agent.role if self._agent else None)
        authority, least = self.authority_in(session_id), session.policy.min_authority
        return all(kind not in denied and authority >= least.get(kind, 0) for kind in kinds)

    def authority_in(self, session_id: str | None) -> int:
        """Return the agent's authority in a session: its creator has 8 there, and nowhere else."""
        session = self._session(session_id)
        creator = session is not None and self._agent is not None and session.creator_id == self._agent.id
        return max(self._authority, 8) if creator else self._authority

    def commands(self, session_id: str | None, authority: int) -> bool:
        """Whether the agent has this authority in a session. Authority is enforced from Level 3 on."""
        return self._level < 3 or self.authority_in(session_id) >= authority

    def visibility_class(self, entry: Entry) -> tuple[str | None, tuple[str, ...]]:
        """Units of one class are seen by exactly the same agents; synthesis never crosses it."""
        session = self._session(entry.source.session)
        if session is None:
            return entry.source.session, ()
        kinds = kinds_of(entry)
        rules = [
            f"{rule.role}:{kind}" for rule in session.policy.role_rules for kind in kinds if kind in rule.deny_types
        ]
        least = max((session.policy.min_authority.get(kind, 0) for kind in kinds), default=0)
        return entry.source.session, (*sorted(rules), f"authority:{least}")

    def _member(self, session_id: str | None) -> bool:
        if session_id is None or self._authority >= 10:
            return True
        session = self._session(session_id)
        if session is None or session.implicit:
            return True
        return self._agent is not None and session.has(self._agent.id)

    def _session(self, session_id: str | None) -> FieldSession | None:
        from reverie.protocols.akashik.operations.sessions import load_session

        if session_id is None:
            return None
        if session_id not in self._sessions:
            self._sessions[session_id] = load_session(self._tx, session_id)
        return self._sessions[session_id]


class CredentialView:
    """View of a credential where no agent is named: everything visible to any of its agents; with authority 10,
    everything but drafts of others.
    """

    def __init__(self, anyone: View, agents: Callable[[], Iterable[View]]) -> None:
        self._anyone = anyone
        self._agents = agents
        self._views: list[View] | None = None

    def reaches(self, entry: Entry) -> bool:
        return self._anyone.reaches(entry) or any(view.reaches(entry) for view in self._each())

    def enters(self, session_id: str | None) -> bool:
        return self._anyone.enters(session_id) or any(view.enters(session_id) for view in self._each())

    def logged(self, session_id: str | None) -> tuple[str | None, ...]:
        return self._anyone.logged(session_id)

    def enters_logged(self, session_id: str | None) -> bool:
        return self._anyone.enters_logged(session_id) or any(view.enters_logged(session_id) for view in self._each())

    def _each(self) -> Sequence[View]:
        """The views of its agents, read when they are needed."""
        if self._views is None:
            self._views = list(self._agents())
        return self._views


def kinds_of(entry: Entry) -> tuple[str, ...]:
    """The types that must all be visible for the unit to be: its own, and of a synthesis those it was made from."""
    made_from = entry.attributes.get("derived_from_types")
    kinds = [entry.kind, *map(str, made_from)] if isinstance(made_from, list) else [entry.kind]
    return tuple([type_of_kind(kind) for kind in kinds])
