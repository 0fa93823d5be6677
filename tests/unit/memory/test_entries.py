"""put: nothing unredacted is stored in any field, and callers that come together do not disturb each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.core.actor import Actor
from reverie.core.clock import LATEST
from reverie.core.entry import Draft, Scope
from reverie.core.errors import IdempotencyReused, Invalid, QuotaExceeded, TooLarge
from reverie.host import Host
from reverie.library import Memory, Ref
from reverie.store.conformance import HandClock
from reverie.store.contract import WriteTx

SECRET = "AKIA" + "Q3EGRT5XJ2KQ7WZL"
MARKER = "[REDACTED:aws-access-key]"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with reverie.open(tmp_path) as opened:
        yield opened


def test_every_text_a_caller_can_write_is_redacted(memory: Memory) -> None:
    notes = memory.ref("notes")
    receipt = notes.put(
        f"the key is {SECRET}",
        kind=SECRET,
        tags=[SECRET, "plain", "plain"],
        subject=SECRET,
        attributes={"note": f"again {SECRET}", SECRET: 1},
        source={"actor": SECRET, "role": SECRET, "session": SECRET, "run": SECRET, "node": SECRET},
    )
    entry = notes.get(receipt.id)
    assert SECRET not in repr(entry)
    assert (entry.kind, entry.tags, entry.subject) == (MARKER, (MARKER, "plain"), MARKER)
    assert receipt.findings == {"aws-access-key": 11}
    assert memory.verify().ok


@pytest.mark.parametrize(
    ("ref", "entries", "pointer"),
    [
        (f"team/{SECRET}", [{"content": "hello"}], "/ref"),
        ("notes", [{"content": "hello", "id": f"id-{SECRET}"}], "/id"),
        ("notes", [{"content": "hello"}, {"content": "hello", "id": SECRET}], "/entries/1/id"),
    ],
    ids=["ref", "id", "one of many ids"],
)
def test_a_name_that_holds_a_secret_is_refused_and_not_repeated(
    memory: Memory, ref: str, entries: list[dict[str, str]], pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        memory.ref(ref).put_many(entries)
    assert refused.value.pointer == pointer
    assert SECRET not in str(refused.value)
    assert memory.refs() == []


def test_drafts_of_several_runs_are_each_redacted_by_their_own_secrets(memory: Memory) -> None:
    memory.host.rules.register_run(memory.actor, "one", {"pin": "opensesame"})
    notes = memory.ref("notes")
    receipts = notes.put_many([{"content": "say opensesame", "source": {"run": run}} for run in ("one", "two")])
    assert [notes.get(receipt.id).content for receipt in receipts] == ["say [REDACTED:pin]", "say opensesame"]


def crowd(notes: Ref, texts: list[str]) -> list[BaseException | None]:
    with ThreadPoolExecutor(16) as pool:
        futures = [pool.submit(notes.put, text) for text in texts]
    return [future.exception() for future in futures]


def test_a_crowd_of_writers_stores_each_entry_once(memory: Memory) -> None:
    notes = memory.ref("notes")
    texts = [f"entry number {n}" for n in range(800)]
    assert crowd(notes, texts) == [None] * 800
    stored, cursor = [], None
    while True:
        page = notes.list(limit=300, cursor=cursor)
        stored += [entry.content for entry in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert sorted(stored) == sorted(texts)
    assert memory.verify().ok


def test_a_crowd_of_writers_to_many_memories_shares_a_write(
    make_host: Callable[..., Host], ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, entered, leave, writes = make_host(), threading.Event(), threading.Event(), []
    write = host.parts.store.write

    def counted(scope: Scope, body: Callable[[WriteTx], Any]) -> Any:
        writes.append(scope.ref)
        entered.set()
        assert leave.wait(60)
        return write(scope, body)

    def put(ref: str) -> str:
        return host.entries.put(ada, ref, [Draft(f"This is about {ref}.")])[0].ref

    monkeypatch.setattr(host.parts.store, "write", counted)
    refs = [f"notes-{number}" for number in range(8)]
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(put, "first")
        assert entered.wait(60)
        others = [pool.submit(put, ref) for ref in refs]
        while not any(len(line) == len(refs) for line in host.entries._together._lines.values()):
            time.sleep(0.001)
        leave.set()
        assert [future.result(60) for future in (first, *others)] == ["first", *refs]
    assert writes == ["first", None]
    for ref in refs:
        assert [entry.content for entry in host.reader.page(ada, ref).items] == [f"This is about {ref}."]
    assert host.audit.verify(ada).ok


def test_what_one_of_a_crowd_sends_wrong_is_refused_alone(memory: Memory) -> None:
    notes = memory.ref("notes")
    outcomes = crowd(notes, ["fine" if n % 10 else " " for n in range(200)])
    assert [isinstance(outcome, Invalid) for outcome in outcomes] == [n % 10 == 0 for n in range(200)]
    assert all(outcome.pointer == "/content" for outcome in outcomes if isinstance(outcome, Invalid))
    assert memory.stats()["entries"] == 180


def test_a_crowd_fills_a_quota_to_the_last_entry(memory: Memory) -> None:
    memory.set_policy(max_entries=50)
    outcomes = crowd(memory.ref("notes"), [f"entry {n}" for n in range(120)])
    assert sum(outcome is None for outcome in outcomes) == 50
    assert sum(isinstance(outcome, QuotaExceeded) for outcome in outcomes) == 70


def test_a_name_that_was_plain_is_judged_again_after_a_secret_was_registered(memory: Memory) -> None:
    rules, actor = memory.host.rules, memory.actor
    name = "quiet-otter-lane"
    for _ in range(2):
        rules.check_ref(actor.tenant, name)
    rules.register(actor, "lane", name)
    with pytest.raises(Invalid, match="looks like a secret"):
        rules.check_ref(actor.tenant, name)


def test_a_name_that_is_plain_is_judged_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    rules, tenant, asked = memory.host.rules, memory.actor.tenant, []
    redactor = memory.host.parts.redactor
    many = redactor.many
    monkeypatch.setattr(redactor, "many", lambda texts, known: asked.extend(texts) or many(texts, known))
    for _ in range(3):
        rules.check_names(tenant, {"/ref": "notes", "/id": "n-1", "/run": None})
    assert asked == ["notes", "n-1"]


def test_entries_of_a_tenant_whose_lifetime_outlasts_the_calendar_are_still_read(memory: Memory) -> None:
    memory.set_policy(default_ttl_ms=2**53 - 1)
    notes = memory.ref("notes")
    kept = notes.put("Kept for longer than years are counted.")
    lines = list(memory.export())
    assert notes.get(kept.id).expires_at == LATEST
    assert b"9999-12-31T23:59:59.999Z" in lines[1]


def test_a_limit_that_no_store_can_hold_is_refused_and_every_put_goes_on(memory: Memory) -> None:
    for value in (2**53, 2**63 - 1, 10**30):
        with pytest.raises(Invalid, match="idempotency_ms"):
            memory.set_policy(idempotency_ms=value)
    assert memory.ref("notes").put("Still stored.", idempotency_key="k").ref == "notes"


def test_a_position_beyond_every_log_has_no_events_after_it(memory: Memory) -> None:
    memory.ref("notes").put("One.")
    assert memory.events(after=10**30) == []
    assert list(memory.host.audit.export(memory.actor, after=10**30)) == []


def test_a_retry_is_answered_when_its_entry_could_not_be_stored_any_more(
    make_host: Callable[..., Host], ada: Actor, clock: HandClock
) -> None:
    host = make_host()
    brief, long = Draft("Back at three.", expires_at=clock.now() + 1000), Draft("word " * 50)
    receipts = {
        key: host.entries.put(ada, "notes", [draft], idempotency_key=key) for key, draft in (("a", brief), ("b", long))
    }
    replaced = host.entries.supersede(ada, "notes", receipts["b"][0].id, long, idempotency_key="c")
    clock.advance(2000)
    host.rules.set_policy(ada, {"max_entry_bytes": 100})
    for key, draft in (("a", brief), ("b", long)):
        (again,) = host.entries.put(ada, "notes", [draft], idempotency_key=key)
        assert (again.id, again.replayed) == (receipts[key][0].id, True)
    again = host.entries.supersede(ada, "notes", receipts["b"][0].id, long, idempotency_key="c")
    assert (again.id, again.replayed) == (replaced.id, True)
    with pytest.raises(IdempotencyReused):
        host.entries.put(ada, "notes", [long], idempotency_key="a")
    with pytest.raises(TooLarge):
        host.entries.put(ada, "notes", [long], idempotency_key="d")
