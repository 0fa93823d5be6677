"""Calls of either SDK: the resource that makes them, their options, and their events as JSON text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from reverie.window.items import compact, plain
from reverie.window.steps import RequestOutcome, Send
from reverie.window.streaming import Reading

RAW = "X-Stainless-Raw-Response"
"""The SDK's header that requests a raw answer."""


@dataclass(slots=True)
class SdkCall:
    """One call of the SDK: its options, and its conversion of the answer."""

    options: dict[str, Any]
    cast_to: Any = None
    stream_cls: Any = None

    @property
    def raw(self) -> str | None:
        """Requested form of the answer: parsed (None), as a raw answer (`true`), or one that is read later."""
        found = (self.options.get("headers") or {}).get(RAW)
        return None if found is None else str(found)


def request_of(step: Send, call: SdkCall, *, path: str, headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the client's own request method for a step that the caller asked for."""
    options = {**call.options, "headers": headers}
    if step.stream and step.silence is not None and "timeout" not in options:
        import httpx2

        options["timeout"] = httpx2.Timeout(600.0, read=step.silence)
    return {
        "path": path,
        "cast_to": call.cast_to,
        "body": {**step.body, "stream": True} if step.stream else dict(step.body),
        "options": options,
        "stream": step.stream,
        "stream_cls": call.stream_cls,
    }


def stream_outcome(reading: Reading) -> RequestOutcome:
    """A stream that was read to its end, as one answer."""
    if reading.failure is not None:
        return RequestOutcome(400, compact({"error": {"code": reading.failure.code, "message": ""}}))
    return RequestOutcome(200, reading.body()) if reading.response is not None else RequestOutcome(None)


class Tee:
    """Notes the JSON text of each event of an SDK stream as it passes."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.data: str | None = None
        source = getattr(stream, "_iter_events", None)
        if source is not None:
            asynchronous = hasattr(stream, "__aiter__")
            stream._iter_events = self._async(source) if asynchronous else self._sync(source)

    def _sync(self, source: Any) -> Any:
        def events() -> Iterator[Any]:
            for sse in source():
                self.data = sse.data
                yield sse

        return events

    def _async(self, source: Any) -> Any:
        async def events() -> AsyncIterator[Any]:
            async for sse in source():
                self.data = sse.data
                yield sse

        return events

    def text(self, event: Any) -> str:
        """The JSON text of the event just passed."""
        data, self.data = self.data, None
        return data if data is not None else compact(plain(event))


class WindowResource:
    """Base of an SDK resource whose requests go through a window, blocking or awaited as the window is."""

    create_path: ClassVar[str]

    def __init__(self, window: Any, client: Any) -> None:
        super().__init__(client)  # type: ignore[call-arg]
        self._window = window
        self._whole = client
        self._post = self._send

    def _ask(self, body: Any, call: SdkCall, *, stream: bool) -> Any:
        """Send a request through the window."""
        raise NotImplementedError

    def _send(
        self,
        path: str,
        *,
        cast_to: Any,
        body: Any = None,
        options: Mapping[str, Any] | None = None,
        stream: bool = False,
        stream_cls: Any = None,
        **more: Any,
    ) -> Any:
        call = SdkCall(dict(options or {}), cast_to, stream_cls)
        if path == self.create_path:
            return self._ask(body, call, stream=stream)
        return self._whole.post(
            path, cast_to=cast_to, body=body, options=call.options, stream=stream, stream_cls=stream_cls, **more
        )
