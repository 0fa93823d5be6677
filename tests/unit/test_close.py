"""What is closed is gone: a process that opens and closes hosts for weeks grows neither in objects nor in handles."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import reverie
from reverie.app import build_app, build_host, build_redactor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.services import Services
from reverie.settings import Settings
from reverie.store.contract import Store

ROUNDS = 5
BOUNDED = {"reverie.index.postings", "reverie.distil.tokens", "reverie.redact.automata"}
"""Caches of the process with a fixed number of places, which fill up; and the automata of its one redactor, some of which
are made when a text first takes long, on a busy machine at any time."""
SHARED = ("reverie-request",)
"""The threads that serve the requests of all applications of a process."""


def held() -> Counter[str]:
    """The objects of Reverie that a caller could hold, threads, and open files."""
    gc.collect()
    own = [type(one) for one in gc.get_objects() if str(type(one).__module__).startswith("reverie.")]
    found = Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in own if kind.__module__ not in BOUNDED)
    found["threads"] = sum(not thread.name.startswith(SHARED) for thread in threading.enumerate())
    found["files"] = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    return found


def grown(use: Callable[[], None]) -> Counter[str]:
    """What there is more of after `use` was called some times than after the first three."""
    for _ in range(3):
        use()
    before = held()
    for _ in range(ROUNDS):
        use()
    return held() - before


def test_a_closed_library_leaves_nothing(make_target: Callable[..., str]) -> None:
    target = make_target()

    def use() -> None:
        with reverie.open(target) as memory:
            ref = memory.ref("bot")
            ref.put_many([f"The pump {n} in hall {n % 3} was replaced on day {n}." for n in range(30)])
            assert ref.search("pump")
            ref.dream()

    assert grown(use) == {}


def test_a_closed_application_leaves_nothing(tmp_path: Path) -> None:
    def use() -> None:
        settings = Settings.load({}, data=str(tmp_path / os.urandom(4).hex()))
        host = build_host(settings)
        app = build_app(settings, host)
        assert app.openapi()["paths"]
        host.entries.put(host.system_actor("acme"), "notes", [Draft("The kettle is blue.")])
        host.close()

    assert grown(use) == {}


def test_hosts_of_a_process_share_one_redactor(make_store: Callable[..., Store]) -> None:
    one, other = Services(store=make_store("a.db")), Services(store=make_store("b.db"))
    assert Host(one).parts.redactor is Host(other).parts.redactor is build_redactor("")
