"""The shape of a request: everything but its input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from reverie.window.items import encode, plain

NOT_SHAPE = frozenset({"input", "previous_response_id", "stream", "stream_options"})


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def canonical(value: Any) -> str:
    """Canonical JSON: keys sorted, no whitespace, numbers as written."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_text(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def parse(text: str | bytes) -> Any:
    """JSON with its numbers kept as written."""
    return json.loads(text, parse_float=_Number, parse_int=_Number)


def digest(value: Any) -> str:
    """SHA-256 hex of the canonical JSON of a value."""
    return hashlib.sha256(encode(canonical(value))).hexdigest()


def shape(body: Mapping[str, Any] | str | bytes) -> dict[str, Any]:
    """A request body without `input`, `previous_response_id`, `stream` and `stream_options`."""
    parsed = parse(body) if isinstance(body, str | bytes) else plain(body)
    return {key: value for key, value in parsed.items() if key not in NOT_SHAPE}


def shape_hash(body: Mapping[str, Any] | str | bytes) -> str:
    """SHA-256 hex of the canonical JSON of the shape. Give the body as text to keep its numbers as written."""
    return digest(shape(body))


def shape_keys(body: Mapping[str, Any]) -> dict[str, str]:
    """A short hash per top-level key, to name what changed."""
    return {key: digest(value)[:16] for key, value in shape(body).items()}


def changed_keys(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The top-level keys whose value differs."""
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
