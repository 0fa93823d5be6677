"""Prometheus metrics. Labels come from fixed vocabularies: never a text, a tenant or an id."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from reverie.core.entry import Receipt
from reverie.core.errors import ReverieError
from reverie.memory.export import Imported
from reverie.memory.hits import Context, SearchResult
from reverie.privacy.forget import Forgotten

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WRITE = "entries.put"
"""The use case whose callers wait for a commit."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ENTRIES = (1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0, 10000.0)


class _Row:
    """The observations of one label value."""

    __slots__ = ("_bounds", "_lock", "counts", "created", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._lock = Lock()
        self.counts = [0.0] * (len(bounds) + 1)
        self.sum = 0.0
        self.created = time.time()

    def add(self, amount: float) -> None:
        """Count an observation."""
        at = bisect_left(self._bounds, amount)
        with self._lock:
            self.counts[at] += 1
            self.sum += amount

    def samples(self) -> tuple[list[float], float]:
        """(Number of observations up to each bound, and of all; their sum.)"""
        with self._lock:
            return list(accumulate(self.counts)), self.sum


class _Histogram(Collector):
    """A histogram with at most one label. An observation takes one lock; the client library's takes two and a walk."""

    _type = "histogram"

    def __init__(self, name: str, text: str, label: str = "", *, buckets: Sequence[float], registry: CollectorRegistry):
        self._name, self._documentation, self._bounds = name, text, buckets
        self._labelnames = [label] if label else []
        self._rows: dict[str, _Row] = {}
        self._lock = Lock()
        if not label:
            self.row("")
        registry.register(self)

    def row(self, value: str) -> _Row:
        """The row of a label value; a new value gets one."""
        with self._lock:
            return self._rows.setdefault(value, _Row(self._bounds))

    def describe(self) -> Iterable[Metric]:
        return [HistogramMetricFamily(self._name, self._documentation, labels=self._labelnames)]

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labelnames)
        bounds = [*map(str, self._bounds), "+Inf"]
        for value, row in list(self._rows.items()):
            labels = [value] if self._labelnames else []
            counts, total = row.samples()
            family.add_metric(labels, list(zip(bounds, counts, strict=True)), total)
            family.add_sample(f"{self._name}_created", dict(zip(self._labelnames, labels, strict=True)), row.created)
        return [family]


class _Read(Collector):
    """A gauge that is read when metrics are collected."""

    def __init__(self, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        self._name, self._text, self._label, self._read = name, text, label, read

    def describe(self) -> Iterable[Metric]:
        return [GaugeMetricFamily(self._name, self._text, labels=[self._label])]

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=[self._label])
        try:
            for value, number in self._read().items():
                family.add_metric([value], number)
        except ReverieError:
            return []
        return [family]


class Metrics:
    """Every metric of one application, in a registry of its own."""

    def __init__(self, version: str = "") -> None:
        self.registry = registry = CollectorRegistry()
        Info("reverie", "The running version.", registry=registry).info({"version": version})
        self.requests = Counter(
            "reverie_requests_total",
            "Requests by route template, method and status class.",
            ["route", "method", "status"],
            registry=registry,
        )
        self.request_seconds = _Histogram(
            "reverie_request_seconds", "Time to answer.", "route", buckets=_SECONDS, registry=registry
        )
        self._requests_now = self._writes_now = 0
        self._lock = Lock()
        self.in_flight = Gauge("reverie_requests_in_flight", "Requests being answered.", registry=registry)
        self.in_flight.set_function(lambda: self._requests_now)
        self.streams = Gauge("reverie_event_streams", "Open event streams.", registry=registry)
        self.refused = Counter("reverie_refused_total", "Refused requests, by code.", ["code"], registry=registry)
        self.calls = _Histogram(
            "reverie_call_seconds", "Time of a use case.", "call", buckets=_SECONDS, registry=registry
        )
        self.failures = Counter(
            "reverie_call_failures_total", "Use cases that raised, by code.", ["call", "code"], registry=registry
        )
        self.waiting = Gauge("reverie_writes_in_flight", "Writes that wait for their commit.", registry=registry)
        self.waiting.set_function(lambda: self._writes_now)
        self.writes = Counter("reverie_writes_total", "Acknowledged writes.", registry=registry)
        self.entries = Counter("reverie_entries_stored_total", "Entries stored.", registry=registry)
        self.replays = Counter("reverie_replays_total", "Retries answered without a write.", registry=registry)
        self.batch = _Histogram("reverie_write_entries", "Entries in one write.", buckets=_ENTRIES, registry=registry)
        self.redactions = Counter("reverie_redactions_total", "Secrets replaced, by kind.", ["kind"], registry=registry)
        self.degraded = Counter(
            "reverie_degraded_recalls_total",
            "Degraded searches, by reason.",
            ["reason"],
            registry=registry,
        )
        self.forgotten = Counter("reverie_forgotten_total", "Entries destroyed by forget.", registry=registry)
        self.events = Counter("reverie_events_sent_total", "Events sent to streams.", registry=registry)
        self.sweeps = Counter("reverie_sweeps_total", "Sweeps by outcome.", ["outcome"], registry=registry)
        self.jobs = Counter(
            "reverie_jobs_total", "Jobs run, by name and outcome.", ["job", "outcome"], registry=registry
        )
        self.swept = Counter("reverie_swept_total", "Entries destroyed by sweeps.", registry=registry)
        # Looking a label up takes longer than counting.
        self._requests: dict[tuple[str, str, int], tuple[Counter, _Row]] = {}
        self._calls: dict[str, _Row] = {}
        self._written = self.batch.row("")
        self.window_turns = Counter(
            "reverie_window_turns_total", "Turns of provider windows, by continuation.", ["status"], registry=registry
        )
        self.window_passes = Counter(
            "reverie_window_passes_total", "Compactions considered, by outcome.", ["status"], registry=registry
        )
        self.window_tokens = Counter(
            "reverie_window_tokens_total", "Tokens of turns and passes.", ["of", "kind"], registry=registry
        )
        self.window_losses = Counter(
            "reverie_window_cache_loss_total",
            "Losses of the prompt cache, by cause.",
            ["cause"],
            registry=registry,
        )

    def watch(self, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Add a gauge that `read` supplies when metrics are collected. One that cannot be read is left out."""
        self.registry.register(_Read(name, text, label, read))

    def begin_request(self) -> None:
        """Count a request that has begun."""
        with self._lock:
            self._requests_now += 1

    def end_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request. `route` is a template, never a path."""
        key = route, method if method in METHODS else "OTHER", status // 100
        counters = self._requests.get(key)
        if counters is None:
            counters = self._requests[key] = (
                self.requests.labels(key[0], key[1], f"{key[2]}xx"),
                self.request_seconds.row(route),
            )
        counters[0].inc()
        counters[1].add(seconds)
        with self._lock:
            self._requests_now -= 1

    def begin_write(self) -> None:
        """Count a write as waiting for its commit, until it returns or fails."""
        with self._lock:
            self._writes_now += 1

    def _end(self, name: str) -> None:
        if name == WRITE:
            with self._lock:
                self._writes_now -= 1

    def call(self, name: str, seconds: float, result: Any) -> None:
        """Count a use case that returned."""
        self._end(name)
        timer = self._calls.get(name)
        if timer is None:
            timer = self._calls[name] = self.calls.row(name)
        timer.add(seconds)
        if isinstance(result, list) and result and isinstance(result[0], Receipt):
            self._count_stored(result)
        elif isinstance(result, Imported):
            self.entries.inc(result.entries)
            self._count_redacted(result.findings)
        elif isinstance(result, SearchResult | Context):
            for reason in result.degraded:
                self.degraded.labels(reason).inc()
        elif isinstance(result, Forgotten) and not result.preview:
            self.forgotten.inc(result.forgotten)

    def job(self, name: str, outcome: str) -> None:
        """Count a job that was run: `done` or `failed`."""
        self.jobs.labels(name, outcome).inc()

    def failed(self, name: str, fault: BaseException) -> None:
        """Count a use case that raised. An interruption is no failure."""
        self._end(name)
        if isinstance(fault, Exception):
            code = fault.reason if isinstance(fault, ReverieError) else "internal_error"
            self.failures.labels(name, code).inc()

    def window(self, diagnostics: Mapping[str, Any]) -> None:
        """Count a turn of a provider window by its diagnostics, whose values are a fixed vocabulary."""
        continuation, passed = diagnostics.get("incremental_continuation"), diagnostics.get("remote_compaction")
        cache = diagnostics.get("cache") or {}
        if continuation:
            self.window_turns.labels(continuation["status"]).inc()
        if passed:
            self.window_passes.labels(passed["status"]).inc()
        if cache.get("cache_loss"):
            self.window_losses.labels(cache["cache_loss"]).inc()
        used = (passed or {}).get("usage") or {}
        for of, figures in (("turn", cache), ("pass", used)):
            for kind in ("input_tokens", "cached_tokens", "output_tokens"):
                if isinstance(figures.get(kind), int):
                    self.window_tokens.labels(of, kind.removesuffix("_tokens")).inc(figures[kind])

    def render(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return generate_latest(self.registry)

    def _count_stored(self, receipts: Sequence[Receipt]) -> None:
        new = [receipt for receipt in receipts if not receipt.replayed]
        if not new:
            self.replays.inc()
            return
        self.writes.inc()
        self.entries.inc(len(new))
        self._written.add(len(new))
        for receipt in new:
            self._count_redacted(receipt.findings)

    def _count_redacted(self, findings: Any) -> None:
        for kind, count in findings.items():
            self.redactions.labels(kind).inc(count)
