"""Each kind of job, by whichever runner: in this process from the store's own queue, or carried by the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import EMBEDDER, REDACTOR
from tests.postgres import shared_server

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.core.job import JOBS
from reverie.core.ports import ForgetLine
from reverie.host import Host
from reverie.jobs.procrastinate import EngineQueue, EngineWorker
from reverie.jobs.worker import Runner, Worker
from reverie.privacy.forget import UNDER_WAY_MS
from reverie.privacy.ledger import FileLedger
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.cipher import FileCipher

PATIENCE = 120.0
CHATTER = "Thanks everyone, that was a good and long day at the office with many pleasant words indeed."
TOKENS = TokenCounter("o200k_base")


class Died(BaseException):
    """The process is gone at this instruction."""


class DyingLedger(FileLedger):
    """The process dies after the line was written and before the database committed."""

    def add(self, line: ForgetLine) -> None:
        super().add(line)
        raise Died


@pytest.fixture
def jobs(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, EngineQueue] | None]:
    """Where the engine's queue is, on PostgreSQL."""
    if engine == "sqlite":
        yield None
        return
    server = shared_server(tmp_path_factory)
    url = server.make_database()
    yield url, EngineQueue(url)
    server.drop_database(url)


@pytest.fixture
def make(
    make_store: Callable[..., Any], clock: Any, tmp_path: Path, jobs: tuple[str, EngineQueue] | None
) -> Callable[..., Host]:
    """A host on the one store of this test, as each process would make it."""

    def made(**parts: Any) -> Host:
        given = {"embedder": EMBEDDER, "tokens": TOKENS, "redactor": REDACTOR, "jobs": jobs[1] if jobs else None}
        given |= {"clock": clock, "cipher": FileCipher(tmp_path / "reverie.key")}
        given |= {"ledger": FileLedger(tmp_path / "forgotten.jsonl")} | parts
        return Host(Services(store=make_store(), **given))

    return made


@pytest.fixture
def start(jobs: tuple[str, EngineQueue] | None) -> Iterator[Callable[[Host], None]]:
    """`start(host)`: a worker beside it."""
    running: list[Runner] = []

    def begin(host: Host) -> None:
        worker: Runner = Worker(host, every_seconds=1, poll_seconds=1)
        if jobs is not None:
            worker = EngineWorker(host, jobs[1], jobs[0], every_seconds=1, poll_seconds=1)
        running.append(worker)
        worker.start()

    yield begin
    for worker in running:
        worker.stop()


def wait_for(truth: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not truth():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def test_each_kind_of_job_does_its_work(
    make: Callable[..., Host], ada: Actor, clock: Any, start: Callable[[Host], None]
) -> None:
    plain = make(embedder=None)
    texts = [f"We decided that service {n} listens on port {7000 + n}. {CHATTER}" for n in range(12)]
    plain.entries.put(ada, "long", [Draft(text) for text in texts])
    plain.entries.put(ada, "twice", [Draft("The gate opens at nine.") for _ in range(3)])
    plain.entries.put(ada, "brief", [Draft("soon gone", expires_at=clock.now() + 1000), Draft("the word is xyzzy-17")])
    host = make()
    host.rules.register(ada, "door", "xyzzy-17")
    clock.advance(2000)
    for name in ("dream", "consolidate", "reindex", "retain", "scan", "forget"):
        arguments = {"dream": {"ref": "long"}, "consolidate": {"ref": "twice"}}.get(name, {})
        assert host.jobs.add(ada, name, arguments) is not None
    assert sorted(job.name for job in host.jobs.all(ada)) == sorted(
        set(JOBS) - {"recover", "commitments", "memory_dreams"}
    )
    start(host)
    wait_for(lambda: not host.jobs.all(ada))
    assert len(host.lineage.reports(ada)) == 1
    assert len(host.reader.page(ada, "twice").items) == 1
    assert host.embeddings.complete(ada)
    assert len(host.reader.events(ada, types=("memory.expired",))) == 1
    assert [entry.content for entry in host.reader.page(ada, "brief").items] == ["the word is [REDACTED:door]"]
    assert host.audit.verify(ada).ok


def test_a_dream_with_nothing_to_take_out_is_done(
    make: Callable[..., Host], ada: Actor, start: Callable[[Host], None]
) -> None:
    host = make()
    host.entries.put(ada, "rules", [Draft("Never touch files under vendor/."), Draft("Nina is allergic to cashews.")])
    host.jobs.add(ada, "dream", {"ref": "rules"})
    start(host)
    wait_for(lambda: not host.jobs.all(ada))
    assert len(host.reader.page(ada, "rules").items) == 2


def test_a_forget_that_was_cut_off_is_finished_after_its_process_died(
    make: Callable[..., Host], ada: Actor, clock: Any, tmp_path: Path, start: Callable[[Host], None]
) -> None:
    dying = make(ledger=DyingLedger(tmp_path / "forgotten.jsonl"))
    texts = [f"We decided that service {n} listens on port {7000 + n}. {CHATTER}" for n in range(12)]
    dying.entries.put(ada, "notes", [Draft(text) for text in texts])
    dying.entries.put(
        ada, "notes", [Draft(f"Quixoticon wants crate {n} in hall {n}. {CHATTER}", subject="quix") for n in range(4)]
    )
    report = dying.dreams.run(ada, DreamPlan("notes", fit=True))
    assert report is not None
    with pytest.raises(Died):
        dying.forget.forget(ada, "quix")
    host = make()
    assert "Quixoticon" in host.reader.get(ada, "notes", str(report.output_id)).content
    start(host)
    clock.advance(UNDER_WAY_MS)
    wait_for(lambda: bool(host.reader.events(ada, types=("memory.forgotten",))))
    wait_for(lambda: not host.jobs.all(ada))
    assert all("Quixoticon" not in entry.content for entry in host.reader.page(ada, "notes").items)
    assert len(host.reader.events(ada, types=("dream.redone",))) == 1
    (certificate,) = host.reader.events(ada, types=("memory.forgotten",))
    assert (certificate.data["entries"], certificate.data["derived"]) == (4, 1)
    assert host.audit.verify(ada).ok
    assert make().forget.cut_off(ada) == []  # a process that starts now finds nothing to do


def test_a_forget_that_is_certified_or_under_way_is_not_done_again(
    make: Callable[..., Host], ada: Actor, clock: Any
) -> None:
    host = make()
    host.entries.put(ada, "notes", [Draft("x", subject="quix")])
    host.forget.forget(ada, "quix")
    assert host.parts.ledger is not None
    host.parts.ledger.add(ForgetLine(tenant=ada.tenant, subject="0" * 64, ref=None, at=clock.now() + 1))
    assert host.forget.cut_off(ada) == []
    clock.advance(UNDER_WAY_MS + 1)
    assert [line.subject for line in host.forget.cut_off(ada)] == ["0" * 64]
    assert host.forget.cut_off(ada) == []  # once for each process
    assert host.forget.cut_off(Actor(tenant="other", id="eve")) == []
