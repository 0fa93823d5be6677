"""Any OpenAI-compatible endpoint, through the official client and chat completions, which nearly all support."""

from __future__ import annotations

from typing import Any

from reverie.providers.chat import ChatReply, Prompt, address_mark, answered, keep_quiet, require_sdk, trust

SEED = 7
_FORMATS = ("json_schema", "json_object", "text")
_ABOUT_FORMAT = ("response_format", "schema", "json", "structured", "grammar")


class OpenAiModel:
    """A model of an OpenAI-compatible endpoint.

    A parameter that the endpoint refuses (structured output, a seed, a temperature, the newer name of the output limit)
    is left out from then on, so every endpoint gets the richest call that it accepts. The client's own retries are off.
    """

    def __init__(self, model: str, *, api_key: str = "", base_url: str = "") -> None:
        require_sdk("openai")
        self._model = model
        self._key = api_key
        self._base_url = base_url
        self._format = 0
        self._limit = "max_completion_tokens"
        self._options: dict[str, Any] = {"temperature": 0, "seed": SEED}

    def __repr__(self) -> str:
        return f"<OpenAiModel {self._model}>"

    @property
    def name(self) -> str:
        return f"openai/{self._model}"

    @property
    def parameters(self) -> str:
        return f"chat temperature=0 seed={SEED} url={address_mark(self._base_url)}"

    def ask(self, prompt: Prompt, *, seconds: float) -> ChatReply:
        import openai

        keep_quiet("openai", "httpx2", "httpcore2")
        # One client per call: closing it ends no other call. Self-hosted endpoints accept any key, but the client
        # requires one.
        client = openai.OpenAI(
            api_key=self._key or "none",
            base_url=self._base_url or None,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(verify=trust()),
        )
        call = self._call(prompt)
        answer = answered(
            openai,
            openai.OpenAIError,
            client,
            lambda: client.chat.completions.create(**call, timeout=seconds),
            seconds=seconds,
            words=lambda error: f"{error.param or ''} {error.code or ''} {error.message}",
            plainer=lambda said: self._plainer(call, said),
        )
        return _reply(answer)

    def _call(self, prompt: Prompt) -> dict[str, Any]:
        call: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            self._limit: prompt.output_tokens,
            **self._options,
        }
        kind = _FORMATS[self._format]
        if kind == "json_schema":
            schema = {"name": "distillate", "strict": True, "schema": dict(prompt.schema)}
            call["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif kind == "json_object":
            call["response_format"] = {"type": "json_object"}
        return call

    def _plainer(self, call: dict[str, Any], said: str) -> bool:
        """Give up the part of `call` that the endpoint refused. False if it refused something else.

        Judged by the call, not by the present parameters: another thread may have given up the same part meanwhile.
        """
        if "max_completion_tokens" in call and "max_completion_tokens" in said:
            self._limit = "max_tokens"
            return True
        for name in ("temperature", "seed"):
            if name in call and name in said:
                self._options = {key: value for key, value in self._options.items() if key != name}
                return True
        if "response_format" in call and "context" not in said and any(word in said for word in _ABOUT_FORMAT):
            sent = _FORMATS.index(call["response_format"]["type"])
            self._format = max(self._format, sent + 1)
            return True
        return False


def _reply(answer: Any) -> ChatReply:
    usage = getattr(answer, "usage", None)
    choices = getattr(answer, "choices", None)
    choice = choices[0] if choices else None
    text = getattr(getattr(choice, "message", None), "content", None)
    return ChatReply(
        text=text if isinstance(text, str) else "",
        input_tokens=_count(getattr(usage, "prompt_tokens", None)),
        output_tokens=_count(getattr(usage, "completion_tokens", None)),
        cut=getattr(choice, "finish_reason", None) == "length",
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else -1
