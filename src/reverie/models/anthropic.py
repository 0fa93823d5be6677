"""Anthropic's models, through the official client."""

from __future__ import annotations

import json
import threading
from typing import Any

from reverie.models.chat import (
    DENIED,
    DOWN,
    LIMITED,
    NONSENSE,
    REFUSED,
    SLOW,
    TOO_LONG,
    ModelFault,
    Prompt,
    Reply,
    Unsupported,
    address_mark,
    keep_quiet,
    require_sdk,
    wait_of,
    within,
)

_TOOL = "record"


class AnthropicModel:
    """A model of Anthropic's, or of an endpoint that speaks its messages.

    Structured output where the model has it, else one tool the model must call. Temperature and seed are not sent:
    the API takes none. The client's own retries are off.
    """

    def __init__(self, model: str, *, api_key: str = "", base_url: str = "") -> None:
        require_sdk("anthropic")
        self._model = model
        self._key = api_key
        self._base_url = base_url
        self._lock = threading.Lock()
        self._client: Any = None
        self._structured = True
        self._thoughtless = True

    def __repr__(self) -> str:
        return f"<AnthropicModel {self._model}>"

    @property
    def name(self) -> str:
        return f"anthropic/{self._model}"

    @property
    def parameters(self) -> str:
        return f"messages thinking=off url={address_mark(self._base_url)}"

    def ask(self, prompt: Prompt, *, seconds: float) -> Reply:
        import anthropic
        import httpx2

        keep_quiet("anthropic", "httpx2", "httpcore2")
        client = self._opened(anthropic)
        fault: ModelFault | None = None
        try:
            answer = within(seconds, lambda: client.messages.create(**self._call(prompt), timeout=seconds))
        except anthropic.APITimeoutError:
            fault = ModelFault(SLOW, billed=True)
        except anthropic.APIConnectionError as error:
            fault = ModelFault(DOWN, billed=not isinstance(error.__cause__, httpx2.ConnectError))
        except anthropic.APIStatusError as error:
            told = f"{error.error_code or ''} {error.message}".lower()
            if error.status_code not in (400, 422) or not self._plainer(told):
                fault = _fault(error.status_code, told, wait_of(error.response.headers))
        except anthropic.AnthropicError:
            fault = ModelFault(NONSENSE, billed=True)
        except ValueError:  # a body that is not JSON
            fault = ModelFault(NONSENSE, billed=True)
        else:
            return _reply(answer)
        # Raised outside the handler, so that no provider's words hang on it as context.
        raise fault or Unsupported

    def _opened(self, anthropic: Any) -> Any:
        with self._lock:
            if self._client is None:
                self._client = anthropic.Anthropic(
                    api_key=self._key or "none",
                    base_url=self._base_url or None,
                    max_retries=0,
                    open_telemetry=False,  # its spans can be told to hold what was said
                )
            return self._client

    def _call(self, prompt: Prompt) -> dict[str, Any]:
        call: dict[str, Any] = {
            "model": self._model,
            "max_tokens": prompt.output_tokens,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }
        if self._thoughtless:
            call["thinking"] = {"type": "disabled"}
        if self._structured:
            call["output_config"] = {"format": {"type": "json_schema", "schema": dict(prompt.schema)}}
        else:
            call["tools"] = [
                {"name": _TOOL, "description": "Record the statements.", "input_schema": dict(prompt.schema)}
            ]
            call["tool_choice"] = {"type": "tool", "name": _TOOL}
        return call

    def _plainer(self, told: str) -> bool:
        """Give up what the model refused. False when it refused something else."""
        if self._structured and ("output_config" in told or "output format" in told or "structured output" in told):
            self._structured = False
            return True
        if self._thoughtless and "thinking" in told:
            self._thoughtless = False
            return True
        return False


def _fault(status: int, told: str, retry_after: float | None) -> ModelFault:
    if status == 429:
        return ModelFault(LIMITED, retry_after=retry_after)
    if status in (408, 409) or status >= 500:
        return ModelFault(DOWN, retry_after=retry_after)
    if status in (401, 402, 403, 404):
        return ModelFault(DENIED)
    if "too long" in told or "context" in told or status == 413:
        return ModelFault(TOO_LONG)
    return ModelFault(REFUSED)


def _reply(answer: Any) -> Reply:
    text = ""
    for block in getattr(answer, "content", None) or ():
        if getattr(block, "type", "") == "tool_use":
            text = json.dumps(block.input)
            break
        if getattr(block, "type", "") == "text":
            text += block.text or ""
    usage = getattr(answer, "usage", None)
    read = [
        getattr(usage, name, None)
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    written = getattr(usage, "output_tokens", None)
    return Reply(
        text=text,
        input_tokens=sum(n for n in read if isinstance(n, int)) if isinstance(read[0], int) else -1,
        output_tokens=written if isinstance(written, int) and written >= 0 else -1,
        cut=getattr(answer, "stop_reason", None) in ("max_tokens", "model_context_window_exceeded"),
    )
