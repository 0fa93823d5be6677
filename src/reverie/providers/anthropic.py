"""Anthropic models, through the official client."""

from __future__ import annotations

import json
from typing import Any

from reverie.providers.chat import ChatReply, Prompt, address_mark, answered, keep_quiet, require_sdk, trust

_TOOL = "record"
_ABOUT_FORMAT = ("output_config", "output_format", "output format", "structured", "schema")


class AnthropicModel:
    """A model of Anthropic, or of an endpoint with its Messages API.

    Uses structured output where the model has it, else one tool that the model must call. Temperature and seed are not
    sent: the API accepts none. The client's own retries are off.
    """

    def __init__(self, model: str, *, api_key: str = "", base_url: str = "") -> None:
        require_sdk("anthropic")
        self._model = model
        self._key = api_key
        self._base_url = base_url
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

    def ask(self, prompt: Prompt, *, seconds: float) -> ChatReply:
        import anthropic

        keep_quiet("anthropic", "httpx2", "httpcore2")
        # One client per call: closing it ends no other call.
        client = anthropic.Anthropic(
            api_key=self._key or "none",
            base_url=self._base_url or None,
            max_retries=0,
            http_client=anthropic.DefaultHttpxClient(verify=trust()),
            open_telemetry=False,  # its spans can be configured to hold the conversation
        )
        call = self._call(prompt)
        answer = answered(
            anthropic,
            anthropic.AnthropicError,
            client,
            lambda: client.messages.create(**call, timeout=seconds),
            seconds=seconds,
            words=lambda error: f"{error.error_code or ''} {error.message}",
            plainer=lambda said: self._plainer(call, said),
        )
        return _reply(answer)

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

    def _plainer(self, call: dict[str, Any], said: str) -> bool:
        """Give up the part of `call` that the model refused. False if it refused something else."""
        if "thinking" in call and "thinking" in said:
            self._thoughtless = False
            return True
        if "output_config" in call and any(word in said for word in _ABOUT_FORMAT):
            self._structured = False
            return True
        return False


def _reply(answer: Any) -> ChatReply:
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
    return ChatReply(
        text=text,
        input_tokens=sum(n for n in read if isinstance(n, int)) if isinstance(read[0], int) else -1,
        output_tokens=written if isinstance(written, int) and written >= 0 else -1,
        cut=getattr(answer, "stop_reason", None) in ("max_tokens", "model_context_window_exceeded"),
    )
