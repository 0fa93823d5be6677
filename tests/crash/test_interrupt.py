"""Control-C at any moment of a write: the store goes on, nothing acknowledged is lost, nothing is stored by halves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from reverie.core.entry import Scope
from reverie.core.query import Filter
from reverie.store.sqlite import SqliteStore

SOAK = os.environ.get("REVERIE_SOAK") == "1"
HERE = Scope("acme", "notes")
SCRIPT = """
import json, random, signal, sys, threading
from reverie.core.entry import Scope
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.sqlite import SqliteStore

here, chance, told, interrupts = Scope("acme", "notes"), random.Random(1), [], 0
store = SqliteStore(sys.argv[1])
store._db.execute("PRAGMA synchronous = OFF")  # more of the time inside our own code

def interrupt(*_):
    raise KeyboardInterrupt

def write(key):
    store.write(here, lambda tx: [put(tx, make_entry(id=f"{key}-{n}", tags=("t",))) for n in range(3)])
    return key

signal.signal(signal.SIGALRM, interrupt)
for number in range(int(sys.argv[2])):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.random() * 0.002)
        for n in range(50):
            told.append(write(f"{number}-{n}"))
    except KeyboardInterrupt:
        interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
other = threading.Thread(target=lambda: told.append(write("other")), daemon=True)
other.start()
other.join(20)
assert not other.is_alive(), "the store hangs"
told.append(write("last"))
store.close()
print(json.dumps({"told": told, "interrupts": interrupts}))
"""


def test_interrupted_while_writing(tmp_path: Path) -> None:
    rounds = 20_000 if SOAK else 400
    path = tmp_path / "memory.db"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(rounds)],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert answer["interrupts"] > rounds // 2
    store = SqliteStore(path)
    ids = {e.id for e in store.read(HERE, lambda tx: tx.scan(Filter(), limit=10**6)).items}
    keys = {entry_id.rsplit("-", 1)[0] for entry_id in ids}
    assert len(ids) == 3 * len(keys)  # whole writes only
    assert set(answer["told"]) <= keys
    log = store.read(HERE, lambda tx: tx.read_log(limit=10**6))
    assert [e.seq for e in log] == list(range(1, len(ids) + 1))
    assert all(e.sound() for e in log)
    store.check()
    store.close()
