"""Rules that another process changed hold for work that no write path checks: sweeps, scans, dreams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.core.errors import Invalid, NotFound
from reverie.core.run import DISTILL
from reverie.distil.request import DistilledText, Request
from reverie.host import Host
from reverie.jobs.sweep import Sweeper
from reverie.protocols.anthropic.names import STORE
from reverie.providers.tokenizer import TokenCounter
from reverie.store.cipher import FileCipher
from reverie.store.conformance import HandClock

DAY = 86_400_000
VALUE = "tangerine zeppelin over brackwater"
Hosts = tuple[Host, Host]


@pytest.fixture
def hosts(make_host: Callable[..., Host], make_store: Callable[..., Any], tmp_path: Path, ada: Actor) -> Hosts:
    """Two processes on one store; the first has read its rules."""
    cipher = FileCipher(tmp_path / "key")
    one, other = (make_host(store=make_store(), cipher=cipher, tokens=TokenCounter()) for _ in range(2))
    one.rules.current(ada.tenant)
    return one, other


def put(host: Host, actor: Actor, content: str) -> str:
    return host.entries.put(actor, "notes", [Draft(content)])[0].id


def test_a_scan_knows_a_secret_that_another_process_registered(hosts: Hosts, ada: Actor) -> None:
    scanner, office = hosts
    entry_id = put(scanner, ada, f"At the gate one says {VALUE}.")
    office.rules.register(ada, "gate", VALUE)
    assert scanner.rescan.scan(ada, dry_run=True).affected == 1
    assert scanner.rescan.scan(ada).affected == 1
    assert VALUE not in scanner.reader.get(ada, "notes", entry_id).content


def test_a_sweep_keeps_to_the_undo_window_that_another_process_set(hosts: Hosts, ada: Actor, clock: HandClock) -> None:
    sweeper, office = hosts
    entry_id = put(office, ada, "The lift is repaired on Mondays.")
    office.lifecycle.delete(ada, "notes", entry_id)
    office.rules.set_policy(ada, {"undo_window_ms": 30 * DAY})
    clock.advance(8 * DAY)
    Sweeper(sweeper, "sweeper").sweep(ada.tenant)
    office.lifecycle.restore(ada, "notes", entry_id)
    office.lifecycle.delete(ada, "notes", entry_id)
    office.rules.set_policy(ada, {"undo_window_ms": DAY})
    clock.advance(2 * DAY)
    Sweeper(sweeper, "sweeper").sweep(ada.tenant)
    with pytest.raises(NotFound):
        office.lifecycle.restore(ada, "notes", entry_id)


def test_archives_are_kept_as_long_as_another_process_said(hosts: Hosts, ada: Actor, clock: HandClock) -> None:
    sweeper, office = hosts
    for day in ("Monday", "Tuesday", "Wednesday"):
        put(office, ada, f"On {day} we decided to open the pier at nine. Well, there was some talk, as there is.")
    report = office.dreams.run(ada, DreamPlan("notes"))
    assert report is not None
    office.rules.set_policy(ada, {"archive_retention_ms": 90 * DAY})
    clock.advance(31 * DAY)
    assert sweeper.archives.collect(ada) == 0
    office.rules.set_policy(ada, {"archive_retention_ms": DAY})
    assert sweeper.archives.collect(ada) == 1


class _Model:
    """A distiller that stands for a model, and remembers what it was given."""

    name = "simulated"
    fingerprint = "simulated/1"

    def __init__(self) -> None:
        self.given: list[str] = []

    def distil(self, request: Request) -> DistilledText:
        self.given += [request.clean(source.content) for source in request.work.sources]
        return DistilledText("")


def test_a_model_is_given_no_secret_that_another_process_registered(hosts: Hosts, ada: Actor) -> None:
    dreamer, office = hosts
    for day in ("Monday", "Tuesday", "Wednesday"):
        put(office, ada, f"On {day} we decided to say {VALUE} at the gate. Well, there was some talk, as there is.")
    office.rules.register(ada, "gate", VALUE)
    model = _Model()
    dreamer.dreams.run(ada, DreamPlan("notes", strict=False), distiller=model)
    assert model.given
    assert not [text for text in model.given if VALUE in text]


def test_a_dream_heeds_the_trust_that_another_process_asks_for(hosts: Hosts, ada: Actor) -> None:
    dreamer, office = hosts
    guest = Actor(tenant=ada.tenant, id="guest", authority=1)
    for day in ("Monday", "Tuesday", "Wednesday"):
        put(office, guest, f"On {day} we decided to open the pier at nine. Well, there was some talk, as there is.")
    office.rules.set_policy(ada, {"dream_trust": 5})
    assert dreamer.dreams.run(ada, DreamPlan("notes")) is None


def test_what_a_run_is_given_is_redacted_by_rules_of_another_process(hosts: Hosts, ada: Actor) -> None:
    server, office = hosts
    office.rules.register(ada, "gate", VALUE)
    run, _ = server.runs.around(ada, DISTILL, lambda _: None, ref="notes", inputs={"note": f"At the gate: {VALUE}."})
    assert VALUE not in str(office.runs.get(ada, run.id).inputs)


def test_what_a_dream_of_a_store_is_told_is_redacted_by_rules_of_another_process(hosts: Hosts, ada: Actor) -> None:
    server, office = hosts
    store = office.memory_stores.create(ada, "Notes").id
    office.rules.register(ada, "gate", VALUE)
    record = server.memory_dreams.create(
        ada, STORE + store, model="simulated", distiller="extractive", instructions=f"Keep {VALUE}."
    )
    assert record.instructions == "Keep [REDACTED:gate]."


def test_a_schedule_gets_no_name_that_another_process_registered_as_a_secret(hosts: Hosts, ada: Actor) -> None:
    server, office = hosts
    office.rules.register(ada, "gate", "brackwater-zeppelin")
    with pytest.raises(Invalid):
        server.schedules.save(ada, {"cron": "0 3 * * *", "ref": "brackwater-zeppelin"})
