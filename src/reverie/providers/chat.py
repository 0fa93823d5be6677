"""One question to a chat model and its answer, for every provider.

Faults carry a kind from a fixed vocabulary and no words of a provider: these may quote memory text or a key.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, TypeVar

from reverie.core.extras import require

T = TypeVar("T")

LIMITED: Final = "rate_limited"
DOWN: Final = "unavailable"
SLOW: Final = "timeout"
TOO_LONG: Final = "input_too_long"
REFUSED: Final = "refused"
DENIED: Final = "denied"
NONSENSE: Final = "unusable_answer"
RETRYABLE: Final = frozenset({LIMITED, DOWN, SLOW, NONSENSE})
_LENGTH = ("context_length", "context length", "context limit", "context window", "too long")
"""Phrases with which providers report that a request exceeds the model's context."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a model: instructions, data, and the JSON schema of the answer."""

    system: str
    user: str
    schema: Mapping[str, Any]
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The answer of a model. `cut`: the output tokens ran out."""

    text: str
    input_tokens: int
    output_tokens: int
    cut: bool = False


class ModelFault(Exception):
    """A call without an answer. `billed`: the provider may have done the work nevertheless, and charge for it."""

    def __init__(self, kind: str, *, retry_after: float | None = None, billed: bool = False) -> None:
        super().__init__(kind)
        self.kind = kind
        self.retry_after = retry_after
        self.billed = billed


class Unsupported(Exception):
    """The endpoint does not accept a parameter; call again without it."""


class ChatModel(Protocol):
    """A model behind an API."""

    @property
    def name(self) -> str:
        """Provider and model: `openai/gpt-5-mini`."""

    @property
    def parameters(self) -> str:
        """All parameters that shape an answer, for the fingerprint."""

    def ask(self, prompt: Prompt, *, seconds: float) -> ChatReply:
        """Make one call, of at most `seconds`. Raises ModelFault; Unsupported if a plainer call may succeed."""


def require_sdk(package: str) -> None:
    """Raise an error that names the extra, if the client of the provider is not installed."""
    require(package, extra=package, purpose=f"REVERIE_MODEL_PROVIDER={package}")


@cache
def trust() -> ssl.SSLContext:
    """Return the TLS context that all clients share: loading certificates is the slowest step of a new client."""
    import httpx2

    return httpx2.create_ssl_context()


def keep_quiet(*loggers: str) -> None:
    """Silence the loggers of a client: it may log whole requests, which hold memory text."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.WARNING)


def answered(
    sdk: Any,
    base: type[Exception],
    client: Any,
    send: Callable[[], T],
    *,
    seconds: float,
    words: Callable[[Any], str],
    plainer: Callable[[str], bool],
) -> T:
    """Return the answer of a provider's client, and close the client, which ends any call still in progress.

    The official clients name their errors alike; `base` is their common base class. `words` returns the message of an
    error. Raises ModelFault; Unsupported if `plainer` gave up the part of the call that was refused.
    """
    import httpx2

    fault: ModelFault | None = None
    try:
        return within(seconds, send)
    except ModelFault as slow:
        fault = slow
    except sdk.APITimeoutError:
        fault = ModelFault(SLOW, billed=True)
    except sdk.APIConnectionError as error:
        fault = ModelFault(DOWN, billed=not isinstance(error.__cause__, httpx2.ConnectError))
    except sdk.APIStatusError as error:
        said = words(error).lower()
        if error.status_code not in (400, 422) or not plainer(said):
            fault = _refusal(error.status_code, said, _wait_of(error.response.headers))
    except (base, ValueError):  # ValueError: a body that is not JSON
        fault = ModelFault(NONSENSE, billed=True)
    finally:
        client.close()
    # Raised outside the handler, so that its context holds no words of the provider.
    raise fault or Unsupported


def _refusal(status: int, said: str, retry_after: float | None) -> ModelFault:
    if status == 429:
        # An empty account answers 429 as well, and waiting does not help.
        return ModelFault(DENIED) if "insufficient_quota" in said else ModelFault(LIMITED, retry_after=retry_after)
    if status in (408, 409) or status >= 500:
        return ModelFault(DOWN, retry_after=retry_after)
    if status in (401, 402, 403, 404):
        return ModelFault(DENIED)
    if status == 413 or any(one in said for one in _LENGTH):
        return ModelFault(TOO_LONG)
    return ModelFault(REFUSED)


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call`. Raises ModelFault if it takes longer than `seconds`.

    A client's own timeout restarts with every byte, so an endpoint that sends one byte a second would never time out.
    The call continues in its thread until the client gives up; no caller waits for it.
    """
    result: list[T] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as fault:  # handed to the caller below
            faults.append(fault)

    thread = threading.Thread(target=run, name="reverie-model", daemon=True)
    thread.start()
    thread.join(max(seconds, 0.001))
    if faults:
        raise faults[0]
    if not result:
        raise ModelFault(SLOW, billed=True)
    return result[0]


def address_mark(url: str) -> str:
    """Return an endpoint for the fingerprint, hashed because a URL can hold a password."""
    return hashlib.sha256(url.encode()).hexdigest()[:12] if url else "default"


def _wait_of(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a `retry-after` header, if it has a number."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
