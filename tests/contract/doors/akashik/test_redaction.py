"""Whatever an agent sends, no secret is stored, shown or logged."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import Any

import pytest

from reverie.protocols.akashik.field import Field
from reverie.protocols.akashik.operations.subscriptions import find
from reverie.protocols.akashik.tickets import redeem

from .conftest import Agent, unit

_LETTERS = string.ascii_letters + string.digits


def secret(number: int) -> str:
    """Something shaped like a token of a source host; made up here."""
    chosen = random.Random(number)
    return "gh" + "p_" + "".join(chosen.choices(_LETTERS, k=36))


def everything(agent: Agent, tmp: Any = None) -> str:
    """All that the door shows."""
    paths = ("field/log?limit=10000", "agents", "conflicts", "field/status")
    return "".join(agent.caller.get(f"/akashik/v1/{path}").text for path in paths)


def test_no_member_of_any_message_keeps_a_secret(
    make_server: Callable[..., Any], tmp_path: Any, join: Callable[..., Agent]
) -> None:
    server = make_server(data=tmp_path)
    caller = server.caller()
    hidden = [secret(number) for number in range(40)]
    at = iter(hidden)
    agent = Agent(caller, f"agent {next(at)}", f"session {next(at)}")
    seen = str(agent("REGISTER", {"id": agent.id, "role": f"role {next(at)}", "interests": [f"i {next(at)}"]}))
    other = join(caller, session=agent.session, authority_level=10)
    intent = {"purpose": f"why {next(at)}", "task_id": f"task {next(at)}", "question": f"what {next(at)}"}
    confidence = {
        "score": 0.5,
        "reasoning": f"because {next(at)}",
        "evidence": [f"e {next(at)}"],
        "assumptions": [f"a {next(at)}"],
    }
    relations = [{"type": "supports", "target_id": f"t {next(at)}", "description": f"d {next(at)}"}]
    made = agent.record(f"The token is {next(at)} today.", intent=intent, confidence=confidence, relations=relations)
    seen += str(agent.unit(made)) + str(other.attune(context_hint=f"hint {next(at)}", scope={"role": f"r {next(at)}"}))
    task = {
        "id": f"task {next(at)}",
        "title": f"title {next(at)}",
        "description": f"d {next(at)}",
        "priority": f"p {next(at)}",
    }
    seen += str(agent("COORDINATE", {"action": "create", "task": task, "reason": f"r {next(at)}"}))
    session = {"id": f"s {next(at)}", "goal": f"g {next(at)}", "members": [f"m {next(at)}"]}
    session["policy"] = {"role_rules": [{"role": f"r {next(at)}", "deny_types": ["question"]}]}
    seen += str(agent("SESSION", {"action": "create", "session": session}))
    context = {"summary": f"s {next(at)}", "open_questions": [f"q {next(at)}"]}
    offer = {"action": "initiate", "task_id": f"t {next(at)}", "to_agent": other.id, "reason": f"r {next(at)}"}
    seen += str(agent("HANDOFF", {**offer, "context": context}))
    seen += agent.send("RECORD", {"intent": {"purpose": "p"}, "type": f"t {next(at)}", "content": "c"}).text
    seen += agent.send("REGISTER", {"id": agent.id, "role": "r", "required_operations": [f"X {next(at)}"]}).text
    seen += everything(agent)
    assert made in seen
    server.host.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for value in hidden:
        assert value not in seen
        assert value.encode() not in stored


def test_a_secret_is_gone_before_text_is_cut(join: Callable[..., Agent]) -> None:
    writer = join()
    reader = join(writer.caller)
    value = secret(99)
    writer.record("word " * 20 + value + " and more words after it. " * 10)
    for budget in range(18, 60, 3):
        for form in ("full", "summary"):
            shown = str(reader.attune(scope={"max_tokens": budget}, format=form))
            assert value[:12] not in shown


def test_an_agent_whose_name_was_redacted_can_still_speak(server: Any) -> None:
    agent = Agent(server.caller(), f"bot {secret(7)}")
    assert agent("REGISTER", {"id": agent.id, "role": "r"})["status"] == "registered"
    made = agent.record("x")
    assert agent.seen(scope={"include_own": True}) == [made]
    assert agent("DEREGISTER", {"agent_id": agent.id})["status"] == "ok"


def test_an_agent_whose_name_was_redacted_is_notified(make_server: Callable[..., Any], tmp_path: Any) -> None:
    server = make_server(data=tmp_path)
    value = secret(8)
    agent = Agent(server.caller(), f"bot {value}")
    agent("REGISTER", {"id": agent.id, "role": "r"})
    wish = {"action": "subscribe", "subscription": {"id": "s", "events": ["memory.recorded"]}}
    services = server.host.use(Field).services
    ticket = agent("SUBSCRIBE", wish)["sse_url"].partition("ticket=")[2]
    tenant, subscription, _ = redeem(services, ticket)
    assert (tenant, subscription.id) == (agent.caller.tenant, "s")
    actor = server.host.keys.authenticate(agent.caller.key, door="akashik")
    assert find(services, actor, agent.id, "s") == subscription
    agent("SUBSCRIBE", wish)  # its ticket is never used
    server.host.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert value.encode() not in stored


def test_names_that_look_like_secrets_stay_apart(server: Any, join: Callable[..., Agent]) -> None:
    caller = server.caller()
    names = [f"sess_{secret(number)[4:].lower()}" for number in (11, 12)]
    writer, reader = join(caller), join(caller)
    ids = [writer.inside(name).record(f"in session {at}") for at, name in enumerate(names)]
    for name, made in zip(names, ids, strict=True):
        assert reader.inside(name).seen() == [made]
        shown = reader("SESSION", {"action": "get", "session": {"id": name}})["session"]["id"]
        assert name not in shown
        found = reader.caller.get(f"/akashik/v1/field/log?session_id={name}").json()["events"]
        assert [event["memory_unit_id"] for event in found if event["type"] == "memory.recorded"] == [made]
    agents = [Agent(caller, secret(number)) for number in (13, 14)]
    for agent in agents:
        assert agent("REGISTER", {"id": agent.id, "role": "r"})["status"] == "registered"
    private = {"action": "create", "session": {"id": names[0] + "x", "members": [agents[0].id]}}
    inside = writer("SESSION", private)["session"]["id"]
    assert inside not in (names[0], names[0] + "x")
    kept = writer.inside(names[0] + "x").record("for one of them")
    assert agents[0].inside(names[0] + "x").seen() == [kept]
    agents[1].inside(names[0] + "x").refused("NOT_A_MEMBER", "ATTUNE", {"scope": {"role": "r", "max_units": 1}})


def test_a_registered_secret_is_replaced_by_value(server: Any, join: Callable[..., Agent]) -> None:
    agent = join()
    word = "melancholy-hippopotamus"
    actor = server.host.keys.authenticate(agent.caller.key, door="akashik")
    server.host.rules.register(actor, "pet", word)
    made = agent.record(f"My pet is {word}.", intent={"purpose": f"about {word}"})
    assert word not in str(agent.unit(made))
    assert "My pet is" in agent.unit(made)["content"]


@pytest.mark.parametrize("path", ["units/{}", "field/log?agent_id={}", "conflicts?session_id={}", "{}"])
def test_a_secret_in_an_address_is_not_said_back(join: Callable[..., Agent], path: str) -> None:
    caller = join().caller
    value = secret(5)
    assert value not in caller.get("/akashik/v1/" + path.format(value)).text


def test_findings_are_counted_in_the_log(join: Callable[..., Agent]) -> None:
    agent = join()
    agent("RECORD", unit(f"token {secret(3)}"))
    event = agent.caller.get("/akashik/v1/field/log").json()["events"][-1]
    assert sum(event["data"]["redacted"].values()) >= 1
