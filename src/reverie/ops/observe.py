"""Timing, counting and tracing of a host's use cases, from outside: the host does not know of it."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from reverie.host import Host
from reverie.ops.metrics import WRITE, Metrics
from reverie.ops.traces import Traces

UNWATCHED = frozenset({"keys", "cursors", "faults", "workflows"})
"""Parts that are not use cases of a tenant's memory, or whose calls are so short that watching costs more than they do.
"""


def observed(host: Host, metrics: Metrics, traces: Traces) -> Host:
    """A view of `host` for doors: the same use cases, each timed, counted and traced."""
    view = copy.copy(host)
    for name, part in host.use_cases().items():
        if name not in UNWATCHED:
            setattr(view, name, _Watched(part, name, metrics, traces))
    return view


class _Watched:
    """One part of the host, whose method calls are watched."""

    def __init__(self, part: Any, name: str, metrics: Metrics, traces: Traces) -> None:
        self._part = part
        self._name = name
        self._metrics = metrics
        self._traces = traces

    def __getattr__(self, method: str) -> Any:
        inner = getattr(self._part, method)
        if method.startswith("_") or not inspect.ismethod(inner) or inspect.isgeneratorfunction(inner):
            return inner  # the time that a generator takes depends on its reader
        if inspect.iscoroutinefunction(inner):  # counted as the same use case
            watched = self._watch_awaited(f"{self._name}.{method.removesuffix('_soon')}", inner)
        else:
            watched = self._watch(f"{self._name}.{method}", inner)
        setattr(self, method, watched)  # later look-ups find it without this method
        return watched

    def _watch(self, call: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        span = partial(self._traces.span, call) if self._traces.on else nullcontext

        def watched(*arguments: Any, **named: Any) -> Any:
            with span(), _Timed(self._metrics, call) as timed:
                return timed.result(inner(*arguments, **named))

        return watched

    def _watch_awaited(self, call: str, inner: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        span = partial(self._traces.span, call) if self._traces.on else nullcontext

        async def watched(*arguments: Any, **named: Any) -> Any:
            with span(), _Timed(self._metrics, call) as timed:
                return timed.result(await inner(*arguments, **named))

        return watched


class _Timed:
    """Counts and times a call. Its result passes through `result`."""

    __slots__ = ("_call", "_metrics", "_started")

    def __init__(self, metrics: Metrics, call: str) -> None:
        self._metrics = metrics
        self._call = call
        self._started = time.perf_counter()

    def __enter__(self) -> _Timed:
        if self._call == WRITE:
            self._metrics.begin_write()
        return self

    def result(self, result: Any) -> Any:
        self._metrics.call(self._call, time.perf_counter() - self._started, result)
        return result

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: object) -> None:
        if fault is not None:
            self._metrics.failed(self._call, fault)
