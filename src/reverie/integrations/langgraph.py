"""LangGraph: Reverie as the long-term store of a graph, and so of LangMem and DeepAgents.

    import reverie
    from reverie.integrations.langgraph import ReverieStore

    store = ReverieStore(reverie.open("./memory"))
    graph = builder.compile(store=store)

A namespace is a memory of its own: ("users", "ann") is the ref `langgraph/users/ann`. An item is an entry; its value is
kept in the entry's attributes, its text is what is searched. Notes written through another door, and dreams, are items
too: their key is the entry's id, their value `{"content": ...}`.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from reverie.core.errors import Conflict, Forbidden, NotFound, ReadOnly
from reverie.core.extras import require_release
from reverie.core.names import decode, digest, encode
from reverie.core.query import Filter

require_release("langgraph-checkpoint", "4.0", extra="langgraph", purpose="The LangGraph store")

from langgraph.store.base import (  # noqa: E402
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
)

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.library import Memory, Ref

Namespace = tuple[str, ...]
Made = TypeVar("Made", Item, SearchItem)

KIND = "item"
_ATTRIBUTE = "langgraph"
_MOST_TEXT = 60_000
"""Bytes of text that are searched; the value itself is kept whole."""
_MOST_QUERY = 4096
_MOST_HITS = 200
_MS_PER_MINUTE = 60_000
_THREADS = 8
"""Batches of one event loop that run at the same time; further calls wait, and become one batch."""


@dataclass
class _Queue:
    """The calls of an event loop: how many batches run, and which calls wait."""

    running: int = 0
    waiting: list[tuple[list[Op], asyncio.Future[list[Result]]]] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class ReverieStore(BaseStore):
    """A store over a Reverie memory, embedded or remote. Safe to share between threads and event loops.

    Reads of a batch see the state before it; puts to one namespace are one transaction. Queries are answered by
    Reverie's own search (words and meaning), so no embedding model is configured here. An item that does not answer a
    query follows those that do, with a score of 0; one that is not indexed has none.

    `root`: the first part of every ref. `fields`: which paths of a value are searched, unless a put has `index`; all of
    it by default. `ttl`: LangGraph's TTL settings; expired items are never returned. `pin`: whether items are kept out
    of dreams. With `pin=False` a dream may distil them: then `get` no longer finds them, and `search` finds the dream.
    `subject`: gives the person that the items of a namespace are about, so that a forget reaches them.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        root: str = "langgraph",
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        pin: bool = True,
        subject: Callable[[Namespace], str | None] | None = None,
    ) -> None:
        self.memory = memory
        self.ttl_config = ttl
        self._root = root
        self._fields = list(fields) if fields is not None else None
        self._pin = pin
        self._subject = subject
        self._lock = Lock()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; the answers are in their order."""
        ops = list(ops)
        for op in ops:
            _check(op)
        answers: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        read: dict[Any, Result] = {}
        for op in ops:
            if isinstance(op, PutOp):
                puts[(tuple(op.namespace), op.key)] = op
                answers.append(None)
                continue
            key = _key(op)
            if key in read:
                answers.append(deepcopy(read[key]))
            else:
                answers.append(self._read(op))
                read[key] = answers[-1]
        self._put(puts)
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` in a thread; calls of one event loop that wait for a thread are carried out as one batch."""
        ops = list(ops)
        for op in ops:
            _check(op)
        loop = asyncio.get_running_loop()
        with self._lock:
            queue = self._queues.setdefault(loop, _Queue())
        if queue.running >= _THREADS:
            future: asyncio.Future[list[Result]] = loop.create_future()
            queue.waiting.append((ops, future))
            return await future
        queue.running += 1
        try:
            return await asyncio.to_thread(self.batch, ops)
        finally:
            if queue.waiting:
                task = loop.create_task(self._serve(queue))
                queue.tasks.add(task)
                task.add_done_callback(queue.tasks.discard)
            else:
                queue.running -= 1

    async def _serve(self, queue: _Queue) -> None:
        """Carry out the waiting calls, all of them as one batch, until none waits."""
        try:
            while queue.waiting:
                calls, queue.waiting = queue.waiting, []
                answers = await asyncio.to_thread(self._batch_calls, [ops for ops, _ in calls])
                for (_, future), answer in zip(calls, answers, strict=True):
                    if future.done():
                        continue
                    if isinstance(answer, Exception):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        finally:
            queue.running -= 1

    def _batch_calls(self, calls: list[list[Op]]) -> list[list[Result] | Exception]:
        """The answers of several calls, as one batch; when it fails, each call by itself."""
        try:
            answers = iter(self.batch([op for ops in calls for op in ops]))
            return [list(islice(answers, len(ops))) for ops in calls]
        except Exception:
            return [self._batch_one(ops) for ops in calls]

    def _batch_one(self, ops: list[Op]) -> list[Result] | Exception:
        try:
            return self.batch(ops)
        except Exception as fault:
            return fault

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        return self._search(op) if isinstance(op, SearchOp) else self._namespaces(op)

    def _get(self, op: GetOp) -> Item | None:
        namespace = tuple(op.namespace)
        ref = self._ref(namespace)
        entry = _find(ref, op.key)
        if entry is None:
            return None
        if op.refresh_ttl:
            _refresh(ref, [entry])
        return _item(Item, namespace, entry)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        below = self._below(tuple(op.namespace_prefix))
        end = op.offset + op.limit
        query = (op.query or "").strip()[:_MOST_QUERY]
        results: list[tuple[Namespace, Entry, float | None]] = []
        if query:
            results += self._rank(below, query, op.filter, end)
        if len(results) < end:
            seen = {(namespace, entry.id) for namespace, entry, _ in results}
            rest = (one for one in self._newest(below, op.filter) if (one[0], one[1].id) not in seen)
            for namespace, entry in islice(rest, end - len(results)):
                results.append((namespace, entry, 0.0 if query and _is_indexed(entry) else None))
        shown = results[op.offset : end]
        if op.refresh_ttl:
            for namespace, entry, _ in shown:
                _refresh(self._ref(namespace), [entry])
        items = []
        for namespace, entry, score in shown:
            item = _item(SearchItem, namespace, entry)
            item.score = score
            items.append(item)
        return items

    def _rank(
        self, below: Sequence[Namespace], query: str, wanted: Mapping[str, Any] | None, most: int
    ) -> list[tuple[Namespace, Entry, float | None]]:
        """Hits of every namespace, best first, each entry once."""
        limit = _MOST_HITS if wanted else min(max(most, 1), _MOST_HITS)
        best: dict[tuple[Namespace, str], tuple[float, Entry]] = {}
        for namespace in below:
            for hit in self._ref(namespace).search(query, limit=limit).hits:
                key = (namespace, hit.entry.id)
                if key not in best and _is_indexed(hit.entry) and _matches(hit.entry, wanted):
                    best[key] = (hit.score, hit.entry)
        ordered = sorted(best.items(), key=lambda one: -one[1][0])
        return [(namespace, entry, score) for (namespace, _), (score, entry) in ordered[:most]]

    def _newest(
        self, below: Sequence[Namespace], wanted: Mapping[str, Any] | None
    ) -> Iterator[tuple[Namespace, Entry]]:
        """Entries of every namespace, last written first."""

        def each(namespace: Namespace) -> Iterator[tuple[Namespace, Entry]]:
            return ((namespace, entry) for entry in self._ref(namespace).entries() if _matches(entry, wanted))

        return heapq.merge(*(each(namespace) for namespace in below), key=lambda one: -one[1].created_at)

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        prefixes = [tuple(one.path) for one in conditions if one.match_type == "prefix"]
        fixed = max((_literal(path) for path in prefixes), key=len, default=())
        results = [name for name in self._below(fixed) if all(_fits(name, one) for one in conditions)]
        if op.max_depth is not None:
            results = [name[: op.max_depth] for name in results]
        return sorted(set(results))[op.offset : op.offset + op.limit]

    def _put(self, puts: Mapping[tuple[Namespace, str], PutOp]) -> None:
        drafts: dict[Namespace, list[dict[str, Any]]] = {}
        for (namespace, key), op in puts.items():
            if op.value is None:
                self._delete(namespace, key)
            else:
                drafts.setdefault(namespace, []).append(self._draft(namespace, op))
        for namespace, entries in drafts.items():
            self._ref(namespace).put_many(entries)

    def _draft(self, namespace: Namespace, op: PutOp) -> dict[str, Any]:
        if not isinstance(op.value, dict):
            raise TypeError("The value of an item is a dictionary.")
        before = _find(self._ref(namespace), op.key, foreign=False)
        now = _now()
        kept: dict[str, Any] = {"key": op.key, "value": op.value}
        if before is not None:
            kept["created_at"] = _about(before).get("created_at", before.created_at)
        fields = self._fields if op.index is None else op.index
        if fields is False:
            kept["index"] = False
        if op.ttl is not None:
            kept["ttl_ms"] = max(int(op.ttl * _MS_PER_MINUTE), 1)
        mark = _mark(op.key)
        return {
            "content": _text(op.value, fields) or f"Item {op.key}",
            "kind": KIND,
            "tags": [mark],
            "replaces": mark,
            "attributes": {_ATTRIBUTE: kept},
            "subject": self._subject(namespace) if self._subject else None,
            "created_at": before.created_at + 1 if before is not None and now <= before.created_at else None,
            "expires_at": None if op.ttl is None else now + int(kept["ttl_ms"]),
            "pinned": self._pin or fields is False,
        }

    def _delete(self, namespace: Namespace, key: str) -> None:
        ref = self._ref(namespace)
        entry = _find(ref, key)
        if entry is not None:
            try:
                ref.delete(entry.id)
            except NotFound:
                return

    def _ref(self, namespace: Namespace) -> Ref:
        return self.memory.ref(self._name(namespace))

    def _name(self, namespace: Namespace) -> str:
        name = "/".join([self._root, *map(encode, namespace)])
        if len(name) > 256:
            raise InvalidNamespaceError(f"A namespace is at most 256 characters as a ref; this one has {len(name)}.")
        return name

    def _below(self, prefix: Namespace) -> list[Namespace]:
        """The namespaces that have items and begin with these labels."""
        results = []
        for name, _ in self.memory.refs(self._name(prefix)):
            first, *labels = name.removeprefix(self._root).split("/")
            namespace = tuple(decode(label) for label in labels)
            if not first and name.startswith(self._root) and namespace[: len(prefix)] == prefix:
                results.append(namespace)
        return results


def _check(op: Op) -> None:
    """Refuse labels that no namespace can have, before any operation of a batch is carried out."""
    if isinstance(op, GetOp | PutOp):
        paths: list[Any] = [op.namespace]
    elif isinstance(op, SearchOp):
        paths = [op.namespace_prefix]
    elif isinstance(op, ListNamespacesOp):
        paths = [one.path for one in op.match_conditions or ()]
    else:
        raise TypeError(f"A store has no operation {type(op).__name__}.")
    for path in paths:
        for label in path:
            if not isinstance(label, str) or not label or "." in label or "\0" in label:
                raise InvalidNamespaceError(
                    f"A label of a namespace is a string without a period, and not empty. Got {label!r} in {path!r}."
                )


def _key(op: Op) -> Any:
    """A key that is equal for equal reads; a read that holds a list or a filter equals no other."""
    try:
        hash(op)
    except TypeError:
        return id(op)
    return type(op), op


def _find(ref: Ref, key: str, *, foreign: bool = True) -> Entry | None:
    """The entry of a key: an item, or an entry with that id that another door wrote."""
    found = ref.list(Filter(tags=(_mark(key),)), limit=1).items
    if found:
        return found[0]
    if not foreign:
        return None
    try:
        entry = ref.get(key)
    except NotFound:
        return None
    return None if _about(entry) else entry


def _about(entry: Entry) -> Mapping[str, Any]:
    """Return the attributes of an item besides its text; empty for an entry written by another interface."""
    about = entry.attributes.get(_ATTRIBUTE)
    return about if isinstance(about, Mapping) and "value" in about else {}


def _item(kind: type[Made], namespace: Namespace, entry: Entry) -> Made:
    about = _about(entry)
    value = about.get("value") or ({} if about else {"content": entry.content, "kind": entry.kind})
    return kind(
        namespace=namespace,
        key=about.get("key", entry.id),
        value=dict(value),
        created_at=_instant(about.get("created_at", entry.created_at)),
        updated_at=_instant(entry.created_at),
    )


def _is_indexed(entry: Entry) -> bool:
    return _about(entry).get("index") is not False


def _refresh(ref: Ref, entries: Iterable[Entry]) -> None:
    """Move the expiry of items that were read, unless it would move by less than a hundredth."""
    for entry in entries:
        ttl = _about(entry).get("ttl_ms")
        if ttl is None or entry.expires_at is None:
            continue
        expires_at = _now() + int(ttl)
        if expires_at - entry.expires_at > ttl / 100:
            try:
                ref.renew(entry.id, expires_at)
            except (NotFound, Conflict, Forbidden, ReadOnly):  # it is gone, or the caller may only read
                continue


def _mark(key: str) -> str:
    """The tag by which an item is found: a hash, since a key may be long, or look like a secret."""
    return f"~item:{digest(key)}"


def _now() -> int:
    return time.time_ns() // 1_000_000


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _text(value: Mapping[str, Any], fields: Sequence[str] | bool | None) -> str:
    """The text that is searched."""
    if fields is False:
        return ""
    if fields is None or fields is True or "$" in fields:
        leaves = list(_leaves(value, ""))
        lines = [leaves[0][1]] if len(leaves) == 1 else [f"{name}: {text}" for name, text in leaves]
    else:
        lines = [text for path in fields for text in get_text_at_path(value, path)]
    return "\n".join(lines).encode(errors="replace")[:_MOST_TEXT].decode(errors="ignore").strip().replace("\0", " ")


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, name)
    elif value is not None and str(value).strip():
        yield name, str(value)


def _matches(entry: Entry, wanted: Mapping[str, Any] | None) -> bool:
    if not wanted:
        return True
    value = _about(entry).get("value") or {"content": entry.content, "kind": entry.kind}
    return all(_compare(_at(value, key), condition) for key, condition in wanted.items())


def _at(value: Mapping[str, Any], key: str) -> Any:
    """The value of a key; a key with dots that is none is a path."""
    if key in value:
        return value[key]
    found: Any = value
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def _compare(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if any(str(name).startswith("$") for name in condition):
            return all(_holds(value, name, limit) for name, limit in condition.items())
        return isinstance(value, Mapping) and all(_compare(value.get(name), part) for name, part in condition.items())
    if isinstance(condition, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(condition)
        return same and all(_compare(one, part) for one, part in zip(value, condition, strict=True))
    return _equal(value, condition)


def _equal(value: Any, other: Any) -> bool:
    """JSON equality: true is not 1."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _holds(value: Any, name: str, limit: Any) -> bool:
    if name == "$eq":
        return _equal(value, limit)
    if name == "$ne":
        return not _equal(value, limit)
    if name not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"Unsupported operator: {name}. Known: $eq, $ne, $gt, $gte, $lt, $lte.")
    if value is None:
        return False
    if not (isinstance(value, str) and isinstance(limit, str)):
        try:
            value, limit = float(value), float(limit)
        except (TypeError, ValueError, OverflowError):
            return False
    return bool({"$gt": value > limit, "$gte": value >= limit, "$lt": value < limit, "$lte": value <= limit}[name])


def _literal(path: Sequence[str]) -> Namespace:
    """The labels of a path before its first wildcard."""
    return tuple(path[: list(path).index("*")] if "*" in path else path)


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
