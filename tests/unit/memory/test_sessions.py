"""Sessions of a browser: opaque, stored hashed, ended by idleness, age, sign-out or the key's end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reverie.core.entry import Scope
from reverie.core.errors import Unauthenticated
from reverie.host import Host
from reverie.memory.sessions import ABSOLUTE_MS, IDLE_MS, SPACE
from reverie.services import Services
from reverie.store.conformance import HandClock
from reverie.store.sqlite import SqliteStore


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def host(clock: HandClock) -> Host:
    return Host(Services(store=SqliteStore(":memory:", clock=clock), clock=clock))


def opened(host: Host) -> tuple[str, str]:
    key = host.keys.create("acme", rights=["read"])
    return key.id, host.sessions.open(host.keys.authenticate(key.key, door="console"))


def test_a_session_is_its_keys_caller(host: Host) -> None:
    key_id, session = opened(host)
    actor = host.sessions.resume(session, door="console")
    assert (actor.tenant, actor.key_id, actor.door, sorted(actor.rights)) == ("acme", key_id, "console", ["read"])


def test_only_a_hash_is_stored(host: Host) -> None:
    _, session = opened(host)
    stored = host.parts.store.read(Scope("acme"), lambda tx: tx.documents(SPACE)).items
    assert len(stored) == 1
    assert session.split(".")[1] not in f"{stored[0].key} {stored[0].body!r}"


@pytest.mark.parametrize("bad", [None, "", "x", "0123456789ab." + "A" * 43])
def test_what_was_never_opened_is_refused(host: Host, bad: str | None) -> None:
    opened(host)
    with pytest.raises(Unauthenticated):
        host.sessions.resume(bad, door="console")


def test_the_secret_of_another_key_does_not_fit(host: Host) -> None:
    first, _ = opened(host)
    _, session = opened(host)
    with pytest.raises(Unauthenticated):
        host.sessions.resume(f"{first}.{session.split('.')[1]}", door="console")


def test_idle_for_eight_hours_ends_it(host: Host, clock: HandClock) -> None:
    _, session = opened(host)
    clock.advance(IDLE_MS - 1)
    host.sessions.resume(session, door="console")  # a use: eight more hours
    clock.advance(IDLE_MS - 1)
    host.sessions.resume(session, door="console")
    clock.advance(IDLE_MS)
    with pytest.raises(Unauthenticated):
        host.sessions.resume(session, door="console")


def test_seven_days_end_it_however_busy(host: Host, clock: HandClock) -> None:
    _, session = opened(host)
    for _ in range(ABSOLUTE_MS // (6 * 3_600_000) - 1):
        clock.advance(6 * 3_600_000)
        host.sessions.resume(session, door="console")
    clock.advance(6 * 3_600_000)
    with pytest.raises(Unauthenticated):
        host.sessions.resume(session, door="console")


def test_it_dies_with_its_key(host: Host) -> None:
    key_id, session = opened(host)
    host.keys.revoke(key_id)
    with pytest.raises(Unauthenticated):
        host.sessions.resume(session, door="console")


def test_sign_out_ends_it_and_nothing_else(host: Host) -> None:
    _, session = opened(host)
    _, other = opened(host)
    host.sessions.close(session)
    host.sessions.close(session)
    with pytest.raises(Unauthenticated):
        host.sessions.resume(session, door="console")
    host.sessions.resume(other, door="console")


def test_signing_in_clears_away_what_has_expired(host: Host, clock: HandClock) -> None:
    key = host.keys.create("acme")
    for _ in range(3):
        host.sessions.open(host.keys.authenticate(key.key, door="console"))
        clock.advance(IDLE_MS)
    host.sessions.open(host.keys.authenticate(key.key, door="console"))
    assert len(host.parts.store.read(Scope("acme"), lambda tx: tx.documents(SPACE)).items) == 1


def test_using_a_session_often_writes_seldom(host: Host, clock: HandClock) -> None:
    _, session = opened(host)
    before = host.parts.store.read(Scope("acme"), lambda tx: tx.head().seq)
    for _ in range(100):
        clock.advance(1000)
        host.sessions.resume(session, door="console")
    assert host.parts.store.read(Scope("acme"), lambda tx: tx.head().seq) == before


def test_a_read_only_host_keeps_them_in_the_process(host: Host) -> None:
    key = host.keys.create("acme")
    view = Host(replace(host.parts, read_only=True))
    session = view.sessions.open(view.keys.authenticate(key.key, door="console"))
    assert view.sessions.resume(session, door="console").tenant == "acme"
    view.sessions.close(session)
    with pytest.raises(Unauthenticated):
        view.sessions.resume(session, door="console")
