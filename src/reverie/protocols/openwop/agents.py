"""Agents: manifests installed for one tenant or for the whole host.

Only the fields of an inventory entry are stored: never a prompt, a handoff schema or a credential.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Scope
from reverie.core.errors import Invalid, NotFound, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.query import each
from reverie.memory.policy import RuleBook, Rules
from reverie.protocols.openwop.capabilities import DURABILITY, lacking, unmet
from reverie.redact import KnownSecrets, Redactor
from reverie.services import Services
from reverie.store.contract import ControlTx, ReadTx, WriteTx

AGENT_SPACE = "agent"
HOST_AGENTS = "agents"
"""The host-wide setting with the agents installed for every tenant."""
MAX_AGENTS = 1000
MAX_REQUIRED = 100
MAX_MANIFEST_BYTES = 1_048_576
SHAPE = ("scratchpad", "conversation", "longTerm")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,255}")
_KEY = re.compile(r"(?=.{1,256}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_PAGE = 500


class Agent(Struct, frozen=True, omit_defaults=True):
    """An installed agent: the fields that an inventory may show."""

    id: str
    persona: str
    label: str
    model_class: str
    pack: str
    pack_version: str
    tools: tuple[str, ...] = ()
    has_handoff: bool = False
    description: str | None = None
    shape: Mapping[str, bool] | None = None
    confidence: float | None = None
    scope: str = "tenant"
    requires: tuple[str, ...] = ()
    """Capabilities it needs, as dotted keys of the discovery document."""


class Agents:
    """The inventory. A tenant sees its own agents and the host's; where both have the same id, its own."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules
        self._folder = {agent.id: agent for agent in read_folder(parts.agents_folder, parts.redactor)}

    def all(self, actor: Actor) -> list[Agent]:
        """Every agent the caller may see, sorted by id."""
        actor.require(Right.READ)

        def body(tx: ReadTx) -> list[Agent]:
            found = each(lambda cursor: tx.documents(AGENT_SPACE, limit=_PAGE, cursor=cursor))
            return [msgspec.json.decode(d.body or b"{}", type=Agent) for d in found]

        own = {agent.id: agent for agent in self._parts.store.read(Scope(actor.tenant), body)}
        seen = {**self._folder, **self.installed_for_all(), **own}
        if not seen and self._parts.agent_fixtures:
            from reverie.protocols.openwop.conformance.agents import fixture_agents

            seen = {agent.id: agent for agent in fixture_agents(self._parts.redactor)}
        return [seen[agent_id] for agent_id in sorted(seen)]

    def get(self, actor: Actor, agent_id: str) -> Agent:
        """One agent. Raises NotFound, also for an agent of another tenant."""
        found = next((agent for agent in self.all(actor) if agent.id == agent_id), None)
        if found is None:
            raise NotFound("There is no such agent here. `reverie agents list` or GET /v1/agents lists them.")
        return found

    def install(self, actor: Actor, manifest: Any) -> list[Agent]:
        """Install a manifest (one agent or a pack) for the caller's tenant: all of its agents or none."""
        actor.require(Right.ADMIN)

        def prepare(rules: Rules) -> Any:
            agents = read_manifest(manifest, self._parts.redactor, rules.known)

            def body(tx: WriteTx) -> list[Agent]:
                for agent in agents:
                    data = {"space": AGENT_SPACE, "key": agent.id}
                    seq = tx.append(NewEvent("document.saved", "AGENT", actor.id, data=data))
                    tx.save(AGENT_SPACE, agent.id, msgspec.json.encode(agent), seq=seq)
                if len(tx.documents(AGENT_SPACE, limit=MAX_AGENTS + 1).items) > MAX_AGENTS:
                    raise Invalid(f"A tenant has at most {MAX_AGENTS} agents.")
                return agents

            return body

        done: list[Agent] = self._rules.guard(actor.tenant, prepare, Scope(actor.tenant))
        return done

    def remove(self, actor: Actor, agent_id: str) -> None:
        """Remove an agent of the caller's tenant."""
        actor.require(Right.ADMIN)
        if self._parts.read_only:
            raise ReadOnly()

        def body(tx: WriteTx) -> None:
            if tx.load(AGENT_SPACE, agent_id) is None:
                raise NotFound("This tenant has no agent with that id.")
            data = {"space": AGENT_SPACE, "key": agent_id}
            seq = tx.append(NewEvent("document.dropped", "AGENT", actor.id, data=data))
            tx.drop(AGENT_SPACE, agent_id, seq=seq)

        self._parts.store.write(Scope(actor.tenant), body)

    # for every tenant: called by the command line alone, never by an interface that a tenant can reach

    def installed_for_all(self) -> dict[str, Agent]:
        """Agents installed for the whole host, by id."""
        return self._parts.store.control(_host_agents)

    def install_for_all(self, manifest: Any) -> list[Agent]:
        """Install a manifest for every tenant."""
        agents = [
            msgspec.structs.replace(agent, scope="host") for agent in read_manifest(manifest, self._parts.redactor)
        ]
        self._change(lambda held: {**held, **{agent.id: agent for agent in agents}})
        return agents

    def remove_for_all(self, agent_id: str) -> None:
        """Remove an agent from the whole host."""
        if agent_id not in self.installed_for_all():
            raise NotFound("The host has no agent with that id.")
        self._change(lambda held: {name: agent for name, agent in held.items() if name != agent_id})

    def _change(self, changed: Any) -> None:
        if self._parts.read_only:
            raise ReadOnly()

        def body(tx: ControlTx) -> None:
            held: dict[str, Agent] = changed(_host_agents(tx))
            if len(held) > MAX_AGENTS:
                raise Invalid(f"A host has at most {MAX_AGENTS} agents.")
            tx.set_setting(HOST_AGENTS, msgspec.json.encode(list(held.values())))

        self._parts.store.control(body, write=True)


def _host_agents(tx: ControlTx) -> dict[str, Agent]:
    stored = tx.setting(HOST_AGENTS)
    return {agent.id: agent for agent in msgspec.json.decode(stored, type=list[Agent])} if stored else {}


def inventory_entry(agent: Agent, families: Mapping[str, Any], *, durability: str = DURABILITY) -> dict[str, Any]:
    """The inventory entry of an agent, with the capabilities and memory dimensions that this host lacks for it.

    `durability`: the spelling of the long-term durability dimension.
    """
    document: dict[str, Any] = {
        "agentId": agent.id,
        "persona": agent.persona,
        "label": agent.label,
        "modelClass": agent.model_class,
        "packName": agent.pack,
        "packVersion": agent.pack_version,
        "toolAllowlist": list(agent.tools),
        "hasHandoffSchemas": agent.has_handoff,
    }
    if agent.description is not None:
        document["description"] = agent.description
    if agent.confidence is not None:
        document["confidenceThreshold"] = agent.confidence
    if agent.shape is not None:
        document["memoryShape"] = dict(agent.shape)
    unadvertised = lacking(agent.requires, families)
    if unadvertised:
        document["degraded"] = unadvertised
    missing = unmet(agent.shape or {}, families)
    if missing:
        document["memoryDegraded"] = True
        document["degradedMemoryDimensions"] = [durability if name == DURABILITY else name for name in missing]
    return document


def read_manifest(manifest: Any, redactor: Redactor, known: KnownSecrets = KnownSecrets.EMPTY) -> list[Agent]:
    """Parse a manifest: one agent, or a pack `{name, version, agents: [...]}`. Raises Invalid."""
    if not isinstance(manifest, Mapping):
        raise Invalid("A manifest is a JSON object.", pointer="")
    many = manifest.get("agents")
    if many is None:
        many = [manifest]
    if not isinstance(many, list) or not 0 < len(many) <= MAX_AGENTS:
        raise Invalid(f"A pack has 1 to {MAX_AGENTS} agents.", pointer="/agents")
    agents = []
    for number, item in enumerate(many):
        if not isinstance(item, Mapping):
            raise Invalid("An agent is a JSON object.", pointer=f"/agents/{number}")
        agents.append(_agent(item, manifest, redactor, known))
    if len({agent.id for agent in agents}) < len(agents):
        raise Invalid("Two agents of this pack have the same agentId.", pointer="/agents")
    return agents


def _agent(item: Mapping[str, Any], pack: Mapping[str, Any], redactor: Redactor, known: KnownSecrets) -> Agent:
    def text(name: str, *others: Any, most: int = 256, required: bool = True) -> str | None:
        value = next((found for found in (item.get(name), *others) if found is not None), None)
        if value is None and not required:
            return None
        if not isinstance(value, str) or not value.strip() or len(value) > most or not value.isprintable():
            raise Invalid(f"'{name}' is a string of 1 to {most} printable characters.", pointer=f"/{name}")
        return redactor.text(value, known).text

    agent_id = item.get("agentId", item.get("id"))
    if not isinstance(agent_id, str) or not _ID.fullmatch(agent_id) or redactor.text(agent_id, known).text != agent_id:
        raise Invalid("'agentId' is 1 to 256 letters, digits and . _ : @ / -", pointer="/agentId")
    persona = text("persona", item.get("name"))
    tools = item.get("toolAllowlist", [])
    if not isinstance(tools, list) or len(tools) > 1000 or any(not isinstance(t, str) or len(t) > 256 for t in tools):
        raise Invalid("'toolAllowlist' is a list of names.", pointer="/toolAllowlist")
    return Agent(
        id=agent_id,
        persona=str(persona),
        label=str(text("label", persona)),
        model_class=str(text("modelClass")),
        pack=str(text("packName", pack.get("name"), agent_id)),
        pack_version=str(text("packVersion", pack.get("version"), "0.0.0")),
        tools=tuple(redactor.text(tool, known).text for tool in tools),
        has_handoff=bool(item.get("handoff") or item.get("handoffSchemas") or item.get("hasHandoffSchemas")),
        description=text("description", most=4096, required=False),
        shape=_shape(item.get("memoryShape")),
        confidence=_confidence(item),
        requires=_requires(item.get("requiresCapabilities"), redactor, known),
    )


def _requires(value: Any, redactor: Redactor, known: KnownSecrets) -> tuple[str, ...]:
    if value is None:
        return ()
    fault = Invalid("'requiresCapabilities' is a list of dotted names, each once.", pointer="/requiresCapabilities")
    if not isinstance(value, list) or len(value) > MAX_REQUIRED:
        raise fault
    for key in value:
        if not isinstance(key, str) or not _KEY.fullmatch(key) or redactor.text(key, known).text != key:
            raise fault
    if len(set(value)) < len(value):
        raise fault
    return tuple(value)


def _shape(value: Any) -> dict[str, bool] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or any(not isinstance(value.get(name, False), bool) for name in SHAPE):
        raise Invalid(f"'memoryShape' has the flags {', '.join(SHAPE)}, true or false.", pointer="/memoryShape")
    return {name: value[name] for name in SHAPE if name in value}


def _confidence(item: Mapping[str, Any]) -> float | None:
    nested = item.get("confidence")
    value = item.get("confidenceThreshold", nested.get("defaultThreshold") if isinstance(nested, Mapping) else None)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Invalid("'confidenceThreshold' is 0 to 1.", pointer="/confidenceThreshold")
    return float(value)


def read_folder(folder: str, redactor: Redactor) -> Iterable[Agent]:
    """Read the agents of every `*.json` in a folder, for the whole host. Raises Invalid, naming the bad file."""
    results: dict[str, Agent] = {}
    if not folder:
        return ()
    try:
        for path in sorted(path for path in Path(folder).expanduser().iterdir() if path.match("*.json")):
            try:
                for agent in read_manifest(orjson.loads(path.read_bytes()), redactor):
                    results[agent.id] = msgspec.structs.replace(agent, scope="host")
            except (Invalid, ValueError) as fault:
                why = fault.message if isinstance(fault, Invalid) else "it is not JSON"
                raise Invalid(f"The agent manifest {path.name} cannot be used: {why}") from None
    except OSError as fault:
        raise Invalid(f"The folder of agent manifests cannot be read: {fault.strerror}.") from None
    return results.values()
