"""Pictures, files and sound in items: their billed tokens, regardless of their bytes."""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

PICTURE_TOKENS = 1_850
"""A picture whose size cannot be read."""
FILE_TOKENS = 2_000
SOUND_TOKENS = 2_000
_PAGE_TOKENS = 1_500
_PATCHES = {"original": 10_000}
_MOST_PATCHES = 1_536
_HEAD = 256 * 1024
_PICTURES = frozenset({"input_image", "computer_screenshot", "image_generation_call"})
_TEXTS = (".txt", ".md", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".html", ".py", ".log", ".toml")
_SEALED = frozenset({"signature", "encrypted_content", "data"})
_WORDS = frozenset({"text", "output", "arguments", "input", "code"})
"""Fields whose text the model reads as text, even when it looks like data."""
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECTS = re.compile(rb"/ObjStm\b[^>]{0,1000}>>\s{0,16}stream\r?\n")
_MOST_OBJECTS = 8 * 1024 * 1024
"""Most bytes that are unpacked to count the pages of a PDF."""
_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


def without_media(value: Any, *, low: int | None = None) -> tuple[Any, int]:
    """(a copy of a value without the bytes of its pictures, files and sounds, the tokens billed for them). `low`: the
    price of a low-detail picture, for a model that bills it flat."""
    if isinstance(value, Mapping):
        named = value.get("type")  # in the schema of a tool it may be a list
        kind = named if isinstance(named, str) else ""
        if kind in _PICTURES:
            name = "result" if kind == "image_generation_call" else "image_url"
            detail = str(value.get("detail") or "")
            tokens = low if detail == "low" and low is not None else _picture(value.get(name), detail)
            return _without(value, name), tokens
        if kind == "input_file":
            return _without(value, "file_data"), _file(value)
        if kind in ("image", "document") and isinstance(value.get("source"), Mapping):
            return _without(value, "source"), _source_tokens(kind, value["source"])
        if kind in ("thinking", "redacted_thinking", "compaction"):
            return {key: part for key, part in value.items() if key not in _SEALED}, 0
        if kind == "input_audio":
            return {"type": kind}, _sound_tokens(value.get("input_audio"))
        pairs = {key: _inner(key, part, low) for key, part in value.items()}
        return {key: part for key, (part, _) in pairs.items()}, sum(tokens for _, tokens in pairs.values())
    if isinstance(value, list | tuple):
        parts = [without_media(part, low=low) for part in value]
        return [part for part, _ in parts], sum(tokens for _, tokens in parts)
    return value, 0


def _inner(key: str, part: Any, low: int | None) -> tuple[Any, int]:
    """The same for the value of a field: a data URL counts as the media in it."""
    if isinstance(part, str) and part.startswith("data:") and key not in _WORDS:
        head = part[:100].partition(",")[0]
        if ";base64" in head:
            kind = head[5:].casefold()
            if kind.startswith("audio/"):
                return "", _sound_tokens({"data": part})
            return "", _picture(part, "") if kind.startswith("image/") else _file({"file_data": part})
    return without_media(part, low=low)


def _without(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in value.items() if key != name}


def _picture(given: Any, detail: str) -> int:
    size = None
    if isinstance(given, str) and not given.startswith(("http://", "https://")):
        size = picture_size(_decode(given, most=_HEAD))
    if size is None:
        return PICTURE_TOKENS
    patches = min(-(-size[0] // 32) * -(-size[1] // 32), _PATCHES.get(detail, _MOST_PATCHES))
    return -(-patches * 12 // 10)


def _source_tokens(kind: str, source: Mapping[str, Any]) -> int:
    """A picture or document of the Messages API."""
    data = source.get("data")
    if kind == "image":
        return _picture(data if isinstance(data, str) else None, "")
    if not isinstance(data, str):
        return FILE_TOKENS
    if source.get("type") == "text":
        return -(-len(data.encode("utf-8", "surrogatepass")) // 4)
    return _file({"file_data": data})


def _file(value: Mapping[str, Any]) -> int:
    given = value.get("file_data")
    if not isinstance(given, str):
        return FILE_TOKENS
    head = given[:100].casefold()
    data = _decode(given)
    if data.startswith(b"%PDF") or head.startswith("data:application/pdf"):
        return _PAGE_TOKENS * max(1, _pages(data))
    name = str(value.get("filename") or "").casefold()
    if head.startswith(("data:text/", "data:application/json")) or name.endswith(_TEXTS):
        return -(-len(data) // 4)
    return FILE_TOKENS


def _pages(data: bytes) -> int:
    """The pages of a PDF, including those in packed objects."""
    found = len(_PAGE.findall(data))
    left = _MOST_OBJECTS
    starts = list(_OBJECTS.finditer(data))
    for start, following in zip_longest(starts, starts[1:]):
        end = following.start() if following is not None else len(data)
        try:
            packed = zlib.decompressobj().decompress(data[start.end() : end], left)
        except zlib.error:
            continue
        found += len(_PAGE.findall(packed))
        left -= len(packed)
        if left <= 0:
            break
    return found


def _sound_tokens(given: Any) -> int:
    """Estimate the tokens of a sound: by the minute where its header gives the length (WAV)."""
    text = given.get("data") if isinstance(given, Mapping) else None
    if not isinstance(text, str):
        return SOUND_TOKENS
    head = _decode(text, most=1024)
    if not (head.startswith(b"RIFF") and head[8:12] == b"WAVE" and len(head) >= 32):
        return SOUND_TOKENS
    (rate,) = struct.unpack("<I", head[28:32])
    seconds = len(text.rpartition(",")[2]) * 3 // 4 / rate if rate else 0
    return SOUND_TOKENS * max(1, int(-(-seconds // 60)))


def _decode(text: str, *, most: int | None = None) -> bytes:
    """The bytes of a data URL or of base64, empty when it is neither; with `most`, only the first of them."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    if most is not None:
        text = text[: most // 3 * 4]
    text = text[: len(text) // 4 * 4] if most is not None else text + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def picture_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) by the header of a PNG, GIF, WebP or JPEG; None when it cannot be read."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return _sound(*struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return _sound(*struct.unpack("<HH", data[6:10]))
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _webp(data)
        if data.startswith(b"\xff\xd8"):
            return _jpeg(data)
    except (struct.error, IndexError):
        return None
    return None


def _sound(width: int, height: int) -> tuple[int, int] | None:
    return (width, height) if width > 0 and height > 0 else None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return _sound(width & 0x3FFF, height & 0x3FFF)
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            return None
        mark = data[at + 1]
        if mark in _START_OF_FRAME:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return _sound(width, height)
        at += 2 if mark == 0xFF or 0xD0 <= mark <= 0xD9 else 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None
