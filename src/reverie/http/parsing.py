"""Strict parsing of JSON bodies: what two parsers could understand in two ways is refused."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from reverie.core.errors import Invalid, ReverieError, TooLarge
from reverie.core.pause import paced, pause

MAX_DEPTH = 64
MAX_VALUES = 250_000
MAX_MEMBERS = 10_000
_PIECE = 65_536
_BACKSLASH = ord("\\")
_LONGEST_ESCAPE = len(rb"\u0000")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class UnsupportedMedia(ReverieError):
    """Send JSON: `Content-Type: application/json`."""

    code = "unsupported_media_type"


def parse(body: bytes, *, most: int = MAX_VALUES) -> Any:
    """A JSON document. Refuses duplicate keys, NaN, numbers out of range, NUL, lone surrogates and deep nesting.

    `most` values are counted before the first one is built.
    """
    if len(body) > most and more_values(body, most):
        raise TooLarge(f"A body has at most {most} values. Send less at a time.", details={"max_values": most})
    long = len(body) > _PIECE  # a short one is read between two pauses
    if long:
        pause()
    try:
        text = body.decode()
    except UnicodeDecodeError as fault:
        raise Invalid(f"The body is not UTF-8 (byte {fault.start}).", pointer="") from None
    if text.startswith("\ufeff"):
        raise Invalid("The body begins with a byte order mark. Send plain UTF-8.", pointer="")
    if long:
        pause()
    try:
        document = _DECODER.decode(text)
    except json.JSONDecodeError as fault:
        raise Invalid(f"The body is not JSON (line {fault.lineno}, column {fault.colno}).", pointer="") from None
    except RecursionError:
        raise Invalid(f"The body is nested more than {MAX_DEPTH} levels deep.", pointer="") from None
    except ValueError:  # an integer of thousands of digits
        raise Invalid("The body has a number out of range.", pointer="") from None
    brackets, escapes, surrogates = _noticed(body)
    if brackets > MAX_DEPTH:
        _check_depth(document)
    if surrogates:
        if long:
            pause()
        try:
            orjson.loads(body)
        except ValueError:
            raise Invalid("The body has text that is not valid Unicode (a lone surrogate).", pointer="") from None
    if escapes and b"\\u0000" in body:
        _check_nul(document)
    return document


def _noticed(body: bytes) -> tuple[int, bool, bool]:
    """(An upper bound of the opening brackets; whether there are `\\u` escapes; whether one is a surrogate.)

    Works piece by piece, so that other threads get their turn.
    """
    brackets, escapes, surrogates = 0, False, False
    for at in paced(range(0, len(body), _PIECE)):
        end = at + _PIECE + _LONGEST_ESCAPE - 1  # one that begins in this piece is seen whole
        brackets += body.count(b"[", at, end) + body.count(b"{", at, end)
        if body.find(b"\\u", at, end) >= 0:
            escapes = True
            surrogates = surrogates or _SURROGATE.search(body, at, end) is not None
    return brackets, escapes, surrogates


def more_values(body: bytes, most: int) -> bool:
    """Whether a JSON text has more than `most` values: each begins at a bracket, a brace or after a comma.

    Works piece by piece, so that other threads get their turn. Strings are skipped only when the count without them
    matters.
    """
    pieces = range(0, len(body), _PIECE)
    if sum(_marks(body[at : at + _PIECE]) for at in paced(pieces)) <= most:
        return False
    found, at, inside = 0, 0, 0
    while at < len(body) and found <= most:
        pause()
        end = at + _PIECE
        while end < len(body) and body[end - 1] == _BACKSLASH:  # an escape is not cut in two
            end += 1
        parts = body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        found += _marks(b"".join(parts[inside::2]))
        inside = (inside + len(parts) - 1) % 2
        at = end
    return found > most


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(pairs) > MAX_MEMBERS:
        raise TooLarge(f"An object has at most {MAX_MEMBERS} members.", details={"max_members": MAX_MEMBERS})
    if len(document) != len(pairs):
        raise Invalid("An object in the body has the same key twice.", pointer="")
    return document


def _refuse_constant(_: str) -> Any:
    raise Invalid("NaN and Infinity are not JSON.", pointer="")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Invalid("The body has a number out of range.", pointer="")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise Invalid(f"The body is nested more than {MAX_DEPTH} levels deep.", pointer="")


def _check_nul(document: Any) -> None:
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, str) and "\x00" in value:
            raise Invalid("The body has a NUL character. Remove it.", pointer="")
        if isinstance(value, dict):
            stack += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            stack += value
