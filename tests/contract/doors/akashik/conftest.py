"""Agents that send envelopes over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2
import pytest

_MESSAGES = count(1)
_AGENTS = count(1)


@dataclass
class Agent:
    """A registered agent behind a caller's key. `agent("RECORD", {...})` sends a message."""

    caller: Any
    id: str
    session: str | None = None
    epoch: int = 0
    answer: dict[str, Any] = field(default_factory=dict)

    def envelope(self, operation: str, payload: dict[str, Any], **members: Any) -> dict[str, Any]:
        return {
            "protocol": "akashik",
            "version": "0.1.0",
            "id": f"msg-{next(_MESSAGES)}",
            "operation": operation,
            "agent_id": self.id,
            "session_id": self.session,
            "epoch": self.epoch,
            "payload": payload,
            **members,
        }

    def send(self, operation: str, payload: dict[str, Any], **members: Any) -> httpx2.Response:
        """One message; the response, whatever it is."""
        return self.post(operation, self.envelope(operation, payload, **members))

    def post(self, operation: str, envelope: Any) -> httpx2.Response:
        response: httpx2.Response = self.caller.post(f"/akashik/v1/{operation.lower()}", envelope)
        return response

    def __call__(self, operation: str, payload: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
        """One message that must succeed; its answer."""
        response = self.send(operation, payload or {}, **members)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        self.epoch = max(self.epoch, answer["epoch"])
        return answer

    def refused(self, code: str, operation: str, payload: dict[str, Any] | None = None, **members: Any) -> Any:
        """One message that must be refused with `code`; the error body."""
        response = self.send(operation, payload or {}, **members)
        body = response.json()
        assert response.status_code >= 400, body
        assert body["code"] == code, body
        return body | {"http": response.status_code}

    def record(self, content: str, **fields: Any) -> str:
        """Record a committed finding; its id."""
        answer = self("RECORD", unit(content, **fields))
        return str(answer["memory_unit_id"])

    def attune(self, **payload: Any) -> dict[str, Any]:
        """Attune with a wide scope; the answer."""
        scope = {"role": "researcher", "max_units": 100, **payload.pop("scope", {})}
        return self("ATTUNE", {"scope": scope, **payload})

    def seen(self, **payload: Any) -> list[str]:
        """The ids that an ATTUNE shows, best first."""
        return [item["memory_unit"]["id"] for item in self.attune(**payload)["record"]]

    def unit(self, unit_id: str) -> dict[str, Any]:
        """GET the unit."""
        response = self.caller.get(f"/akashik/v1/units/{unit_id}")
        assert response.status_code == 200, response.text
        shown: dict[str, Any] = response.json()
        return shown

    def inside(self, session: str | None) -> Agent:
        """The same agent in another session."""
        return Agent(self.caller, self.id, session, self.epoch)


def unit(content: str, **fields: Any) -> dict[str, Any]:
    """A payload of RECORD."""
    return {
        "mode": "committed",
        "type": "finding",
        "content": content,
        "intent": {"purpose": "to be known"},
        "confidence": {"score": 0.8, "reasoning": "seen twice"},
        **fields,
    }


@pytest.fixture
def join(server: Any) -> Callable[..., Agent]:
    """`join(caller=None, id=None, **register)`: an agent that has registered; with a key of a new tenant by default."""

    def make(caller: Any = None, id: str | None = None, session: str | None = None, **register: Any) -> Agent:  # noqa: A002
        agent = Agent(caller or server.caller(), id or f"agent-{next(_AGENTS)}", session)
        agent.answer = agent("REGISTER", {"id": agent.id, "role": "researcher", **register})
        return agent

    return make
