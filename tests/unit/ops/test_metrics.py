"""The page that Prometheus reads."""

from __future__ import annotations

import re
from threading import Thread

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from reverie.ops.metrics import Metrics

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def of(page: bytes, name: str) -> list[str]:
    """The lines about one metric, without the time at which it was made."""
    return [re.sub(r"(_created\S*) .*", r"\1", line) for line in page.decode().splitlines() if name in line]


def test_a_histogram_is_exported_like_the_clients_own() -> None:
    ours, theirs = Metrics(), CollectorRegistry()
    model = Histogram("reverie_call_seconds", "Time of a use case.", ["call"], buckets=BOUNDS, registry=theirs)
    for name, seconds in (("entries.put", 0.001), ("entries.put", 0.0011), ("search.search", 99.0)):
        ours.call(name, seconds, None)
        model.labels(name).observe(seconds)
    assert of(ours.render(), "reverie_call_seconds") == of(generate_latest(theirs), "reverie_call_seconds")


def test_no_request_is_lost_between_threads() -> None:
    metrics = Metrics()

    def answer() -> None:
        for _ in range(2000):
            metrics.begin_request()
            metrics.end_request("/healthz", "GET", 200, 0.002)

    threads = [Thread(target=answer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    page = metrics.render().decode()
    assert 'reverie_request_seconds_count{route="/healthz"} 8000.0' in page
    assert "reverie_requests_in_flight 0.0" in page
