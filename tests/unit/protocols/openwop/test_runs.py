"""What a run sees: memory as it was when it began, and its own writes since."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.core.errors import Invalid
from reverie.core.run import RunStatus
from reverie.host import Host
from reverie.protocols.openwop import background
from reverie.protocols.openwop.workflow import ActiveRun, Workflow


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host()


def put(host: Host, actor: Actor, content: str, **fields: Any) -> str:
    return host.entries.put(actor, "notes", [Draft(content, **fields)])[0].id


def run(host: Host, actor: Actor, body: Callable[[ActiveRun], dict[str, Any]]) -> dict[str, Any]:
    host.runs.offer("test", Workflow(body, ref=lambda _: "notes"))
    done = host.runs.start(actor, "test")
    assert done.status is RunStatus.COMPLETED, done.fault
    return host.runs.variables(actor, done)


def test_what_others_write_or_delete_meanwhile_is_not_seen(host: Host, ada: Actor) -> None:
    kept, deleted = put(host, ada, "kept", tags=("t",)), put(host, ada, "deleted")

    def body(work: ActiveRun) -> dict[str, Any]:
        later = put(host, ada, "later", tags=("t",))
        host.lifecycle.delete(ada, "notes", deleted)
        own = work.put("notes", "own", name="own", tags=["t"])
        assert [entry.id for entry in work.list("notes")] == [own.id, deleted, kept]
        assert [entry.id for entry in work.list("notes", tag="t")] == [own.id, kept]
        assert [entry.id for entry in work.list("notes", limit=1)] == [own.id]
        assert work.get("notes", later) is None
        assert work.get("notes", deleted) is not None
        assert work.get("notes", own.id) == own
        assert work.list("other") == work.list("../notes") == []
        assert work.get("../notes", kept) is None
        return {"seen": work.get("notes", deleted)}

    assert run(host, ada, body)["seen"].content == "deleted"
    assert [entry.content for entry in host.reader.page(ada, "notes").items] == ["own", "later", "kept"]


def test_done_again_a_write_is_the_first_one(host: Host, ada: Actor) -> None:
    def body(work: ActiveRun) -> dict[str, Any]:
        first = work.put("notes", "one", name="n")
        assert work.put("notes", "another text", name="n") == first
        work.plant("notes", "over", name="p", expires_at=1)
        work.plant("notes", "over", name="p", expires_at=1)
        return {}

    run(host, ada, body)
    assert len(host.reader.page(ada, "notes").items) == 1


def test_a_past_expiry_is_refused_by_put(host: Host, ada: Actor) -> None:
    def body(work: ActiveRun) -> dict[str, Any]:
        with pytest.raises(Invalid):
            work.put("notes", "late", name="n", expires_at=1)
        with pytest.raises(Invalid):
            work.put("../notes", "nowhere", name="m")
        return {}

    run(host, ada, body)


def test_a_run_s_secrets_die_with_it(host: Host, ada: Actor) -> None:
    value = "plain-looking words " * 2

    def body(work: ActiveRun) -> dict[str, Any]:
        work.register({"vault": value})
        return {"entry": work.put("notes", f"it was {value}here", name="n")}

    assert run(host, ada, body)["entry"].content == "it was [REDACTED:vault]here"
    kept = host.reader.get(ada, "notes", put(host, ada, f"it was {value}here")).content
    assert value in kept


def test_a_fault_of_the_host_fails_the_run_without_its_message(host: Host, ada: Actor) -> None:
    def body(work: ActiveRun) -> dict[str, Any]:
        raise RuntimeError("zebra")

    host.runs.offer("test", Workflow(body))
    with pytest.raises(RuntimeError):
        host.runs.start(ada, "test")
    event = host.reader.events(ada, types=("run.failed",))[0]
    failed = host.runs.get(ada, str(event.data["run"]))
    assert failed.fault is not None
    assert (failed.fault.code, "zebra" in failed.fault.message) == ("internal_error", False)


def test_a_host_with_busy_runs_stops_in_the_time_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_JOIN_SECONDS", 0.2)
    work, busy = background.Background(), threading.Event()
    for _ in range(60):
        work.start(busy.wait)
    started = time.monotonic()
    work.stop()
    taken = time.monotonic() - started
    busy.set()
    assert 0.2 <= taken < 5.0
