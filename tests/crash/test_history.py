"""Histories of HTTP requests while hosts are killed and connections cut: the rules of `history.py` hold."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.crash.history import Caller, History, Put, Read, Span, Version
from tests.crash.served import Client, Served, make_key
from tests.postgres import PostgresServer
from tests.processes import PATIENCE

SOAK = os.environ.get("REVERIE_SOAK") == "1"
STEPS = int(os.environ.get("REVERIE_HISTORY_STEPS", "1500" if SOAK else "45"))
CALLERS = 6 if SOAK else 4
SEED = os.environ.get("REVERIE_HISTORY_SEED", "reverie")


def play(hosts: list[Served], key: str, faults: list[Callable[[], None]]) -> History:
    """Let callers at the hosts, and the faults happen one after another, evenly over the requests."""
    history, stop = History(), threading.Event()
    first = Client(hosts, key, random.Random(SEED))
    registers = [
        first.send("POST", "memory/registers/entries", json={"content": f"register {n}"}).json()["id"] for n in range(3)
    ]
    callers = [
        Caller(history, Client(hosts, key, random.Random(f"{SEED} {n}")), f"{SEED}-{n}", registers=registers)
        for n in range(CALLERS)
    ]
    with ThreadPoolExecutor(CALLERS) as pool:
        running = [pool.submit(caller.run, STEPS, stop) for caller in callers]
        try:
            for number, fault in enumerate(faults, 1):
                wanted = CALLERS * STEPS * number // (len(faults) + 1)
                while history.done < wanted and not any(one.done() and one.exception() for one in running):
                    time.sleep(0.01)
                fault()
        finally:
            if any(one.done() and one.exception() for one in running):
                stop.set()
            for one in running:
                one.result(PATIENCE + STEPS)
    callers[0].everything()
    callers[0].check_dreams()
    for host in hosts:
        alone = Client([host], key, random.Random(SEED))
        verdict = alone.send("GET", "audit/verify").json()
        assert verdict["ok"], verdict
        alone.close()
    certificates = first.send("GET", "events", params={"type": "memory.forgotten", "limit": 1000}).json()["events"]
    assert len(certificates) >= len(history.forgets)  # also of those that were cut off, carried out and repeated
    for caller in callers:
        caller.client.close()
    first.close()
    history.check()
    assert len(history.puts) > STEPS // 2
    assert [note for note in history.versions if note.outcome == "changed"]
    return history


@pytest.mark.soak
def test_one_host_on_a_file_that_is_killed(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    host = Served(tmp_path)

    def kill() -> None:
        host.kill()
        host.start()

    try:
        play([host], key, [kill] * (20 if SOAK else 2))
        host.stop()
    finally:
        host.kill()


@pytest.mark.soak
def test_two_hosts_on_a_database_with_kills_restarts_and_cut_connections(
    tmp_path: Path, postgres: PostgresServer, make_database: Callable[[], str]
) -> None:
    url = make_database()
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    key = make_key(tmp_path, url)
    hosts = [Served(tmp_path, url), Served(tmp_path, url)]

    def kill() -> None:
        hosts[0].kill()
        hosts[0].start()

    def restart() -> None:
        hosts[1].stop()
        hosts[1].start()

    def cut() -> None:
        postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

    try:
        history = play(hosts, key, [cut, kill, cut, restart] * (8 if SOAK else 1))
        words = sorted(history.forgotten())
        assert words
        for host in hosts:
            host.stop()  # does the VACUUM that is owed
        assert postgres.tables_with(words, str(name)) == []
    finally:
        for host in hosts:
            host.kill()


class TestTheRules:
    """What breaks a rule is found: a history of two writes, and one thing wrong in each."""

    def history(self) -> History:
        made = History()
        for number in (1, 2):
            token = f"zq{number:012x}"
            began = made.now()
            made.puts[token] = Put(token, "notes", f"subject-{number}", f"id{number}", number, began, made.now())
        return made

    def read(self, made: History, *tokens: str, kind: str = "list", **more: object) -> None:
        began = made.now()
        found = Read(began, made.now(), kind=kind, ref="notes", **more)  # type: ignore[arg-type]
        found.found.update(tokens)
        made.reads.append(found)

    def test_a_sound_history(self) -> None:
        made = self.history()
        one, two = made.puts
        self.read(made, one, two)
        made.forgets["subject-1"] = Span(made.now(), made.now())
        self.read(made, two)
        made.check()

    def test_an_acknowledged_write_that_is_missing(self) -> None:
        made = self.history()
        self.read(made, next(iter(made.puts)))
        with pytest.raises(AssertionError, match="misses"):
            made.check()

    def test_an_entry_that_is_there_twice(self) -> None:
        made = self.history()
        self.read(made, *made.puts, *made.puts)
        with pytest.raises(AssertionError, match="2 times"):
            made.check()

    def test_a_word_after_its_certificate(self) -> None:
        made = self.history()
        made.forgets["subject-1"] = Span(made.now(), made.now())
        self.read(made, *made.puts, kind="export")
        with pytest.raises(AssertionError, match="after the certificate"):
            made.check()

    def test_a_deleted_entry_in_a_list(self) -> None:
        made = self.history()
        made.deletes[next(iter(made.puts))] = Span(made.now(), made.now())
        self.read(made, *made.puts)
        with pytest.raises(AssertionError, match="after it was deleted"):
            made.check()

    def test_positions_against_time(self) -> None:
        made = self.history()
        one, two = made.puts.values()
        one.seq, two.seq = 2, 1
        with pytest.raises(AssertionError, match="higher position"):
            made.check()

    def test_a_gap_in_the_log_and_a_log_that_lags(self) -> None:
        for seqs, message in (([1, 3], "gap"), ([1], "misses")):
            made = self.history()
            made.reads.append(Read(made.now(), made.now(), kind="log", seqs=seqs))
            with pytest.raises(AssertionError, match=message):
                made.check()

    @pytest.mark.parametrize(
        ("notes", "message"),
        [
            ([("changed", 1, 2), ("changed", 1, 2)], "replaced twice"),
            ([("changed", 1, 2), ("read", 0, 1)], "is read after"),
            ([("read", 0, 2)], "from nowhere"),
            ([("changed", 1, 3)], "next version"),
            ([("refused", 1, 0)], "is current"),
        ],
    )
    def test_versions(self, notes: list[tuple[str, int, int]], message: str) -> None:
        made = History()
        for outcome, of, now in notes:
            made.versions.append(Version(made.now(), made.now(), entry="e", of=of, now=now, outcome=outcome))
        with pytest.raises(AssertionError, match=message):
            made.check()
