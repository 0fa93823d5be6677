"""A host under attack that is killed again and again: it loses no acknowledged write and stores none twice, shows no
tenant anything of another, and never answers 5xx.

`REVERIE_ATTACK_SECONDS` is the length of the attack: 300 in `make soak`, 5 in `make test`.
"""

from __future__ import annotations

import os
import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.crash.served import Client, Served, make_key
from tests.processes import PATIENCE
from tests.soak.attack import MARK, TOKEN, Attacker, Notes

SOAK = os.environ.get("REVERIE_SOAK") == "1"
SECONDS = float(os.environ.get("REVERIE_ATTACK_SECONDS", "300" if SOAK else "5"))
ATTACKERS, WRITERS = 6, 3
KILLS = 1 + int(SECONDS / 10)


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
def test_an_attack_with_kills(tmp_path: Path, engine: str, make_database: Callable[[], str]) -> None:
    url = make_database() if engine == "postgres" else ""
    keys = {tenant: make_key(tmp_path, url, tenant=tenant) for tenant in ("acme", "evil")}
    host = Served(tmp_path, url, rate_per_second=1000)
    notes = Notes(host, keys["evil"])
    try:
        stored = attack(host, notes, keys["acme"])
        report(notes, stored)
        judge(host, notes, keys, stored)
        host.stop()
    finally:
        host.kill()


def attack(host: Served, notes: Notes, key: str) -> dict[str, str]:
    """The attackers, and writers of the attacked tenant, while the host is killed; what was acknowledged, by word."""
    over, stored = threading.Event(), dict[str, str]()
    lines = min(1500, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 3) // ATTACKERS if SOAK else 20
    attackers = [Attacker(notes, f"attack {n}", lines=lines) for n in range(ATTACKERS)]
    with ThreadPoolExecutor(ATTACKERS + WRITERS) as pool:
        running = [pool.submit(attacker.run, over) for attacker in attackers]
        running += [pool.submit(write, host, notes, key, number, stored, over) for number in range(WRITERS)]
        began = time.monotonic()
        try:
            for number in range(1, KILLS + 1):
                while time.monotonic() < began + SECONDS * number / (KILLS + 1) or len(stored) < 5 * number:
                    assert not any(one.done() for one in running), [one.exception() for one in running if one.done()]
                    time.sleep(0.02)
                host.kill()
                host.start()
            over.wait(max(0.0, began + SECONDS - time.monotonic()))
        finally:
            over.set()
            for one in running:
                one.result(PATIENCE)
    return stored


def write(host: Served, notes: Notes, key: str, number: int, stored: dict[str, str], over: threading.Event) -> None:
    """Put entries, each until it is acknowledged, and read them again."""
    chance = random.Random(f"writer {number}")
    client = Client([host], key, chance, may_refuse=False)
    while not over.is_set():
        token = f"zq{chance.getrandbits(48):012x}"
        body = {"content": f"Note {token} is about a pump.", "subject": "pump"}
        answer = client.send("POST", "memory/notes/entries", json=body, headers={"Idempotency-Key": token})
        assert answer.status_code == 201, (answer.status_code, answer.text)
        stored[token] = answer.json()["id"]
        notes.ids.append(stored[token])
        earlier = chance.choice(list(stored))
        answer = client.send("GET", f"memory/notes/entries/{stored[earlier]}")
        assert answer.status_code == 200, (earlier, answer.status_code, answer.text)
        assert earlier in answer.json()["content"]
    client.close()


def judge(host: Served, notes: Notes, keys: dict[str, str], stored: dict[str, str]) -> None:
    """Every acknowledged write is there once; nothing is with the wrong tenant; both logs hold."""
    assert notes.faults == []
    assert {"steal", "huge", "mangled", "foreign", "no_key", "slow", "garbage", "hold"} == set(notes.sent)
    exports = {}
    for tenant, key in keys.items():
        client = Client([host], key, random.Random(0), may_refuse=False)
        exports[tenant] = client.send("GET", "export").text
        verdict = client.send("GET", "audit/verify").json()
        assert verdict["ok"], verdict
        client.close()
    client = Client([host], keys["acme"], random.Random(0), may_refuse=False)
    for token, entry in stored.items():
        assert token in client.send("GET", f"memory/notes/entries/{entry}").json()["content"]
    client.close()
    found = Counter(TOKEN.findall(exports["acme"].encode()))
    assert set(found) >= {token.encode() for token in stored}
    assert set(found.values()) == {1}
    assert MARK not in exports["acme"]
    assert not TOKEN.search(exports["evil"].encode())


def report(notes: Notes, stored: dict[str, str]) -> None:
    """The figures, to be read."""
    print(f"{KILLS} kills, {len(stored)} acknowledged writes, {sum(notes.sent.values())} moves of attackers")
    print(f"moves: {dict(sorted(notes.sent.items()))}")
    print(f"answers: {dict(sorted(notes.statuses.items()))}, without an answer: {notes.unanswered}")
