"""A history of HTTP requests with unique values, and the rules that every such history keeps.

Callers note when each request began and when it ended, by one counter: a request that ended before another began came
first, whichever host answered. The rules are checked afterwards, from the notes alone:

* what was acknowledged is read by everyone from then on, exactly once, by id, in lists, by search and in exports;
* positions of the log rise with real time, have no gaps, and a read as of a position shows what was written at it;
* a change with `If-Match` happens only to the version it names, and each version is replaced once;
* after a certificate no word of the subject that was stored before is in any answer, and none comes back;
* in the memory that is dreamt over, an entry is readable or the source of one readable dream, and its words are kept.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.crash.served import Client, Unanswered

PLAIN = ("notes", "mail")
"""Memories in which nothing but deletes and forgets takes an entry away."""
DIARY = "diary"
"""A memory that is dreamt over: only the rules of forget hold for its words."""
TOKEN = re.compile(r"zq[0-9a-f]{12}")


@dataclass
class Put:
    """A stored entry, and the word that only it has."""

    token: str
    ref: str
    subject: str
    id: str
    seq: int
    began: int
    ended: int


@dataclass
class Span:
    """A request that takes something away, or looks. `ended` is 0 until its answer came."""

    began: int
    ended: int = 0


@dataclass
class Read(Span):
    """An answer and the words in it. `wanted`: the word it asked for; `ref`: the memory it shows as a whole."""

    kind: str = ""
    found: Counter[str] = field(default_factory=Counter)
    wanted: str = ""
    ref: str = ""
    as_of: int = 0
    seqs: list[int] = field(default_factory=list)


@dataclass
class Version(Span):
    """What a request said about the version of an entry. `of`: the version it expected; `now`: the one there is."""

    entry: str = ""
    of: int = 0
    now: int = 0
    outcome: str = ""
    """`read`, `changed`, `refused` or `unknown`."""


class History:
    """The notes of all callers."""

    def __init__(self) -> None:
        self._clock = count(1)
        self.puts: dict[str, Put] = {}
        self.forgets: dict[str, Span] = {}
        self.deletes: dict[str, Span] = {}
        self.reads: list[Read] = []
        self.versions: list[Version] = []
        self.done = 0

    def now(self) -> int:
        """A tick: it comes after every tick before it."""
        return next(self._clock)

    def forgotten(self) -> set[str]:
        """Words that were stored before their subject was forgotten."""
        spans = ((put, self.forgets.get(put.subject)) for put in self.puts.values())
        return {put.token for put, span in spans if span is not None and span.ended and put.ended < span.began}

    # the rules

    def check(self) -> None:
        """Raise AssertionError for the first rule that this history breaks."""
        self._check_positions()
        self._check_versions()
        for read in self.reads:
            self._check_read(read)

    def _taken(self, put: Put) -> Iterator[Span]:
        for span in (self.deletes.get(put.token), self.forgets.get(put.subject)):
            if span is not None:
                yield span

    def _check_read(self, read: Read) -> None:
        for token, times in read.found.items():
            assert token in self.puts, f"{read.kind} shows {token}, which was never stored"
            put = self.puts[token]
            assert put.began < read.ended, f"{read.kind} shows {token} before it was written"
            assert times == 1 or put.ref == DIARY or read.kind == "export", f"{read.kind} shows {token} {times} times"
            forget = self.forgets.get(put.subject)
            if forget is not None and forget.ended and put.ended < forget.began:
                assert read.began < forget.ended, f"{read.kind} shows {token} after the certificate of {put.subject}"
            delete = self.deletes.get(token)
            if delete is not None and delete.ended and not read.as_of and read.kind != "export":
                assert read.began < delete.ended, f"{read.kind} shows {token} after it was deleted"
        for put in self._expected(read):
            if put.ended > read.began or any(span.began < read.ended for span in self._taken(put)):
                continue
            assert put.token in read.found, f"{read.kind} misses {put.token}, acknowledged before"

    def _expected(self, read: Read) -> Iterable[Put]:
        if read.wanted:
            return [self.puts[read.wanted]]
        plain = (put for put in self.puts.values() if put.ref in PLAIN)
        if read.kind == "export":
            return plain
        return (put for put in plain if put.ref == read.ref and (not read.as_of or put.seq <= read.as_of))

    def _check_positions(self) -> None:
        puts = sorted(self.puts.values(), key=lambda put: put.seq)
        assert len({put.seq for put in puts}) == len(puts), "two writes at one position"
        latest = 0  # when the last of the writes at lower positions began
        for put in puts:
            assert put.ended > latest, f"{put.token} has a higher position than a write that began after it ended"
            latest = max(latest, put.began)
        for read in self.reads:
            if read.kind != "log":
                continue
            assert read.seqs == list(range(read.as_of + 1, read.as_of + 1 + len(read.seqs))), "the log has a gap"
            head = read.seqs[-1] if read.seqs else read.as_of
            for put in puts:
                assert put.ended > read.began or put.seq <= head, f"the log misses {put.token}, acknowledged before"

    def _check_versions(self) -> None:
        by_entry: dict[str, list[Version]] = {}
        for version in self.versions:
            by_entry.setdefault(version.entry, []).append(version)
        for notes in by_entry.values():
            changed = Counter(note.of for note in notes if note.outcome == "changed")
            assert all(times == 1 for times in changed.values()), f"a version was replaced twice: {changed}"
            maybe = {note.of: note.began for note in notes if note.outcome in ("changed", "unknown")}
            known = 0
            for note in sorted((note for note in notes if note.ended), key=lambda note: note.ended):
                earlier = [other.now for other in notes if other.ended and other.ended < note.began]
                known = max(earlier, default=1)
                if note.outcome == "read":
                    assert note.now >= known, f"version {note.now} is read after {known}"
                    assert note.now == 1 or maybe.get(note.now - 1, note.ended) < note.ended, "a version from nowhere"
                elif note.outcome == "changed":
                    assert note.now == note.of + 1, "a change makes the next version"
                    assert note.of >= known, f"version {note.of} was changed after {known} was seen"
                elif note.outcome == "refused":
                    assert maybe.get(note.of, note.ended) < note.ended, f"version {note.of} was refused and is current"


class Caller:
    """A program that stores, reads, changes, dreams and forgets at random, and notes what it saw."""

    def __init__(self, history: History, client: Client, seed: str, *, registers: list[str]) -> None:
        self.history, self.client = history, client
        self.chance = random.Random(seed)
        self.seed = seed
        self.registers = registers
        self._numbers = count(1)
        self._log = 0

    def run(self, steps: int, stop: threading.Event) -> None:
        moves = (
            (self.put, 10),
            (self.get, 5),
            (self.list, 2),
            (self.search, 4),
            (self.change, 8),
            (self.follow, 3),
            (self.past, 2),
            (self.delete, 1),
            (self.dream, 2),
            (self.undo, 1),
            (self.consolidate, 1),
            (self.forget, 2),
            (self.export, 1),
        )
        for move in self.chance.choices([move for move, _ in moves], [weight for _, weight in moves], k=steps):
            if stop.is_set():
                return
            move()
            self.history.done += 1

    # writing

    def put(self) -> None:
        token = f"zq{self.chance.getrandbits(48):012x}"
        ref = self.chance.choice((*PLAIN, DIARY))
        subject = f"subject-{self.seed}-{self.chance.randrange(4)}" if ref == DIARY else self._subject()
        words = f"{token} was noted by {self.seed} about {subject}: the order of part {next(self._numbers)} is paid."
        body = {"content": words, "subject": subject}
        began = self.history.now()
        answer = self.client.send("POST", f"memory/{ref}/entries", json=body, headers={"Idempotency-Key": token})
        assert answer.status_code == 201, answer.text
        receipt = answer.json()
        made = Put(token, ref, subject, receipt["id"], receipt["seq"], began, self.history.now())
        self.history.puts[token] = made

    def _subject(self) -> str:
        return f"subject-{self.chance.randrange(60)}"

    def delete(self) -> None:
        put = self._any(PLAIN)
        if put is None or put.token in self.history.deletes:
            return
        span = self.history.deletes.setdefault(put.token, Span(self.history.now()))
        answer = self.client.send("DELETE", f"memory/{put.ref}/entries/{put.id}")
        assert answer.status_code in (200, 404, 409), answer.text
        span.ended = self.history.now()

    def dream(self) -> None:
        answer = self.client.send("POST", f"memory/{DIARY}/dreams", json={"fit": True})
        assert answer.status_code in (200, 201, 204, 409, 422), answer.text

    def undo(self) -> None:
        """Take back one of the last dreams; another caller may have done so, or dreamt over it."""
        answer = self.client.send("GET", f"memory/{DIARY}/dreams", params={"limit": 5})
        assert answer.status_code == 200, answer.text
        done = [dream["id"] for dream in answer.json()["dreams"] if dream["state"] == "done"]
        if done:
            answer = self.client.send("POST", f"memory/{DIARY}/dreams/{self.chance.choice(done)}/undo")
            assert answer.status_code in (200, 404, 409), answer.text

    def consolidate(self) -> None:
        answer = self.client.send("POST", f"memory/{DIARY}/consolidate")
        assert answer.status_code in (200, 409), answer.text

    def forget(self) -> None:
        """Forget a subject that nobody stores about any more; words stored meanwhile may stay."""
        put = self._any((*PLAIN, DIARY))
        if put is None or put.subject in self.history.forgets:
            return
        span = Span(self.history.now())
        if self.history.forgets.setdefault(put.subject, span) is not span:
            return
        answer = self.client.send("POST", "memory/forget", json={"subject": put.subject})
        assert answer.status_code == 200, answer.text
        # a request that was cut off may have been carried out: then nothing is left to certify when it is repeated
        assert answer.json()["certificate"] is not None or self.client.repeated
        span.ended = self.history.now()

    def change(self) -> None:
        """Read a version, then replace it: one of those who try at the same time succeeds."""
        entry = self.chance.choice(self.registers)
        path = f"memory/registers/entries/{entry}"
        read = Version(self.history.now(), entry=entry, outcome="read")
        answer = self.client.send("GET", path)
        read.now, read.ended = answer.json()["version"], self.history.now()
        self.history.versions.append(read)
        note = Version(self.history.now(), entry=entry, of=read.now, outcome="unknown")
        self.history.versions.append(note)
        body = {"pinned": not answer.json()["pinned"]}
        try:
            answer = self.client.once("PATCH", path, json=body, headers={"If-Match": f'"{read.now}"'})
        except Unanswered:
            return
        assert answer.status_code in (200, 409), answer.text
        if answer.status_code == 200:
            note.now, note.outcome = answer.json()["version"], "changed"
        else:
            note.outcome = "refused"
        note.ended = self.history.now()

    # reading

    def _any(self, refs: tuple[str, ...]) -> Put | None:
        known = [put for put in list(self.history.puts.values()) if put.ref in refs]
        return self.chance.choice(known) if known else None

    def _read(self, kind: str, texts: Iterable[str], began: int, **more: Any) -> None:
        found = Counter(token for text in texts for token in set(TOKEN.findall(text)))
        self.history.reads.append(Read(began, self.history.now(), kind=kind, found=found, **more))

    def get(self) -> None:
        put = self._any(PLAIN)
        if put is None:
            return
        began = self.history.now()
        answer = self.client.send("GET", f"memory/{put.ref}/entries/{put.id}")
        assert answer.status_code in (200, 404), answer.text
        texts = [answer.json()["content"]] if answer.status_code == 200 else []
        self._read("get", texts, began, wanted=put.token)

    def list(self, ref: str | None = None) -> None:
        ref = ref or self.chance.choice((*PLAIN, DIARY))
        began = self.history.now()
        self._read("list", self._pages(ref), began, ref=ref)

    def past(self) -> None:
        put = self._any(PLAIN)
        if put is None:
            return
        began = self.history.now()
        texts = list(self._pages(put.ref, as_of=put.seq))
        self._read("as_of", texts, began, wanted=put.token, as_of=put.seq)

    def _pages(self, ref: str, **asked: Any) -> Iterator[str]:
        return (entry["content"] for entry in self._entries(ref, **asked))

    def _entries(self, ref: str, **asked: Any) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            more = {"cursor": cursor} if cursor else {}
            answer = self.client.send("GET", f"memory/{ref}/entries", params={"limit": 200, **asked, **more})
            assert answer.status_code == 200, answer.text
            yield from answer.json()["entries"]
            cursor = answer.json()["cursor"]
            if cursor is None:
                return

    def search(self) -> None:
        put = self._any(PLAIN)
        if put is None:
            return
        began = self.history.now()
        answer = self.client.send("POST", f"memory/{put.ref}/search", json={"query": put.token, "limit": 20})
        assert answer.status_code == 200, answer.text
        texts = [hit["entry"]["content"] for hit in answer.json()["hits"]]
        self._read("search", texts, began, wanted=put.token)

    def follow(self) -> None:
        began, after = self.history.now(), self._log
        answer = self.client.send("GET", "events", params={"after": after, "limit": 10_000})
        assert answer.status_code == 200, answer.text
        seqs = [event["seq"] for event in answer.json()["events"]]
        self._log = seqs[-1] if seqs else after
        self.history.reads.append(Read(began, self.history.now(), kind="log", as_of=after, seqs=seqs))

    def export(self) -> None:
        began = self.history.now()
        answer = self.client.send("GET", "export", params={"events": "false"})
        assert answer.status_code == 200, answer.text
        self._read("export", [answer.text], began)

    def check_dreams(self) -> None:
        """While nobody writes: raise AssertionError for an entry that is in two places or in none."""
        readable = {entry["id"]: entry for entry in self._entries(DIARY)}
        places = Counter(readable.keys())
        for entry in readable.values():
            if entry["kind"] == "dream":
                why = self.client.send("GET", f"memory/{DIARY}/entries/{entry['id']}/why").json()
                assert why["sources"], f"dream {entry['id']} has no source"
                places.update(source["id"] for source in why["sources"])
        assert [place for place, times in places.items() if times > 1] == [], "an entry is in two places"
        for put in self.history.puts.values():
            if put.ref == DIARY and put.subject not in self.history.forgets:
                answer = self.client.send("GET", f"memory/{DIARY}/entries/{put.id}", params={"cold": "true"})
                assert answer.status_code == 200, f"{put.token} is lost: {answer.text}"
                assert put.token in answer.json()["content"]
                assert places[put.id] == 1 or self._merged(put, readable), (
                    f"{put.token} is in no dream and not readable"
                )

    def _merged(self, put: Put, readable: Mapping[str, Any]) -> bool:
        """Whether consolidation kept another entry in its place."""
        answer = self.client.send("GET", f"memory/{DIARY}/entries/{put.id}/derived")
        return not readable.keys().isdisjoint(answer.json()["derived"])

    def everything(self) -> None:
        """Look at all there is: every memory as a whole, every subject that was forgotten, the log, the export."""
        for ref in (*PLAIN, DIARY):
            self.list(ref)
        self.follow()
        self.export()
        for put in list(self.history.puts.values()):
            if put.subject in self.history.forgets:
                began = self.history.now()
                answer = self.client.send("POST", f"memory/{put.ref}/search", json={"query": put.token, "limit": 5})
                self._read("search", [hit["entry"]["content"] for hit in answer.json()["hits"]], began)
