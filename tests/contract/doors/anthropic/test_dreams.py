"""Dreams: asked for with the client, dreamt by a worker, canceled, archived, undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from anthropic import Anthropic, APIStatusError
from tests.contract.doors.anthropic.conftest import Live, refused
from tests.contract.doors.conftest import Caller
from tests.stores import on_one_store

from reverie.core.entry import Scope
from reverie.jobs.tasks import Tasks
from reverie.memory.files import versions
from reverie.protocols.anthropic import dreams as engine
from reverie.protocols.anthropic.dream_records import SPACE

MODEL = "reverie-extractive"
MIRA = "# Mira\n- Mira drinks oolong tea in the afternoon.\n- Mira lives in Porto.\n"
NOTES = "Mira drinks oolong tea in the afternoon.\nThe launch is on March 3.\nThe door code changes every month."
TALK = [
    {"role": "user", "content": "The launch is on April 9 now. Tomas joined the design team on Monday."},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Noted."}]},
]


@pytest.fixture
def tenant(live: Live) -> str:
    return live.key()[0]


@pytest.fixture
def client(live: Live, tenant: str) -> Anthropic:
    return live.client(tenant)


@pytest.fixture
def store(client: Anthropic) -> str:
    """A store with two files that say one thing twice."""
    made = client.beta.memory_stores.create(name="notes", description="d", metadata={"a": "1"}).id
    client.beta.memory_stores.memories.create(made, path="/people/mira.md", content=MIRA)
    client.beta.memory_stores.memories.create(made, path="/notes.md", content=NOTES)
    return made


@pytest.fixture
def work(live: Live, tenant: str) -> Callable[[], int]:
    """`work()`: let a worker look at the tenant once; how many dreams ended."""
    tasks = Tasks(live.server.host)

    def look() -> int:
        jobs, _ = tasks.look(tenant)
        return sum(int(tasks.run(job).result["dreams"]) for job in jobs if job.name == "memory_dreams")

    return look


def ask(client: Anthropic, store: str, *, sessions: list[str] | None = None, **how: Any) -> Any:
    inputs: Any = [{"type": "memory_store", "memory_store_id": store}]
    if sessions is not None:
        inputs.append({"type": "sessions", "session_ids": sessions})
    reverie = how.pop("reverie", None)
    body = {"extra_body": {"reverie": reverie}} if reverie else {}
    return client.beta.dreams.create(inputs=inputs, model=how.pop("model", MODEL), **body, **how)


def texts(client: Anthropic, store: str) -> dict[str, str]:
    found = client.beta.memory_stores.memories.list(store, view="full")
    return {str(item.path): str(getattr(item, "content", "")) for item in found}


def update(store: str) -> Any:
    return {"type": "update_existing", "memory_store_id": store}


def test_a_dream_has_every_field(client: Anthropic, store: str) -> None:
    dream = ask(client, store, instructions="Keep names.")
    plain = dream.to_dict(mode="json")
    assert plain == {
        "id": dream.id,
        "type": "dream",
        "status": "pending",
        "inputs": [{"type": "memory_store", "memory_store_id": store}],
        "outputs": [],
        "model": {"id": MODEL, "speed": "standard"},
        "instructions": "Keep names.",
        "output_behavior": {"type": "create_new"},
        "session_id": None,
        "created_at": plain["created_at"],
        "ended_at": None,
        "archived_at": None,
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
        "error": None,
    }
    assert dream.id.startswith("drm_")
    assert client.beta.dreams.retrieve(dream.id) == dream


CITIES = ("Porto", "Oslo", "Lima", "Turin", "Accra", "Quito", "Ghent", "Hanoi", "Perth", "Cairo", "Malmo", "Kyoto")


@pytest.mark.parametrize("taken", [False, True])
def test_what_is_too_long_for_one_file_is_split(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int], taken: bool
) -> None:
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"max_memory_bytes": 250})
    memories = client.beta.memory_stores.memories
    if taken:
        memories.create(store, path="/insights", content="The word insights is a file here.")
    for part in (CITIES[:9], CITIES[9:]):
        talk = "\n".join(f"The office in {city} opens on March {day}." for day, city in enumerate(part, 1))
        dream = ask(client, store, reverie={"transcripts": [{"id": "t", "text": talk}]}, output_behavior=update(store))
        assert work() == 1
        done = client.beta.dreams.retrieve(dream.id)
        assert done.status == "completed", done.error
    found = {path: text for path, text in texts(client, store).items() if path.startswith("/insights")}
    assert all(city in "".join(found.values()) for city in CITIES)
    assert len(found) > 2
    assert max(len(text.encode()) for text in found.values()) <= 250
    assert not any(other.startswith(f"{path}/") for path in found for other in found)


def test_an_excluded_file_of_the_day_stays_as_it_is(client: Anthropic, store: str, work: Callable[[], int]) -> None:
    def dream(text: str, *exclude: str) -> dict[str, str]:
        reverie = {"transcripts": [{"id": "t", "text": text}], "exclude": exclude}
        ask(client, store, reverie=reverie, output_behavior=update(store))
        assert work() == 1
        return {path: text for path, text in texts(client, store).items() if path.startswith("/insights/")}

    before = dream("Tomas joined the design team on Monday.")
    (path,) = before
    after = dream("Ines moved to the Lisbon office in June.", path)
    assert after[path] == before[path]
    assert any("Ines" in text for text in after.values())


@pytest.mark.parametrize("field", ["model", "transcripts", "exclude"])
def test_names_that_hold_a_secret_are_refused(make_live: Callable[..., Live], github_token: str, field: str) -> None:
    client = make_live(anthropic_unknown_model="extractive").client()
    store = client.beta.memory_stores.create(name="notes").id
    how: dict[str, Any] = {
        "model": {"model": github_token},
        "transcripts": {"reverie": {"transcripts": [{"id": github_token, "text": "Mira moved to Porto in May."}]}},
        "exclude": {"reverie": {"exclude": [f"/{github_token}"]}},
    }
    fault = refused(lambda: ask(client, store, **how[field]), 400)
    assert github_token not in fault.message
    assert client.beta.dreams.list().data == []


def test_a_new_store_gets_the_result_and_the_input_stays(
    client: Anthropic, store: str, work: Callable[[], int]
) -> None:
    before = texts(client, store)
    dream = ask(client, store, reverie={"transcripts": [{"id": "t1", "messages": TALK}]})
    assert work() == 1
    done = client.beta.dreams.retrieve(dream.id)
    assert done.status == "completed", done.error
    assert done.ended_at is not None
    assert done.session_id is not None
    assert done.session_id.startswith("sesn_")
    output = done.outputs[0].memory_store_id
    assert output not in (None, store)
    made = client.beta.memory_stores.retrieve(output)
    assert (made.name, made.description) == ("notes (dream)", "d")
    assert made.metadata is not None
    assert made.metadata["reverie.dream"] == dream.id[4:]
    assert texts(client, store) == before
    after = texts(client, output)
    everything = "\n".join(after.values())
    assert everything.count("oolong") == 1
    assert "April 9" in after["/notes.md"]
    assert "March 3" not in everything
    assert "The door code changes every month." in after["/notes.md"]
    insights = [path for path in after if path.startswith("/insights/")]
    assert len(insights) == 1
    assert "Tomas" in after[insights[0]]
    report: Any = done.to_dict()["reverie"]
    assert report["distiller"] == "extractive"
    assert report["files"]["created"] == 1
    assert (report["duplicates"], report["outdated"]) == (1, 1)
    assert report["instructions_applied"] is False
    assert report["transcripts"][0]["id"] == "t1"
    rows: Any = list(client.beta.memory_stores.memory_versions.list(output))
    assert {row.created_by.session_id for row in rows} == {done.session_id}


def test_the_result_can_go_into_the_input_and_be_undone(
    live: Live, client: Anthropic, store: str, work: Callable[[], int]
) -> None:
    before = texts(client, store)
    ids = {str(item.path): getattr(item, "id", "") for item in client.beta.memory_stores.memories.list(store)}
    dream = ask(
        client,
        store,
        output_behavior=update(store),
        reverie={"transcripts": [{"id": "t1", "text": "The launch is on April 9 now."}]},
    )
    for call in (client.beta.memory_stores.archive, client.beta.memory_stores.delete):
        fault = refused(lambda call=call: call(store), 400)  # type: ignore[misc]
        assert fault.error_code == "memory_store_in_use"
    again = refused(lambda: ask(client, store, output_behavior=update(store)), 409, "conflict_error")
    assert "x-should-retry" not in again.response.headers
    work()
    done = client.beta.dreams.retrieve(dream.id)
    assert done.status == "completed"
    assert done.outputs[0].memory_store_id == store
    assert "April 9" in texts(client, store)["/notes.md"]
    now = {str(item.path): getattr(item, "id", "") for item in client.beta.memory_stores.memories.list(store)}
    assert now["/notes.md"] == ids["/notes.md"]
    diff: Any = client.get(f"/v1/dreams/{dream.id}/reverie/diff", cast_to=object)
    changed = {one["path"]: one for one in diff["data"]}
    assert "The launch is on March 3." in changed["/notes.md"]["removed"]
    assert changed["/notes.md"]["before"] == NOTES
    undone: Any = client.post(f"/v1/dreams/{dream.id}/reverie/undo", cast_to=object)
    assert (undone["status"], undone["reverie"]["state"]) == ("completed", "undone")
    assert texts(client, store) == before
    fault = refused(lambda: client.post(f"/v1/dreams/{dream.id}/reverie/undo", cast_to=object), 409, "conflict_error")
    assert fault.error_code == "not_undoable"
    assert live.server.host.audit.verify(live.server.host.system_actor("default")).ok


def test_a_dream_has_a_report_links_diff_and_undo_like_any_other(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int]
) -> None:
    before = texts(client, store)
    dream = ask(client, store, output_behavior=update(store))
    assert work() == 1
    after = texts(client, store)
    assert after != before
    _, key = live.key(tenant)
    own = f"/v1/host/reverie/dreams/{dream.id[4:]}"
    report = live.send("GET", own, key).json()
    assert (report["ref"], report["trigger"], report["state"]) == (store, "anthropic", "done")
    assert report["output_id"] is None
    assert len(report["outputs"]) == len(report["sources"]) == 1
    memory = next(
        m for m in client.beta.memory_stores.memories.list(store) if before[str(m.path)] != after[str(m.path)]
    )
    why = live.send("GET", f"/v1/memory_stores/{store}/memories/{memory.id}/reverie/why", key).json()
    assert [source["content"] for source in why["sources"]] == [before[str(memory.path)]]
    diff = live.send("GET", f"{own}/diff", key).json()
    assert list(diff["texts"].values()) == [before[str(memory.path)]]
    assert diff["shortened"] == [report["sources"][0]["id"]]
    listed = live.send("GET", "/v1/host/reverie/dreams", key).json()["dreams"]
    assert [one["id"] for one in listed] == [dream.id[4:]]
    undone = live.send("POST", f"{own}/undo", key)
    assert (undone.status_code, undone.json()["state"]) == (200, "undone")
    assert texts(client, store) == before
    shown: Any = client.beta.dreams.retrieve(dream.id).to_dict()["reverie"]
    assert shown["state"] == "undone"
    assert live.send("POST", f"{own}/undo", key).status_code == 409


def test_a_mention_that_a_dream_took_out_does_not_cost_the_file(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int]
) -> None:
    talk = [{"id": "t", "text": "The launch is on April 9 now."}]
    ask(client, store, output_behavior=update(store), reverie={"transcripts": talk})
    assert work() == 1
    after = texts(client, store)
    assert "March 3" not in str(after)
    _, key = live.key(tenant)
    live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "March 3", "mentions": True})
    assert texts(client, store) == after


def test_a_new_store_is_deleted_by_undo_unless_it_changed(
    client: Anthropic, store: str, work: Callable[[], int]
) -> None:
    outputs = []
    dreams = [ask(client, store) for _ in range(2)]
    work()
    for dream in dreams:
        outputs.append(client.beta.dreams.retrieve(dream.id).outputs[0].memory_store_id)
    client.beta.memory_stores.memories.create(outputs[0], path="/mine", content="x")
    refused(lambda: client.post(f"/v1/dreams/{dreams[0].id}/reverie/undo", cast_to=object), 409, "conflict_error")
    key: Any = {"headers": {"Idempotency-Key": "undo"}}
    undone: list[Any] = [
        client.post(f"/v1/dreams/{dreams[1].id}/reverie/undo", cast_to=object, options=key) for _ in range(2)
    ]
    assert [dream["reverie"]["state"] for dream in undone] == ["undone", "undone"]
    refused(lambda: client.beta.memory_stores.retrieve(outputs[1]), 404, "not_found_error")
    refused(lambda: client.post(f"/v1/dreams/{dreams[1].id}/reverie/undo", cast_to=object), 409, "conflict_error")
    assert texts(client, store)


def test_a_store_that_cannot_be_made_smaller_is_completed_unchanged(client: Anthropic, work: Callable[[], int]) -> None:
    store = client.beta.memory_stores.create(name="a").id
    client.beta.memory_stores.memories.create(store, path="/a", content="Only one thing is said here.")
    dream = ask(client, store)
    work()
    done = client.beta.dreams.retrieve(dream.id)
    assert done.status == "completed"
    report: Any = done.to_dict()["reverie"]
    assert report["unchanged"] is True
    assert texts(client, done.outputs[0].memory_store_id) == texts(client, store)


def test_a_file_whose_other_lines_are_too_short_to_compare_stays(client: Anthropic, work: Callable[[], int]) -> None:
    store = client.beta.memory_stores.create(name="a").id
    said = "# Rounds\n\nThe lamp in the east tower is lit at dusk.\n"
    for name, rest in (("a", "Wick: 7.\n"), ("b", "```\nmake lamp\n```\n"), ("c", "")):
        client.beta.memory_stores.memories.create(store, path=f"/{name}.md", content=said + rest)
    client.beta.memory_stores.memories.create(store, path="/d.md", content=said)
    dream = ask(client, store)
    work()
    left = texts(client, client.beta.dreams.retrieve(dream.id).outputs[0].memory_store_id)
    assert "Wick: 7." in left["/a.md"]
    assert "make lamp" in left["/b.md"]
    assert len(left) == 3, "a heading alone is no file"
    assert sum("east tower" in text for text in left.values()) == 1


@on_one_store
@pytest.mark.parametrize(
    "body",
    [
        {"inputs": []},
        {"inputs": [{"type": "sessions", "session_ids": ["ref:x"]}]},
        {"inputs": "two"},
        {"inputs": "sessions twice"},
        {"inputs": "duplicates"},
        {"inputs": "empty"},
        {"inputs": "many"},
        {"model": {"id": MODEL, "speed": "fast"}},
        {"model": ""},
        {"model": "x" * 257},
        {"model": "claude-unknown"},
        {"instructions": ""},
        {"instructions": "x" * 4097},
        {"output_behavior": {"type": "elsewhere"}},
        {"output_behavior": {"type": "update_existing", "memory_store_id": "memstore_x"}},
        {"extra": 1},
        {"reverie": {"budget": 0}},
        {"reverie": {"wait_seconds": 56}},
        {"reverie": {"colour": "red"}},
        {"reverie": {"transcripts": [{"id": "a"}]}},
    ],
)
def test_requests_that_cannot_be(client: Anthropic, store: str, body: Any) -> None:
    one = {"type": "memory_store", "memory_store_id": store}
    named = {
        "two": [one, one],
        "sessions twice": [one] + [{"type": "sessions", "session_ids": ["ref:x"]}] * 2,
        "duplicates": [one, {"type": "sessions", "session_ids": ["ref:x", "ref:x"]}],
        "empty": [one, {"type": "sessions", "session_ids": []}],
        "many": [one, {"type": "sessions", "session_ids": [f"ref:{n}" for n in range(101)]}],
    }
    if isinstance(body.get("inputs"), str):
        body = {"inputs": named[body["inputs"]]}
    whole = {"inputs": [one], "model": MODEL, **body}
    refused(lambda: client.post("/v1/dreams", cast_to=object, body=whole), 400)
    assert client.beta.dreams.list().data == []


def test_ids_in_a_body_that_are_not_there(live: Live, client: Anthropic, store: str) -> None:
    refused(lambda: ask(client, "memstore_x"), 404, "not_found_error")
    refused(lambda: ask(live.client(), store), 404, "not_found_error")
    fault = refused(lambda: ask(client, store, sessions=["sesn_none"]), 404, "not_found_error")
    assert "[0]" in fault.message
    client.beta.memory_stores.archive(store)
    refused(lambda: ask(client, store), 400)


def test_sessions_are_words_of_the_record(live: Live, tenant: str, work: Callable[[], int]) -> None:
    client = live.client(tenant)
    _, key = live.key(tenant)
    store = client.beta.memory_stores.create(name="a").id
    client.beta.memory_stores.memories.create(store, path="/plan.md", content="The launch is on March 3.")
    for text, session in (("The launch is on April 9 now.", "walk"), ("Ada leads the design review.", "talk")):
        body = {"content": text, "source": {"session": session}}
        assert live.send("POST", "/v1/host/reverie/memory/team/entries", key, json=body).status_code == 201
    first = ask(client, store, sessions=["sesn_walk"], output_behavior=update(store))
    assert first.inputs[1].session_ids == ["sesn_walk"]
    work()
    assert texts(client, store) == {"/plan.md": "The launch is on April 9 now."}
    ask(client, store, sessions=["session:talk", "ref:team"], output_behavior=update(store))
    work()
    assert "Ada leads the design review" in str(texts(client, store))


def test_cancel_and_archive(client: Anthropic, store: str, work: Callable[[], int]) -> None:
    dream = ask(client, store, output_behavior=update(store))
    refused(lambda: client.beta.dreams.archive(dream.id), 400)
    canceled = client.beta.dreams.cancel(dream.id)
    assert (canceled.status, canceled.error) == ("canceled", None)
    assert canceled.ended_at is not None
    assert client.beta.dreams.cancel(dream.id) == canceled
    assert work() == 0
    client.beta.memory_stores.update(store, name="free again")
    archived = client.beta.dreams.archive(dream.id)
    assert archived.archived_at is not None
    assert client.beta.dreams.archive(dream.id) == archived
    assert client.beta.dreams.list().data == []
    assert [one.id for one in client.beta.dreams.list(include_archived=True)] == [dream.id]
    other = ask(client, store)
    work()
    refused(lambda: client.beta.dreams.cancel(other.id), 400)


def test_what_was_canceled_never_writes(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dream = ask(client, store, output_behavior=update(store))
    before = texts(client, store)
    commit = engine.MemoryDreams._commit

    def late(self: Any, *args: Any) -> bool:
        client.beta.dreams.cancel(dream.id)
        return commit(self, *args)

    monkeypatch.setattr(engine.MemoryDreams, "_commit", late)
    assert work() == 0
    assert client.beta.dreams.retrieve(dream.id).status == "canceled"
    assert texts(client, store) == before
    assert live.server.host.runs.get(live.server.host.system_actor(tenant), dream.id[4:]).status == "cancelled"


def test_a_dream_is_a_run_with_events(live: Live, tenant: str, store: str, work: Callable[[], int]) -> None:
    key = live.key(tenant)[1]
    client = live.client(tenant)
    again = {"Idempotency-Key": "one"}
    first, second = (ask(client, store, output_behavior=update(store), extra_headers=again) for _ in range(2))
    assert first.id == second.id
    assert work() == 1
    done = client.beta.dreams.retrieve(first.id)
    run = str(done.session_id).removeprefix("sesn_")
    told = live.send("GET", "/v1/host/reverie/events?limit=100", key)
    assert told.status_code == 200
    events = [event for event in told.json()["events"] if event["data"].get("run") == run]
    types = [event["type"] for event in events]
    assert (types[0], types[-1]) == ("run.started", "run.completed")
    assert "memory.version" in types
    assert live.send("GET", f"/v1/runs/{run}/events", key).status_code == 200
    report: Any = done.to_dict()["reverie"]
    assert len(report["archive_sha256"]) == 64
    plans: Any = [ask(client, store, reverie={"dry_run": True}).to_dict()["reverie"]["estimate"] for _ in range(2)]
    assert plans[0]["archive_sha256"] == plans[1]["archive_sha256"] != report["archive_sha256"]


def test_a_run_that_was_canceled_cancels_its_dream(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = live.server.host
    dream = ask(client, store, output_behavior=update(store))
    before = texts(client, store)
    commit = engine.MemoryDreams._commit

    def late(self: Any, *args: Any) -> bool:
        host.runs.cancel(host.system_actor(tenant), dream.id[4:])
        return commit(self, *args)

    monkeypatch.setattr(engine.MemoryDreams, "_commit", late)
    work()
    assert client.beta.dreams.retrieve(dream.id).status == "canceled"
    assert texts(client, store) == before


def test_writes_during_a_dream_survive_it(
    client: Anthropic, store: str, work: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dream = ask(client, store, output_behavior=update(store))
    commit = engine.MemoryDreams._commit
    written: list[str] = []

    def late(self: Any, *args: Any) -> bool:
        if not written:
            made = client.beta.memory_stores.memories.create(
                store, path="/new.md", content="Written meanwhile, by hand."
            )
            written.append(made.id)
        return commit(self, *args)

    monkeypatch.setattr(engine.MemoryDreams, "_commit", late)
    work()
    assert client.beta.dreams.retrieve(dream.id).status == "completed"
    after = texts(client, store)
    assert after["/new.md"] == "Written meanwhile, by hand."
    assert "\n".join(after.values()).count("oolong") == 1


def test_a_store_that_never_rests_fails_the_dream(
    client: Anthropic, store: str, work: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dream = ask(client, store, output_behavior=update(store))
    commit = engine.MemoryDreams._commit
    times: list[int] = []

    def late(self: Any, *args: Any) -> bool:
        times.append(1)
        client.beta.memory_stores.memories.create(store, path=f"/n{len(times)}", content="Again something new here.")
        return commit(self, *args)

    monkeypatch.setattr(engine.MemoryDreams, "_commit", late)
    work()
    done = client.beta.dreams.retrieve(dream.id)
    assert (len(times), done.status) == (5, "failed")
    assert done.error is not None
    assert done.error.type == "internal_error"
    report: Any = done.to_dict()["reverie"]
    assert report["error_code"] == "busy"


@pytest.mark.parametrize("what", ["archive", "delete"])
def test_an_input_that_is_gone_fails_the_dream(
    client: Anthropic, store: str, work: Callable[[], int], what: str
) -> None:
    dream = ask(client, store)
    getattr(client.beta.memory_stores, what)(store)
    work()
    done = client.beta.dreams.retrieve(dream.id)
    assert done.status == "failed"
    assert done.error is not None
    assert done.error.type == "input_memory_store_unavailable"
    assert done.outputs == []


def test_a_session_that_is_gone_fails_the_dream(live: Live, tenant: str, store: str, work: Callable[[], int]) -> None:
    client = live.client(tenant)
    _, key = live.key(tenant)
    body = {"content": "Mira said hello.", "subject": "mira", "source": {"session": "s"}}
    live.send("POST", "/v1/host/reverie/memory/team/entries", key, json=body)
    dream = ask(client, store, sessions=["session:s"])
    live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "mira"})
    work()
    error = client.beta.dreams.retrieve(dream.id).error
    assert error is not None
    assert error.type == "input_session_unavailable"


def test_no_store_beyond_the_limit(live: Live, tenant: str, client: Anthropic, store: str, work: Any) -> None:
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"max_memory_stores": 1})
    dream = ask(client, store)
    work()
    error = client.beta.dreams.retrieve(dream.id).error
    assert error is not None
    assert error.type == "memory_store_org_limit_exceeded"


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(
    ("policy", "type_", "code"),
    [
        ({"max_memories_per_store": 2}, "input_memory_store_too_large", "memory_limit_exceeded"),
        ({"max_entries": 3}, "internal_error", "storage_quota_exceeded"),
        ({"max_bytes": 400}, "internal_error", "storage_quota_exceeded"),
    ],
)
def test_a_dream_without_room_for_its_files_writes_none(
    live: Live,
    tenant: str,
    client: Anthropic,
    store: str,
    work: Any,
    policy: Any,
    type_: str,
    code: str,
    existing: bool,
) -> None:
    talk = "\n".join(f"The office in {city} opens on March {day}." for day, city in enumerate(CITIES, 1))
    output = {"output_behavior": update(store)} if existing else {}
    before = texts(client, store)
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), policy)
    dream = ask(client, store, reverie={"transcripts": [{"id": "t", "text": talk}]}, **output)
    assert work() == 1
    done = client.beta.dreams.retrieve(dream.id)
    assert done.error is not None
    assert (done.status, done.error.type) == ("failed", type_)
    report: Any = done.to_dict()["reverie"]
    assert report["error_code"] == code
    assert texts(client, store) == before
    if done.outputs:
        assert texts(client, done.outputs[0].memory_store_id) == before


@pytest.mark.parametrize("policy", [{"max_memories_per_store": 1}, {"max_entries": 2}])
def test_a_store_that_is_too_large_by_now_is_not_copied(
    live: Live, tenant: str, client: Anthropic, store: str, work: Any, policy: Any
) -> None:
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), policy)
    dream = ask(client, store)
    assert work() == 1
    assert client.beta.dreams.retrieve(dream.id).status == "failed"
    assert [one.id for one in client.beta.memory_stores.list()] == [store]


def test_a_dream_that_only_removes_a_file_needs_no_room(
    live: Live, tenant: str, client: Anthropic, work: Callable[[], int]
) -> None:
    store = client.beta.memory_stores.create(name="a").id
    for path in ("/first.md", "/second.md"):
        client.beta.memory_stores.memories.create(store, path=path, content=MIRA)
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"max_entries": 2})
    dream = ask(client, store, output_behavior=update(store))
    assert work() == 1
    assert client.beta.dreams.retrieve(dream.id).status == "completed"
    assert list(texts(client, store)) == ["/second.md"]


def test_a_budget_that_cannot_hold_the_transcripts(client: Anthropic, store: str, work: Callable[[], int]) -> None:
    talk = "\n".join(f"Person {n} moved to city number {n} in the year {1900 + n}." for n in range(200))
    given = {"transcripts": [{"id": "t", "text": talk}]}
    strict = ask(client, store, reverie={**given, "budget": 400, "fit": False})
    loose = ask(client, store, reverie={**given, "budget": 400})
    work()
    done = client.beta.dreams.retrieve(strict.id)
    assert done.error is not None
    assert done.error.type == "input_memory_store_too_large"
    report: Any = done.to_dict()["reverie"]
    assert report["minimum_required"] > 400
    done = client.beta.dreams.retrieve(loose.id)
    assert done.status == "completed"
    report = done.to_dict()["reverie"]
    assert report["left_for_later"] > 0
    assert report["tokens"]["input"] + report["tokens"]["output"] <= 400


def test_a_dry_run_stores_nothing(client: Anthropic, store: str) -> None:
    before = texts(client, store)
    dry = ask(client, store, reverie={"dry_run": True, "transcripts": [{"id": "t", "messages": TALK}]})
    assert dry.id.startswith("drm_dry_")
    assert (dry.status, dry.outputs) == ("completed", [])
    estimate: Any = dry.to_dict()["reverie"]["estimate"]
    assert estimate["files"] == {"kept": 0, "modified": 2, "deleted": 0, "created": 1}
    assert client.beta.dreams.list().data == []
    assert len(client.beta.memory_stores.list().data) == 1
    assert texts(client, store) == before


def test_a_dry_run_without_a_change_is_as_the_document_says(live: Live, tenant: str, client: Anthropic) -> None:
    store = client.beta.memory_stores.create(name="empty").id
    caller = Caller(live.server.app, key=live.key(tenant)[1])  # holds every answer against the document
    inputs = [{"type": "memory_store", "memory_store_id": store}]
    answer = caller.post("/anthropic/v1/dreams", {"inputs": inputs, "model": MODEL, "reverie": {"dry_run": True}})
    assert answer.json()["reverie"]["estimate"]["unchanged"] is True


def test_pinned_and_excluded_files_stay(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int]
) -> None:
    found = {str(item.path): item for item in client.beta.memory_stores.memories.list(store)}
    head: Any = found["/people/mira.md"]
    host = live.server.host
    host.lifecycle.pin(host.system_actor(tenant), store, head.memory_version_id[7:])
    before = texts(client, store)
    ask(client, store, output_behavior=update(store))
    work()
    assert texts(client, store) == before
    host.lifecycle.unpin(host.system_actor(tenant), store, head.memory_version_id[7:])
    ask(client, store, output_behavior=update(store), reverie={"exclude": ["/people"]})
    work()
    assert texts(client, store) == before
    ask(client, store, output_behavior=update(store))
    work()
    assert texts(client, store) != before


def test_condense_makes_files_shorter(client: Anthropic, work: Callable[[], int]) -> None:
    store = client.beta.memory_stores.create(name="a").id
    lines = [f"On day {n} the build of branch number {n} went through without trouble." for n in range(40)]
    client.beta.memory_stores.memories.create(store, path="/log.md", content="\n".join(lines))
    ask(client, store, output_behavior=update(store))
    work()
    whole = texts(client, store)["/log.md"]
    ask(client, store, output_behavior=update(store), reverie={"condense": True})
    work()
    assert len(texts(client, store)["/log.md"]) < len(whole)


def test_secrets_in_instructions_and_transcripts(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int], github_token: str
) -> None:
    talk = f"The deploy token of the team is {github_token} until Friday."
    dream = ask(client, store, instructions=f"Use {github_token}", reverie={"transcripts": [{"id": "t", "text": talk}]})
    assert github_token not in dream.to_json()
    work()
    done = client.beta.dreams.retrieve(dream.id)
    assert github_token not in done.to_json() + str(texts(client, done.outputs[0].memory_store_id))


def test_forget_by_mention_reaches_the_names_that_a_dream_keeps(
    live: Live, tenant: str, client: Anthropic, work: Callable[[], int]
) -> None:
    store = client.beta.memory_stores.create(name="a").id
    for path in ("/mira/tea.md", "/mira/drinks.md"):
        client.beta.memory_stores.memories.create(store, path=path, content=MIRA)
    talk = {"id": "call with Mira", "text": "Mira drinks oolong tea in the afternoon."}
    reverie = {"transcripts": [talk], "exclude": ["/mira/private"]}
    dream = ask(client, store, output_behavior=update(store), reverie=reverie)
    assert work() == 1
    _, key = live.key(tenant)

    def shown() -> str:
        diff = live.send("GET", f"/v1/dreams/{dream.id}/reverie/diff", key).text
        kept = live.server.host.parts.store.read(Scope(tenant), lambda tx: tx.documents(SPACE).items)
        return (diff + client.beta.dreams.retrieve(dream.id).to_json() + str([one.body for one in kept])).casefold()

    assert "mira" in shown()
    live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "Mira", "mentions": True})
    assert "mira" not in shown()
    refused(lambda: client.post(f"/v1/dreams/{dream.id}/reverie/undo", cast_to=object), 409, "conflict_error")


def test_forget_reaches_the_paths_that_a_dream_keeps(
    live: Live, tenant: str, client: Anthropic, work: Callable[[], int]
) -> None:
    about: Any = {"reverie.subject": "Mira"}
    store = client.beta.memory_stores.create(name="a", metadata=about).id
    other = client.beta.memory_stores.create(name="b").id
    for name, folder in ((store, "/asthma"), (other, "/garden")):
        for path in ("tea.md", "drinks.md"):
            client.beta.memory_stores.memories.create(name, path=f"{folder}/{path}", content=NOTES)
        ask(client, name, output_behavior=update(name))
        assert work() == 1
    _, key = live.key(tenant)

    def kept() -> str:
        found = live.server.host.parts.store.read(Scope(tenant), lambda tx: tx.documents(SPACE).items)
        return str([one.body for one in found])

    assert "/asthma" in kept()
    live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "Mira"})
    assert "/asthma" not in kept()
    assert "/garden" in kept()
    assert live.server.host.audit.verify(live.server.host.system_actor(tenant)).ok


@pytest.mark.parametrize("deleted", [False, True])
def test_forget_by_mention_reaches_the_transcripts_that_versions_name(
    live: Live, tenant: str, client: Anthropic, work: Callable[[], int], deleted: bool
) -> None:
    store = client.beta.memory_stores.create(name="a").id
    client.beta.memory_stores.memories.create(store, path="/notes.md", content="The door is green.")
    talk = [{"id": "call with Vera", "text": "The launch is on April 9."}, {"id": "weekly", "text": "Tea is at four."}]
    ask(client, store, output_behavior=update(store), reverie={"transcripts": talk})
    assert work() == 1
    _, key = live.key(tenant)

    def rows() -> str:
        space = versions(store.removeprefix("memstore_"))
        kept = live.server.host.parts.store.read(Scope(tenant), lambda tx: tx.documents(space).items)
        return str([one.body for one in kept])

    assert "call with Vera" in rows()
    if deleted:
        client.beta.memory_stores.delete(store)
    live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "Vera", "mentions": True})
    assert "Vera" not in rows()
    assert "weekly" in rows()


def test_the_path_of_a_redacted_version_is_in_no_diff(client: Anthropic, work: Callable[[], int]) -> None:
    store = client.beta.memory_stores.create(name="a").id
    for path in ("/first.md", "/second.md"):
        client.beta.memory_stores.memories.create(store, path=path, content=MIRA)
    dream = ask(client, store, output_behavior=update(store))
    assert work() == 1

    def diff() -> list[dict[str, Any]]:
        answer: Any = client.get(f"/v1/dreams/{dream.id}/reverie/diff", cast_to=object)
        return list(answer["data"])

    (change,) = diff()
    assert (change["path"], change["operation"]) == ("/first.md", "deleted")
    client.beta.memory_stores.memory_versions.redact(change["version_before"], memory_store_id=store)
    assert [one["path"] for one in diff()] == [""]


def test_forget_reaches_what_a_dream_made_of_a_session(
    live: Live, tenant: str, store: str, work: Callable[[], int]
) -> None:
    client = live.client(tenant)
    _, key = live.key(tenant)
    body = {"content": "The patient prefers morning visits.", "subject": "Ines", "source": {"session": "s"}}
    live.send("POST", "/v1/host/reverie/memory/team/entries", key, json=body)
    dream = ask(client, store, sessions=["session:s"])
    work()
    output = client.beta.dreams.retrieve(dream.id).outputs[0].memory_store_id
    assert "morning visits" in str(texts(client, output))
    live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "ines"})
    assert "morning visits" not in str(texts(client, output))
    assert "oolong" in str(texts(client, output))


def test_lists_and_filters(client: Anthropic, store: str, work: Callable[[], int]) -> None:
    first = ask(client, store)
    work()
    rest = [ask(client, store) for _ in range(3)]
    client.beta.dreams.cancel(rest[0].id)
    newest = [rest[2].id, rest[1].id, rest[0].id, first.id]
    assert [one.id for one in client.beta.dreams.list(limit=3)] == newest
    assert [one.id for one in client.beta.dreams.list(statuses=["completed", "canceled"])] == newest[2:]
    some = client.beta.dreams.list(created_at_gt=first.created_at, created_at_lt=rest[2].created_at)
    assert first.id not in [one.id for one in some]
    assert rest[2].id not in [one.id for one in some]
    raw: Any = client.get("/v1/dreams?statuses=completed&statuses=canceled", cast_to=object)
    assert [one["id"] for one in raw["data"]] == newest[2:]
    refused(lambda: client.get("/v1/dreams?statuses=odd", cast_to=object), 400)


def test_rights(live: Live, tenant: str, client: Anthropic, store: str) -> None:
    reader = live.client(tenant, rights=("read", "write"))
    refused(lambda: ask(reader, store), 403, "permission_error")
    dreamer = live.client(tenant, rights=("read", "dream"))
    refused(lambda: ask(dreamer, store, output_behavior=update(store)), 403, "permission_error")
    dream = ask(dreamer, store)
    refused(lambda: reader.beta.dreams.cancel(dream.id), 403, "permission_error")
    assert reader.beta.dreams.retrieve(dream.id).id == dream.id
    refused(lambda: live.client().beta.dreams.retrieve(dream.id), 404, "not_found_error")
    scoped = live.client(tenant, scopes=("dreams:read",))
    scoped.beta.dreams.list()
    refused(lambda: ask(scoped, store), 403, "permission_error")


def test_a_hundred_dreams_at_most(client: Anthropic, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_ACTIVE", 2)
    dreams = [ask(client, store) for _ in range(2)]
    with pytest.raises(APIStatusError) as fault:
        ask(client, store)
    assert (fault.value.status_code, fault.value.type) == (429, "rate_limit_error")
    assert "retry-after" in fault.value.response.headers
    client.beta.dreams.cancel(dreams[0].id)
    ask(client, store)


def test_models_are_mapped(make_live: Callable[..., Live]) -> None:
    live = make_live(anthropic_models="claude-*=extractive", anthropic_unknown_model="refuse")
    client = live.client()
    store = client.beta.memory_stores.create(name="a").id
    assert ask(client, store, model="claude-sonnet-5-5").model.id == "claude-sonnet-5-5"
    fault = refused(lambda: ask(client, store, model="gpt"), 400)
    assert "is not configured on this host" in fault.message
    strict = make_live(anthropic_strict=True, anthropic_unknown_model="extractive")
    client = strict.client()
    store = client.beta.memory_stores.create(name="a").id
    refused(lambda: ask(client, store), 400)  # sessions are demanded
    headers = {"anthropic-beta": "managed-agents-2026-04-01"}
    answer = strict.send("GET", "/v1/dreams", strict.key()[1], headers=headers)
    assert answer.status_code == 400
    assert client.beta.dreams.list().data == []


def test_a_dream_left_by_a_dead_worker_is_finished_once(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    commit = engine.MemoryDreams._commit

    def die(self: Any, *args: Any) -> bool:
        raise Killed

    dream = ask(client, store)
    monkeypatch.setattr(engine.MemoryDreams, "_commit", die)
    with pytest.raises(Killed):
        work()
    running = client.beta.dreams.retrieve(dream.id)
    assert running.status == "running"
    clone = running.outputs[0].memory_store_id
    assert texts(client, clone) == texts(client, store)
    monkeypatch.setattr(engine.MemoryDreams, "_commit", commit)
    assert work() == 0  # its run is still leased to the worker that died
    host, run = live.server.host, dream.id[4:]
    host.parts.store.write(Scope(tenant), lambda tx: tx.release(f"run/{run}", host.runs._holder))
    assert work() == 1
    assert host.runs.get(host.system_actor(tenant), run).status == "completed"
    done = client.beta.dreams.retrieve(dream.id)
    assert (done.status, done.outputs[0].memory_store_id) == ("completed", clone)
    assert len(client.beta.memory_stores.list().data) == 2


def during(patch: pytest.MonkeyPatch, name: str, change: Callable[[], object]) -> None:
    """Let `change` happen once, before a step of a dream."""
    method, left = getattr(engine.MemoryDreams, name), [change]

    def delayed(self: Any, *args: Any) -> Any:
        while left:
            left.pop()()
        return method(self, *args)

    patch.setattr(engine.MemoryDreams, name, delayed)


@pytest.mark.parametrize("sessions", [None, ["session:s"]], ids=["files", "sessions"])
def test_writes_elsewhere_during_a_dream_do_not_fail_it(
    live: Live,
    tenant: str,
    client: Anthropic,
    store: str,
    work: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
    sessions: list[str] | None,
) -> None:
    _, key = live.key(tenant)

    def put(text: str) -> None:
        body = {"content": text, "source": {"session": "s"}}
        live.send("POST", "/v1/host/reverie/memory/team/entries", key, json=body)

    put("Vera said that the office moves to Lisbon in June.")
    during(monkeypatch, "_commit", lambda: put("The kettle is new."))
    dream = ask(client, store, sessions=sessions)
    assert work() == 1
    assert client.beta.dreams.retrieve(dream.id).status == "completed"


def test_a_copy_of_a_store_holds_no_description_that_was_forgotten_meanwhile(
    live: Live, tenant: str, client: Anthropic, work: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = live.key(tenant)
    store = client.beta.memory_stores.create(name="a", description="About Vera", metadata={"who": "Vera"}).id
    client.beta.memory_stores.memories.create(store, path="/notes.md", content="The door is green.")
    body = {"subject": "Vera", "mentions": True}
    during(monkeypatch, "_clone", lambda: live.send("POST", "/v1/host/reverie/memory/forget", key, json=body))
    dream = ask(client, store)
    assert work() == 1
    done = client.beta.dreams.retrieve(dream.id)
    assert done.status == "completed"
    made = client.beta.memory_stores.retrieve(done.outputs[0].memory_store_id)
    assert "Vera" not in made.to_json()
    assert made.name == "a (dream)"


def test_files_of_a_dream_are_about_the_subject_that_the_store_has_by_now(
    live: Live, tenant: str, client: Anthropic, store: str, work: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = live.key(tenant)
    during(
        monkeypatch,
        "_commit",
        lambda: client.beta.memory_stores.update(store, metadata={"reverie.subject": "Vera"}),
    )
    ask(client, store, output_behavior=update(store), reverie={"transcripts": [{"id": "t", "messages": TALK}]})
    assert work() == 1
    changed = {path for path, text in texts(client, store).items() if "Tomas" in text}
    assert changed
    live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "Vera"})
    assert changed.isdisjoint(texts(client, store))


@pytest.mark.parametrize("path", ["/people/mira.md/new", "/people"])
def test_an_undo_puts_no_file_above_or_below_another(
    live: Live, tenant: str, client: Anthropic, work: Callable[[], int], path: str
) -> None:
    store = client.beta.memory_stores.create(name="a").id
    memories = client.beta.memory_stores.memories
    for name in ("/people/mira.md", "/second.md"):
        memories.create(store, path=name, content=MIRA)
    dream = ask(client, store, output_behavior=update(store))
    assert work() == 1
    assert set(texts(client, store)) == {"/second.md"}
    memories.create(store, path=path, content="Something else entirely.")
    refused(lambda: client.post(f"/v1/dreams/{dream.id}/reverie/undo", cast_to=object), 409, "conflict_error")
    assert set(texts(client, store)) == {"/second.md", path}


def test_an_undo_leaves_an_archived_store_as_it_is(client: Anthropic, store: str, work: Callable[[], int]) -> None:
    dream = ask(client, store, output_behavior=update(store))
    assert work() == 1
    client.beta.memory_stores.archive(store)
    before = texts(client, store)
    with pytest.raises(APIStatusError):
        client.post(f"/v1/dreams/{dream.id}/reverie/undo", cast_to=object)
    assert texts(client, store) == before


def test_an_undo_does_not_delete_a_store_that_another_dream_writes_to(
    client: Anthropic, store: str, work: Callable[[], int]
) -> None:
    first = ask(client, store)
    assert work() == 1
    made = client.beta.dreams.retrieve(first.id).outputs[0].memory_store_id
    second = ask(client, made, output_behavior=update(made))
    with pytest.raises(APIStatusError):
        client.post(f"/v1/dreams/{first.id}/reverie/undo", cast_to=object)
    assert work() == 1
    assert client.beta.dreams.retrieve(second.id).status == "completed"
