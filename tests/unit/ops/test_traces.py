"""Traces: off by default; on, they hold names and never a message."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.ops.metrics import Metrics
from reverie.ops.observe import observed
from reverie.ops.traces import ENDPOINT, Traces, configured


def test_off_unless_asked_for() -> None:
    assert not configured({}).on
    with Traces().span("anything") as span:
        assert span is None


def test_off_without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert not configured({ENDPOINT: "http://127.0.0.1:1"}).on


def test_spans_name_the_use_case_and_nothing_else(make_host: Callable[..., Host], ada: Actor) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    host = observed(make_host(), Metrics(), Traces(provider))
    host.entries.put(ada, "notes", [Draft(content="Zanzibar is warm.")])
    with pytest.raises(Exception, match="empty"):
        host.entries.put(ada, "notes", [Draft(content=" ")])
    spans = kept.get_finished_spans()
    assert [span.name for span in spans] == ["entries.put", "entries.put"]
    assert spans[1].attributes == {"error.type": "Invalid"}
    assert not spans[1].events
    assert "Zanzibar" not in repr([span.to_json() for span in spans])
