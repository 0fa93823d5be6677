"""OpenTelemetry spans around requests and use cases: names and ids, no text, no tenant.

Tracing is off and costs nothing unless the SDK is installed (`pip install 'reverie[otel]'`) and
OTEL_EXPORTER_OTLP_ENDPOINT is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Traces:
    """Makes spans; does nothing when tracing is off."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer: Tracer | None = provider.get_tracer("reverie") if provider else None

    @property
    def on(self) -> bool:
        """Whether spans are made."""
        return self._tracer is not None

    def span(self, name: str, attributes: Mapping[str, str | int] | None = None) -> AbstractContextManager[Any]:
        """A span around a block. A failure is recorded by type, never by message."""
        return nullcontext() if self._tracer is None else self._span(self._tracer, name, attributes or {})

    @contextmanager
    def _span(self, tracer: Tracer, name: str, attributes: Mapping[str, str | int]) -> Iterator[Any]:
        from opentelemetry.trace import StatusCode

        with tracer.start_as_current_span(
            name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as fault:
                span.set_attribute("error.type", type(fault).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    def close(self) -> None:
        """Send the pending spans."""
        shutdown = getattr(self._provider, "shutdown", None)
        if shutdown is not None:
            shutdown()


def configured(environment: Mapping[str, str] | None = None) -> Traces:
    """The traces that the environment configures."""
    environment = os.environ if environment is None else environment
    if not environment.get(ENDPOINT):
        return Traces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return Traces()
    provider = SdkProvider(resource=Resource.create({"service.name": "reverie"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Traces(provider)
