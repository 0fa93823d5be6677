"""A host whose use cases are timed, counted and traced. The host itself knows nothing of it."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reverie.host import Host
from reverie.ops.metrics import Metrics
from reverie.ops.traces import Traces

UNWATCHED = frozenset({"keys", "cursors", "faults"})
"""Not use cases of a tenant's memory, or called so often and so short that watching would cost more than they do."""


def observed(host: Host, metrics: Metrics, traces: Traces) -> Host:
    """A view of `host` for doors: the same use cases, watched from outside."""
    view = copy.copy(host)
    for name, part in host.use_cases().items():
        if name not in UNWATCHED:
            setattr(view, name, _Watched(part, name, metrics, traces))
    return view


class _Watched:
    """One part of the host; calls to its methods pass through `_call`."""

    def __init__(self, part: Any, name: str, metrics: Metrics, traces: Traces) -> None:
        self._part = part
        self._name = name
        self._metrics = metrics
        self._traces = traces

    def __getattr__(self, method: str) -> Any:
        inner = getattr(self._part, method)
        if method.startswith("_") or not inspect.ismethod(inner) or inspect.isgeneratorfunction(inner):
            return inner  # the time of a generator is its reader's
        if inspect.iscoroutinefunction(inner):  # the same call, for callers in an event loop
            watched = self._watch_awaited(f"{self._name}.{method.removesuffix('_soon')}", inner)
        else:
            watched = self._watch(f"{self._name}.{method}", inner)
        setattr(self, method, watched)  # found from now on without asking here
        return watched

    def _watch(self, call: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            with self._counted(call) as done:
                return done(inner(*arguments, **named))

        return watched

    def _watch_awaited(self, call: str, inner: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        async def watched(*arguments: Any, **named: Any) -> Any:
            with self._counted(call) as done:
                return done(await inner(*arguments, **named))

        return watched

    @contextmanager
    def _counted(self, call: str) -> Iterator[Callable[[Any], Any]]:
        """Counts and times what the block does. It passes its result through the function it is given."""
        started = time.perf_counter()
        waits = call == "writing.put"

        def done(result: Any) -> Any:
            self._metrics.call(call, time.perf_counter() - started, result)
            return result

        if waits:
            self._metrics.waiting.inc()
        try:
            with self._traces.span(call):
                yield done
        except Exception as fault:
            self._metrics.failed(call, fault)
            raise
        finally:
            if waits:
                self._metrics.waiting.dec()
