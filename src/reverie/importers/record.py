"""The output of a format: records to store, and skipped items with the reason; and the readers that formats share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from reverie.core.clock import LATEST, from_iso
from reverie.core.errors import Invalid

T = TypeVar("T", list[Any], dict[str, Any])
MAX_FILE = 512 * 2**20
MAX_LINE = 64 * 2**20
CHUNK = 1600
"""Characters of a piece of a text file: some 400 tokens, as long as a passage that is worth quoting."""
OVERLAP = 160
_SURROGATES = re.compile(rb"(\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..")
_EPOCH = re.compile(r"\d{9,13}(\.\d+)?")
_ZONE = re.compile(r"(?: ?(?:UTC|GMT)|(?<=[:.\d]\d)([+-]\d\d))$")
"""A zone as databases write it: ` UTC`, or an offset of hours alone."""
LONGEST = 24_000
"""Characters of a record that is stored whole; a longer one is cut into pieces of this length."""


class Record(Struct, frozen=True):
    """One memory as its source has it."""

    key: str
    """The id in the source. The same id with the same words is the same memory; with other words, its next version."""
    content: str
    place: str
    """Place in the source: a file, with a line when there is one."""
    kind: str = "note"
    tags: tuple[str, ...] = ()
    subject: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    actor: str = ""
    role: str | None = None
    session: str | None = None
    created_at: int | None = None
    expires_at: int | None = None
    pinned: bool = False
    ref: str | None = None
    """The memory it belongs to; None: the one chosen for the import."""
    mark: str | None = None
    """A tag by which programs find it, and by which its next version replaces it."""
    links: tuple[tuple[str, str], ...] = ()
    """(key of another record, its relation to this one)."""
    file: str = ""
    """The whole path of the file within which the key names it; empty where the key is enough."""
    exact_id: str | None = None
    """Set for an entry that Reverie exported: it is stored under its own id, as it was."""


class Skipped(Struct, frozen=True):
    """An item that is not stored, and the reason."""

    place: str
    reason: str


Item = Record | Skipped


def damaged(path: Path, expected: str, line: int | None = None) -> Invalid:
    """The error for a damaged or foreign file, with what was expected."""
    where = f"{path.name}, line {line}" if line is not None else path.name
    said = expected if expected.startswith((f"{path.name}: ", f"{path.name}, ")) else f"{where}: {expected}"
    return Invalid(f"{said} Nothing was stored.", code="import_damaged")


def member(owner: Mapping[str, Any], name: str, kind: type[T], path: Path, place: str) -> T:
    """The list or the object under a name; empty when it is absent. Raises Invalid for another type."""
    value = owner.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise damaged(path, f'{place}: expected "{name}" as {"a list" if kind is list else "an object"}.')
    return value


def whole(path: Path) -> str:
    """The path of a file from the root: what tells it from files of the same name."""
    return str(path.resolve())


def digest(*parts: str) -> str:
    """Texts as a UUID: short, stable, and never taken for a secret."""
    joined = "\0".join(parts).encode(errors="surrogatepass")
    return str(UUID(bytes=hashlib.sha256(joined).digest()[:16]))


def loads(raw: bytes) -> Any:
    """Parse JSON. Half an emoji, as JavaScript programs leave where they cut a text, becomes U+FFFD."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        mended = _SURROGATES.sub(lambda found: found[0] if found[1] else b"\\ufffd", raw)
        if mended == raw:
            raise
        return orjson.loads(mended)


def _utf8(path: Path, raw: bytes) -> bytes:
    """Bytes without a byte order mark. Raises Invalid for a mark of another encoding."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise damaged(path, "expected UTF-8, found UTF-16 or UTF-32. Save it as UTF-8.", 1)
    return raw.removeprefix(b"\xef\xbb\xbf")


def json_document(path: Path, expected: str) -> Any:
    """The JSON document of a file. Raises Invalid."""
    if path.stat().st_size > MAX_FILE:
        raise damaged(path, f"a file of at most {MAX_FILE >> 20} MB was expected. Split it.")
    raw = _utf8(path, path.read_bytes())
    try:
        return loads(raw)
    except orjson.JSONDecodeError as fault:
        raise damaged(path, f"expected {expected}, but this is not JSON.", fault.lineno) from None


def json_lines(path: Path, expected: str) -> Iterator[tuple[int, Any]]:
    """(line number, JSON document) of every line that is not blank. Raises Invalid."""
    with path.open("rb") as file:
        for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
            if len(raw) > MAX_LINE:
                raise damaged(path, f"a line of at most {MAX_LINE >> 20} MB was expected.", number)
            line = (_utf8(path, raw) if number == 1 else raw).strip()
            if not line:
                continue
            try:
                yield number, loads(line)
            except orjson.JSONDecodeError:
                raise damaged(path, f"expected {expected}, but this is not JSON.", number) from None


def text_of(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark. Raises Invalid."""
    if path.stat().st_size > MAX_FILE:
        raise damaged(path, f"a file of at most {MAX_FILE >> 20} MB was expected. Split it.")
    raw = _utf8(path, path.read_bytes())
    try:
        text = raw.decode()
    except UnicodeDecodeError as fault:
        raise damaged(path, "expected UTF-8 text.", raw[: fault.start].count(b"\n") + 1) from None
    if "\0" in text:
        raise damaged(path, "expected text, found zero bytes.", text[: text.index("\0")].count("\n") + 1)
    return text.replace("\r\n", "\n")


def content_text(content: Any) -> str:
    """The text of a message's content: a string, or the text blocks of a list."""
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list):
        return ""
    texts = [one.get("text") for one in content if isinstance(one, dict) and one.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def moment(value: Any) -> int | None:
    """Milliseconds of an RFC 3339 time (UTC when it names no zone), or of seconds or milliseconds as number or text.

    None for anything else, and for a time in the future.
    """
    at: int | None = None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str) and _EPOCH.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, int | float):
        at = int(value if value > 100_000_000_000 else value * 1000)
    elif isinstance(value, str):
        text = value.strip().replace(" ", "T", 1)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            text += "T00:00:00"
        text = _ZONE.sub(lambda found: f"{found[1]}:00" if found[1] else "Z", text)
        if "T" in text and not re.search(r"(Z|[+-]\d\d:?\d\d)$", text):
            text += "Z"
        try:
            at = from_iso(text)
        except Invalid:
            return None
    now = int(datetime.now(UTC).timestamp() * 1000)
    return at if at is not None and 0 <= at <= min(now, LATEST) else None


def labels(values: Any) -> tuple[str, ...]:
    """Read tags from any form a source uses: a list of texts, or one text with commas."""
    if isinstance(values, str):
        values = values.split(",")
    if not isinstance(values, Sequence):
        return ()
    found = (value.strip().lstrip("#")[:200] for value in values if isinstance(value, str))
    return tuple(dict.fromkeys(tag for tag in found if tag))[:32]


def pieces(text: str, *, size: int = CHUNK, overlap: int = OVERLAP) -> list[str]:
    """A text in pieces of at most `size` characters, cut between paragraphs, else sentences, else words.

    Each piece but the first begins with the end of the one before it, so that no sentence loses its surroundings.
    """
    text = text.strip()
    results: list[str] = []
    start = 0
    while len(text) - start > size:
        window = text[start : start + size]
        cut = -1
        for boundary in ("\n\n", "\n", ". ", " "):
            at = window.rfind(boundary, size // 2)
            if at > 0:
                cut = at + len(boundary)
                break
        cut = size if cut < 0 else cut
        results.append(text[start : start + cut].strip())
        begin = start + cut - overlap
        space = text.find(" ", begin, start + cut)
        start = space + 1 if overlap and space > start else start + cut
    results.append(text[start:].strip())
    return [piece for piece in results if piece]


def in_pieces(record: Record, *, size: int = LONGEST, overlap: int = 0) -> Iterator[Record]:
    """A record, or its pieces with their order when it is long."""
    if len(record.content) <= size:
        yield record
        return
    found = pieces(record.content, size=size, overlap=overlap)
    for number, piece in enumerate(found, 1):
        attributes = {**record.attributes, "piece": number, "of": len(found)}
        key = f"{record.key}\0{number}"
        yield replace(record, key=key, content=piece, attributes=attributes)
