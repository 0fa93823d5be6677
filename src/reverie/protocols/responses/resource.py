"""`window.responses`: the SDK's own resource, with the window between it and the wire.

Everything that a caller sees (signatures, parsing, streams, raw answers) is the SDK's code. Only the request itself
goes through the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

from openai._streaming import AsyncStream as SdkAsyncStream
from openai._streaming import Stream as SdkStream
from openai.resources.responses import AsyncInputTokens, AsyncResponses, InputTokens, Responses
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from reverie.window.calls import SdkCall, WindowResource
from reverie.window.turn import InputIs

if TYPE_CHECKING:
    import httpx2

    from reverie.protocols.responses.sdk import AsyncWindow, SyncWindow

_GIVEN: ContextVar[tuple[Any, InputIs] | None] = ContextVar("given", default=None)
"""The input of the call under way. It does not go through the SDK, which would walk through every item of it."""


class CreateParams(ResponseCreateParamsBase, total=False):
    """Parameters of `create`: the SDK's, and `input_is`."""

    input_is: InputIs
    """`items`: `input` is what is new (the default). `history`: it is everything the caller knows."""
    extra_headers: Mapping[str, Any] | None
    extra_query: Mapping[str, object] | None
    extra_body: object | None
    timeout: float | httpx2.Timeout | None


@contextmanager
def _bind_input(value: Any, input_is: InputIs) -> Iterator[None]:
    token = _GIVEN.set((value, input_is))
    try:
        yield
    finally:
        _GIVEN.reset(token)


def _pop_input(arguments: dict[str, Any]) -> tuple[Any, InputIs]:
    """(input, input_is) of a call, taken out of its arguments."""
    value = arguments.pop("input", None)
    input_is: InputIs = arguments.pop("input_is", "items")
    return (None if type(value).__name__ in ("Omit", "NotGiven") else value), input_is


def _request(body: Any, options: Mapping[str, Any]) -> tuple[Any, InputIs, dict[str, Any], dict[str, Any]]:
    """(input, input_is, the other parameters, options) of a request that the SDK made."""
    params = dict(cast("Mapping[str, Any]", body or {}))
    params.pop("stream", None)
    extra = dict(cast("Mapping[str, Any]", options.get("extra_json") or {}))
    written = params.pop("input", None)
    value, input_is = _GIVEN.get() or (written, "items")
    if "input" in extra:
        value = extra.pop("input")
    rest = {name: part for name, part in options.items() if name != "extra_json"}
    return value, input_is, params, rest | ({"extra_json": extra} if extra else {})


class _Counts(InputTokens):
    """`input_tokens` inside a window: counts the tokens that a turn with the new items would send."""

    def __init__(self, window: SyncWindow, client: Any) -> None:
        super().__init__(client)
        self._post = lambda path, *, body=None, **more: client.post(path, body=window.counted(body), **more)


class _AsyncCounts(AsyncInputTokens):
    """`input_tokens` inside a window: counts the tokens that a turn with the new items would send."""

    def __init__(self, window: AsyncWindow, client: Any) -> None:
        super().__init__(client)

        async def post(path: str, *, body: Any = None, **more: Any) -> Any:
            return await client.post(path, body=await window.counted(body), **more)

        self._post = post


class _Resource(WindowResource):
    """`responses` of either SDK client."""

    create_path = "/responses"

    def __init__(self, window: Any, client: Any) -> None:
        super().__init__(window, client)
        self._get = self._fetch

    def _ask(self, body: Any, call: SdkCall, *, stream: bool) -> Any:
        value, input_is, params, call.options = _request(body, call.options)
        return self._window.ask(value, input_is, params, call, stream=stream)

    def _send(self, path: str, **arguments: Any) -> Any:
        if path.endswith("/cancel"):
            call = SdkCall(dict(arguments.get("options") or {}), arguments["cast_to"], arguments.get("stream_cls"))
            return self._window.look("post", path, call)
        return super()._send(path, **arguments)

    def _fetch(
        self,
        path: str,
        *,
        cast_to: Any,
        options: Mapping[str, Any] | None = None,
        stream: bool = False,
        stream_cls: Any = None,
    ) -> Any:
        return self._window.look("get", path, SdkCall(dict(options or {}), cast_to, stream_cls), stream=stream)


class WindowResponses(_Resource, Responses):
    """`client.responses` inside a window."""

    @property
    def input_tokens(self) -> InputTokens:
        """Exact counts: `count(input=...)` takes what is new, and counts the window with it."""
        return _Counts(self._window, self._whole)

    @overload  # type: ignore[override]
    def create(self, *, stream: Literal[True], **arguments: Unpack[CreateParams]) -> SdkStream[ResponseStreamEvent]: ...

    @overload
    def create(self, *, stream: Literal[False] | None = None, **arguments: Unpack[CreateParams]) -> Response: ...

    @overload
    def create(
        self, *, stream: bool, **arguments: Unpack[CreateParams]
    ) -> Response | SdkStream[ResponseStreamEvent]: ...

    def create(self, **arguments: Any) -> Any:
        """`client.responses.create` inside the window. `input` is what is new, or with `input_is="history"` all.

        `store` is the provider's field, whether it keeps the response, and overrides the policy's; the memory is the
        `store` that the window was opened with.
        """
        value, input_is = _pop_input(arguments)
        with _bind_input(value, input_is):
            return super().create(**arguments)


class AsyncWindowResponses(_Resource, AsyncResponses):
    """`client.responses` inside a window."""

    @property
    def input_tokens(self) -> AsyncInputTokens:
        """Exact counts: `count(input=...)` takes what is new, and counts the window with it."""
        return _AsyncCounts(self._window, self._whole)

    @overload  # type: ignore[override]
    async def create(
        self, *, stream: Literal[True], **arguments: Unpack[CreateParams]
    ) -> SdkAsyncStream[ResponseStreamEvent]: ...

    @overload
    async def create(self, *, stream: Literal[False] | None = None, **arguments: Unpack[CreateParams]) -> Response: ...

    @overload
    async def create(
        self, *, stream: bool, **arguments: Unpack[CreateParams]
    ) -> Response | SdkAsyncStream[ResponseStreamEvent]: ...

    async def create(self, **arguments: Any) -> Any:
        """`client.responses.create` inside the window. `input` is what is new, or with `input_is="history"` all.

        `store` is the provider's field, whether it keeps the response, and overrides the policy's; the memory is the
        `store` that the window was opened with.
        """
        value, input_is = _pop_input(arguments)
        with _bind_input(value, input_is):
            return await super().create(**arguments)
