"""What an operation costs follows what it touches; what it writes is whole; two hosts agree."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.core.actor import Actor
from reverie.core.errors import ReverieError, StoreBusy, StoreFull
from reverie.host import Host
from reverie.memory.files import VersionIds, complement, first_key
from reverie.protocols.anthropic.errors import PathConflict, PreconditionFailed
from reverie.protocols.anthropic.http.errors import error_shape, status_of
from reverie.protocols.anthropic.names import parents, path_fault
from reverie.protocols.anthropic.tool import MemoryCommands
from reverie.protocols.anthropic.versions import VersionFilter

VERBS = ("get", "at", "scan", "documents", "load", "save", "drop", "append", "insert", "change", "links", "count")


class Counted:
    """A store that counts verbs and rows of the transactions it runs."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.seen: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, scope: Any, body: Callable[[Any], Any]) -> Any:
        self.seen["write"] += 1
        return self._store.write(scope, lambda tx: body(_Tx(tx, self.seen)))

    def read(self, scope: Any, body: Callable[[Any], Any]) -> Any:
        self.seen["read"] += 1
        return self._store.read(scope, lambda tx: body(_Tx(tx, self.seen)))


class _Tx:
    def __init__(self, tx: Any, seen: Counter[str]) -> None:
        self.__dict__.update(_tx=tx, _seen=seen)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tx, name, value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tx, name)
        if name not in VERBS:
            return found

        def called(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            self._seen[name] += 1
            self._seen["rows"] += len(result.items) if hasattr(result, "items") and hasattr(result, "cursor") else 1
            return result

        return called


def fill(host: Host, ada: Actor, store: str, first: int, last: int) -> None:
    for n in range(first, last):
        host.memories.create(ada, store, f"/d{n % 7}/{n:05d}.md", f"Note number {n} about topic {n % 5}.")


def test_costs_do_not_grow_with_the_store(make_host: Callable[..., Host], make_store: Any, ada: Actor) -> None:
    counted = Counted(make_store())
    host = make_host(store=counted)
    store = "memstore_" + host.memory_stores.create(ada, "a").id
    fill(host, ada, store, 0, 30)
    kept = host.memories.create(ada, store, "/kept.md", "The first text of this file.")

    def costs() -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}

        def measure(name: str, work: Callable[[], Any]) -> None:
            counted.seen.clear()
            work()
            found[name] = Counter(counted.seen)

        memory = "mem_" + kept.file.id
        measure("get", lambda: host.memories.get(ada, store, memory))
        measure("list", lambda: host.memories.list(ada, store, limit=10))
        measure("folders", lambda: host.memories.list(ada, store, depth=1, limit=10))
        measure("below", lambda: host.memories.list(ada, store, prefix="/d3/", limit=5))
        measure("update", lambda: host.memories.update(ada, store, memory, content=f"Text {len(found)} {id(found)}"))
        measure("create", lambda: host.memories.create(ada, store, f"/new/{id(found)}", "Something new."))
        measure("history", lambda: host.memory_versions.list(ada, store, VersionFilter(memory_id=memory), limit=5))
        measure("versions", lambda: host.memory_versions.list(ada, store, VersionFilter(), limit=5))
        measure("stores", lambda: host.memory_stores.list(ada, limit=5))
        return found

    host.memories.create(ada, store, "/new/0", "Something new.")
    for _ in range(12):  # the file has all the versions that are kept
        host.memories.update(ada, store, "mem_" + kept.file.id, content=f"Text {_}")
    small = costs()
    fill(host, ada, store, 30, 120)
    large = costs()
    for name, cost in large.items():  # a page may end one row behind a folder, or not
        assert abs(cost.pop("rows") - small[name].pop("rows")) <= 2, name
    assert large == small
    assert {name: one["write"] for name, one in large.items() if one["write"]} == {"update": 1, "create": 1}


def test_viewing_a_folder_reads_no_content(make_host: Callable[..., Host], make_store: Any, ada: Actor) -> None:
    counted = Counted(make_store())
    host = make_host(store=counted)
    store = "memstore_" + host.memory_stores.create(ada, "a").id
    fill(host, ada, store, 0, 40)
    host.memories.create(ada, store, "/blank.md", "")
    commands = MemoryCommands(host.memories, ada, store)
    counted.seen.clear()
    shown = {path: commands.run({"command": "view", "path": path}) for path in ("/memories", "/memories/d3")}
    assert counted.seen["at"] == counted.seen["scan"] == 0
    assert counted.seen["get"] == 0
    assert counted.seen["documents"] <= 4
    assert shown["/memories"].count("\n") == 1 + 7 + 40 + 1
    assert "0B\t/memories/blank.md" in shown["/memories"]
    assert shown["/memories/d3"].count("/memories/d3/") == 6
    gone = host.memories.at(ada, store, "/d3/00003.md")
    assert gone is not None
    host.lifecycle.delete(ada, gone.store.ref, gone.file.version)
    assert "00003" not in commands.run({"command": "view", "path": "/memories/d3"})


def test_two_hosts_agree_on_preconditions(make_host: Callable[..., Host], make_store: Any, ada: Actor) -> None:
    hosts = [make_host(store=make_store("shared.db")) for _ in range(2)]
    store = "memstore_" + hosts[0].memory_stores.create(ada, "a").id
    made = hosts[0].memories.create(ada, store, "/counter", "0")
    lost = 0
    start = threading.Barrier(2)
    failures: list[BaseException] = []
    done = Counter[int]()

    def count(number: int) -> None:
        nonlocal lost
        host = hosts[number]
        start.wait()
        while done[number] < 15:
            seen = host.memories.get(ada, store, "mem_" + made.file.id)
            try:
                text = f"{seen.content} {number}.{done[number]}"
                host.memories.update(ada, store, "mem_" + made.file.id, content=text, expected=seen.file.sha256)
                done[number] += 1
            except PreconditionFailed:
                lost += 1
            except StoreBusy:
                continue
            except BaseException as fault:
                failures.append(fault)
                return

    threads = [threading.Thread(target=count, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    text = hosts[1].memories.get(ada, store, "mem_" + made.file.id).content or ""
    assert sorted(text.split()[1:]) == sorted(f"{host}.{n}" for host in range(2) for n in range(15))
    rows = hosts[0].memory_versions.list(ada, store, VersionFilter(), limit=100).items
    sizes = [row.row.size or 0 for row in rows]
    assert len(rows) == 31
    assert sizes == sorted(sizes, reverse=True)


def test_two_creators_of_one_path(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    store = "memstore_" + host.memory_stores.create(ada, "a").id
    start = threading.Barrier(4)
    outcomes: list[str] = []

    def create(path: str) -> None:
        start.wait()
        try:
            host.memories.create(ada, store, path, "x")
            outcomes.append("made")
        except PathConflict:
            outcomes.append("taken")

    threads = [threading.Thread(target=create, args=(path,)) for path in ("/a", "/a", "/a/b", "/a/b/c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made", "taken", "taken", "taken"]
    assert len(host.memories.list(ada, store, limit=10).items) == 1


@pytest.mark.parametrize("verb", ["insert", "change", "link", "save", "drop"])
def test_a_write_that_breaks_off_leaves_nothing(
    make_host: Callable[..., Host], make_store: Any, ada: Actor, verb: str
) -> None:
    class Broken(Exception):
        pass

    class Breaking(Counted):
        armed = False

        def write(self, scope: Any, body: Callable[[Any], Any]) -> Any:
            def wrapped(tx: Any) -> Any:
                class Tx(_Tx):
                    def __getattr__(self, name: str) -> Any:
                        found = super().__getattr__(name)
                        if name != verb or not store.armed:
                            return found

                        def late(*args: Any, **kwargs: Any) -> Any:
                            found(*args, **kwargs)
                            raise Broken

                        return late

                return body(Tx(tx, Counter()))

            return self._store.write(scope, wrapped)

    store = Breaking(make_store())
    host = make_host(store=store)
    name = "memstore_" + host.memory_stores.create(ada, "a").id
    made = host.memories.create(ada, name, "/a", "The first text.")
    store.armed = True
    with pytest.raises(Broken):
        host.memories.update(ada, name, "mem_" + made.file.id, content="The second text.", path="/b")
    store.armed = False
    assert [(m.file.path, m.content) for m in host.memories.list(ada, name, limit=9).items] == [
        ("/a", "The first text.")
    ]
    assert len(host.memory_versions.list(ada, name, VersionFilter(), limit=9).items) == 1
    assert host.audit.verify(ada).ok


def test_events_hold_no_text(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    store = host.memory_stores.create(ada, "secretname", description="secretabout")
    name = "memstore_" + store.id
    made = host.memories.create(ada, name, "/secretpath", "secretcontent here")
    host.memories.update(ada, name, "mem_" + made.file.id, content="secretcontent again")
    host.memory_versions.redact(ada, name, "memver_" + made.file.version)
    host.memory_stores.update(ada, name, name="secretother")
    host.memory_stores.archive(ada, name)
    host.memory_stores.delete(ada, name)
    events = host.reader.events(ada)
    assert "secret" not in str([event.document() for event in events])
    kinds = {event.type for event in events}
    assert kinds >= {
        "memory_store.created",
        "memory_store.updated",
        "memory_store.archived",
        "memory_store.deleted",
        "memory.version",
        "memory.version_redacted",
    }


# pure


@given(st.text(min_size=0, max_size=60))
def test_a_path_is_plain_or_refused(text: str) -> None:
    path = "/" + text
    if path_fault(path) is None:
        segments = path[1:].split("/")
        assert all(segment not in ("", ".", "..") for segment in segments)
        assert "\0" not in path
        assert [*parents(path), path] == ["/" + "/".join(segments[: n + 1]) for n in range(len(segments))]


def test_ids_of_versions_sort_as_made() -> None:
    ids = VersionIds()
    made = [ids.new(at) for at in (1, 1, 1, 2, 5, 5, 1_700_000_000_000)]
    assert made == sorted(made)
    keys = [complement(one) for one in made]
    assert keys == sorted(keys, reverse=True)
    assert [complement(key) for key in keys] == made
    assert [one for one in keys if one > first_key(2)] == keys[:4]
    assert [one for one in keys if one > first_key(0)] == []


@pytest.mark.parametrize(
    ("error", "status", "kind", "retry"),
    [
        (StoreFull(), 500, "api_error", "false"),
        (StoreBusy(), 529, "overloaded_error", None),
        (ReverieError(), 500, "api_error", None),
        (PreconditionFailed(), 409, "memory_precondition_failed_error", "false"),
    ],
)
def test_errors_say_whether_to_try_again(error: ReverieError, status: int, kind: str, retry: str | None) -> None:
    assert status_of(error) == status
    body, headers = error_shape(status, {"error": error.reason, "message": "m"}, "req_1")
    assert body["error"]["type"] == kind
    assert body["error"]["details"]["error_code"] == error.reason
    assert headers.get("x-should-retry") == retry
    assert (headers.get("retry-after") == "1") == (status == 529)
