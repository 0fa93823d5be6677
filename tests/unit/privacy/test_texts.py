"""Texts outside of entries: tasks, sessions, files, descriptions. A forget by mention reaches them as it does entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.simulate.world import unit

from reverie.akashik import Field
from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope
from reverie.core.ports import ForgetLine
from reverie.host import Host
from reverie.memory.texts import FORGOTTEN
from reverie.privacy.mentions import phrase
from reverie.protocols.anthropic.names import DREAM, STORE
from reverie.protocols.anthropic.transcripts import Transcript
from reverie.protocols.openwop.workspace import Workspace
from reverie.store.contract import Store

WORD = "Zubenelgenubi"


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host()


def bytes_with(host: Host, word: str) -> list[str]:
    """Where a word is stored: tables, or files of a SQLite database, whole."""
    store: Any = host.parts.store
    if hasattr(store, "path"):
        files = Path(store.path).parent.glob(f"{Path(store.path).name}*")
        return [file.name for file in files if file.is_file() and word.encode() in file.read_bytes()]
    url, found = store._url.replace("reverie@", "postgres@"), []
    with psycopg.connect(url) as connection:
        for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'reverie'").fetchall():
            query = psycopg.sql.SQL("SELECT * FROM reverie.{}").format(psycopg.sql.Identifier(name))
            if word in repr(connection.execute(query).fetchall()):
                found.append(str(name))
    return found


def test_what_agents_said_in_the_field(host: Host, ada: Actor) -> None:
    field = Field(tenant=ada.tenant, host=host)
    one = field.register("one", "r", authority_level=10, interests=[f"all of {WORD}"])
    other = field.register("other", "r")
    trip = {"id": "trip", "goal": f"Show {WORD} the town"}
    task = {"id": "t1", "title": f"Call {WORD}", "description": f"{WORD} waits.", "priority": "high"}
    context = {"summary": f"{WORD} is happy.", "open_questions": [f"Where is {WORD}?", "When?"]}
    pump = one.record("The pump runs at 40 bar.", **unit())
    against = [{"type": "contradicts", "target_id": pump["memory_unit_id"]}]
    conflict = other.record("The pump runs at 55 bar.", relations=against, **unit())["conflicts_detected"][0]
    one.merge(conflict, "authority", rationale=f"{WORD} said so", winner_id=pump["memory_unit_id"])

    def repeat(operation: str, payload: dict[str, Any], epoch: int = 1000) -> Any:
        one.epoch = epoch
        return one.send(operation, payload, message_id="repeated")

    asked = {"action": "create", "session": trip}, {"action": "create", "task": task, "reason": f"for {WORD}"}
    told = repeat("SESSION", asked[0]), repeat("COORDINATE", asked[1])
    passed = one.handoff(task_id="t1", to_agent="other", reason=f"{WORD} asked", context=context)["handoff"]
    assert repeat("SESSION", asked[0]) == told[0]
    assert repeat("COORDINATE", asked[1]) == told[1]
    assert one.coordinate("list")["tasks"] == [told[1]["task"]]
    preview = host.forget.forget(ada, WORD, mentions=True, preview=True)
    done = host.forget.forget(ada, WORD, mentions=True)
    assert (preview.texts, done.texts, done.forgotten) == (5, 5, 0)
    assert done.certificate
    assert bytes_with(host, WORD) == []
    left = one.coordinate("get", id="t1")["task"]
    assert (left["title"], left["description"], left["priority"]) == (FORGOTTEN, FORGOTTEN, "high")
    assert one.session("get", id="trip")["session"]["goal"] == FORGOTTEN
    answer = other.handoff("get", handoff_id=passed["id"])["handoff"]["package"]
    assert (answer["summary"], answer["open_questions"]) == (FORGOTTEN, [FORGOTTEN, "When?"])
    assert repeat("COORDINATE", asked[1])["task"]["title"] == FORGOTTEN
    assert host.audit.verify(ada).ok


def test_a_handoff_of_a_forgotten_unit_loses_what_was_said_with_it(host: Host, ada: Actor) -> None:
    field = Field(tenant=ada.tenant, host=host)
    one, other = field.register("one", "r"), field.register("other", "r")
    one.coordinate("create", id="t1", title="Load the ship")
    made = one.record("Ana wants the blue crate.", subject="ana", **unit())["memory_unit_id"]
    context = {"summary": f"The blue crate, {WORD}.", "unit_ids": [made]}
    passed = one.handoff(task_id="t1", to_agent="other", reason=f"{WORD}!", context=context)["handoff"]
    assert host.forget.forget(ada, "ana").certificate
    assert WORD not in repr(other.handoff("get", handoff_id=passed["id"]))
    assert bytes_with(host, WORD) == []


def test_files_of_the_workspace_with_their_earlier_versions(host: Host, ada: Actor) -> None:
    files = host.use(Workspace)
    for path, *versions in (
        ("now.md", f"{WORD} lives here."),
        ("once.md", f"{WORD} lives here.", "Bo lives here."),
        ("never.md", "Bo lives here.", "Cleo lives here."),
        ("deleted.md", f"{WORD} lives here.", "Bo lives here."),
    ):
        for content in versions:
            files.put(ada, path, content)
    files.delete(ada, "deleted.md")
    asked = host.forget.forget(ada, WORD, preview=True)
    assert (asked.mentioned, asked.texts) == (0, 3)
    preview = host.forget.forget(ada, WORD, mentions=True, preview=True)
    done = host.forget.forget(ada, WORD, mentions=True)
    assert (preview.texts, done.texts) == (3, 3)
    assert bytes_with(host, WORD) == []
    assert [(file.path, file.version) for file in files.files(ada)] == [("never.md", 2), ("once.md", 3)]
    assert files.get(ada, "once.md").content == "Bo lives here."
    assert files.get(ada, "never.md", version=1).content == "Bo lives here."
    assert files.put(ada, "deleted.md", "New.").version == 5
    assert host.audit.verify(ada).ok
    again = host.forget.forget(ada, WORD, mentions=True)
    assert (again.texts, again.certificate) == (0, None)


def test_descriptions_of_memory_stores_and_requests_for_dreams(host: Host, ada: Actor) -> None:
    stores, dreams = host.memory_stores, host.memory_dreams
    about = {"topic": f"all of {WORD}", "reverie.subject": "ana", "colour": "blue"}
    store = STORE + stores.create(ada, f"Notes of {WORD}", description=f"{WORD} likes tea.", metadata=about).id
    lines = f"user: {WORD} likes tea.\nuser: The launch is on April 9."
    asked = dreams.create(
        ada,
        store,
        model="m",
        distiller="extractive",
        existing=True,
        instructions=f"Keep {WORD}.",
        transcripts=[Transcript("t1", lines)],
    )
    done = host.forget.forget(ada, WORD, mentions=True)
    assert done.texts == 3
    assert bytes_with(host, WORD) == []
    left = stores.get(ada, store)
    assert (left.name, left.description) == (FORGOTTEN, "")
    assert left.metadata == {"topic": FORGOTTEN, "reverie.subject": "ana", "colour": "blue"}
    assert dreams.get(ada, DREAM + asked.id).instructions == FORGOTTEN
    assert dreams.run(ada, asked.id)
    files = [host.memories.at(ada, store, f"/{name.removeprefix('/')}") for name in ("insights",)]
    assert files == [None]
    assert host.forget.forget(ada, WORD, mentions=True, preview=True).texts == 0


def test_a_transcript_that_is_forgotten_while_it_is_dreamt_is_in_no_file(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = STORE + host.memory_stores.create(ada, "notes").id
    told = [Transcript("t1", f"user: {WORD} decided that the pier opens on 4 May.\nuser: The launch is on April 9.")]
    asked = host.memory_dreams.create(ada, store, model="m", distiller="extractive", existing=True, transcripts=told)
    plan, done = host.memory_dreams._planner.plan, []

    def planned(*arguments: Any) -> Any:
        made = plan(*arguments)
        if not done:
            done.append(host.forget.forget(ada, WORD, mentions=True))
        return made

    monkeypatch.setattr(host.memory_dreams._planner, "plan", planned)
    assert host.memory_dreams.run(ada, asked.id)
    assert done[0].certificate
    assert bytes_with(host, WORD) == []


def test_a_forget_in_one_memory_and_a_label_leave_texts_alone(host: Host, ada: Actor) -> None:
    host.use(Workspace).put(ada, "now.md", f"{WORD} lives here.")
    host.entries.put(ada, "bot", [Draft(f"{WORD} likes tea.", subject=WORD)])
    assert host.forget.forget(ada, WORD, ref="bot", mentions=True).texts == 0
    assert host.forget.forget(ada, WORD).certificate is None
    assert host.use(Workspace).get(ada, "now.md").content == f"{WORD} lives here."


def test_the_ledger_reaches_texts_that_were_there(
    make_host: Callable[..., Host], make_store: Callable[..., Store], ada: Actor
) -> None:
    """After a restore: by the hash of the words alone, and only what was written before the forget."""
    host = make_host(store=make_store())
    files = host.use(Workspace)
    files.put(ada, "before.md", f"{WORD} lives here.")
    at = host.parts.clock.now()
    host.parts.clock.advance(1000)  # type: ignore[attr-defined]
    files.put(ada, "later.md", f"{WORD} lives here.")
    words = host.parts.store.read(Scope(ada.tenant), lambda tx: phrase(WORD).hash(tx.log_key()))
    line = ForgetLine(ada.tenant, "0" * 32, None, at, True, words, 1)
    assert host.forget.again(ada, [line]) == 1
    assert [file.path for file in files.files(ada)] == ["later.md"]
