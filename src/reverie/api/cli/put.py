"""put: one entry, or many."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from reverie.api.cli.command import Abort, Argument, Option
from reverie.api.cli.session import DEFAULT_REF, HERE, At, CommandSession, Ref, deadline
from reverie.api.cli.terminal import counts, many, note, print_json, progress, say

if TYPE_CHECKING:
    from reverie.core.entry import Draft, Receipt

Kind = Annotated[str, Option("--kind", metavar="KIND", help="Kind of entry, such as decision or task.")]
Tags = Annotated[list[str], Option("--tag", "-t", metavar="TAG", help="A label to find it by; may be repeated.")]
Subject = Annotated[str | None, Option("--subject", "-s", metavar="WHO", help="Person or thing it is about.")]
MAX_TEXT = 8 * 2**20
MAX_LINE = 2 * 2**20
_BATCH = 500


def put(
    text: Annotated[
        str | None, Argument(metavar="TEXT", help="Text to store. `-` or a pipe: read stdin. Else your editor opens.")
    ] = None,
    ref: Ref = DEFAULT_REF,
    tag: Tags = [],  # noqa: B006  (copied before each call)
    kind: Kind = "note",
    subject: Subject = None,
    attribute: Annotated[
        list[str],
        Option("--attribute", "-a", metavar="NAME=TEXT", help="A field of your own, as text or as NAME:=JSON."),
    ] = [],  # noqa: B006  (copied before each call)
    expires: Annotated[str | None, Option(metavar="WHEN", help="Destroy it then: 30d, a date, 'next friday'.")] = None,
    pin: Annotated[bool, Option("--pin", help="Keep it out of dreams.")] = False,
    entry_id: Annotated[str | None, Option("--id", metavar="ID", help="Use this id instead of a new one.")] = None,
    idempotency_key: Annotated[
        str | None, Option(metavar="KEY", help="A retry with the same key stores nothing twice.")
    ] = None,
    file: Annotated[Path | None, Option("--file", "-f", metavar="FILE", help="Read the text from this file.")] = None,
    edit: Annotated[bool, Option("--edit", "-e", help="Write the text in $VISUAL or $EDITOR.")] = False,
    many: Annotated[bool, Option("--many", help="Read JSON lines from stdin: texts or objects.")] = False,
    at: At = HERE,
) -> None:
    """Store an entry. It is durable when the command returns.

    \b
    Examples:
      reverie put "The customer prefers e-mail." --tag preference --subject customer-7
      tail -1 notes.txt | reverie put --ref support-bot
      reverie put --file minutes.md --tag meeting --expires 2027-01-31
      reverie put --many < entries.jsonl
    """
    from reverie.core.draft import to_draft
    from reverie.core.errors import Invalid

    for option, value in (("--kind", kind), ("--subject", subject)):
        if value is not None and not value.strip():
            raise Invalid(f"{option} is empty: give it a value, or leave the option out.")
    common = {
        "kind": kind,
        "tags": tag,
        "subject": subject,
        "attributes": _attributes(attribute),
        "expires_at": deadline(expires, "--expires"),
        "pinned": pin,
    }
    if many:
        if text not in (None, "-") or entry_id is not None:
            raise Invalid("--many reads entries from stdin; leave out TEXT and --id.")
        if file is not None or edit:
            raise Invalid("--many reads entries from stdin; leave out --file and --edit.")
        with at.session(create=True) as opened:
            _put_many(opened, ref, common, idempotency_key, at.json)
        return
    content = _content(text, file, edit=edit)
    draft = to_draft({**common, "content": content, "id": entry_id})
    with at.session(create=True) as opened:
        receipt = opened.host.entries.put(opened.actor, ref, [draft], idempotency_key=idempotency_key)[0]
    if at.json:
        print_json(receipt_document(receipt))
        return
    say(f"{'kept already' if receipt.replayed else 'stored'} {receipt.id} in {receipt.ref} at {receipt.seq}")
    if receipt.findings:
        note(f"redacted: {counts(receipt.findings)}")
    if receipt.seq == 1 and at.tenant is not None:
        note(f"{at.tenant} is a new tenant")


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    """A receipt as every native door shows it."""
    import msgspec

    from reverie.core.clock import to_iso

    return {**msgspec.to_builtins(receipt), "created_at": to_iso(receipt.created_at)}


def _put_many(
    opened: CommandSession, ref: str, common: dict[str, Any], idempotency_key: str | None, json: bool
) -> None:
    """Store JSON lines, many per transaction. Stops at the first bad line; lines before it stay stored."""
    from reverie.core.errors import Invalid, ReverieError

    stored = 0
    redacted: dict[str, int] = {}
    number = 0
    with progress("storing") as report:
        for at, (first, batch) in enumerate(_batches(sys.stdin.buffer, common), 1):
            number = first + len(batch) - 1
            key = None if idempotency_key is None else f"{idempotency_key}/{at}"
            try:
                receipts = opened.host.entries.put(opened.actor, ref, batch, idempotency_key=key)
            except ReverieError as fault:
                where = f"Lines {first} to {number}: {fault.message} {fault.pointer or ''}".strip()
                raise type(fault)(f"{where} Stored before them: {stored}.", code=fault.reason) from None
            except KeyboardInterrupt:
                before = f"Lines 1 to {first - 1} are stored; lines" if stored else "Lines"
                safely = "" if idempotency_key else " With --idempotency-key it can be repeated safely."
                raise KeyboardInterrupt(f"{before} {first} to {number} may be.{safely}") from None
            stored += len(receipts)
            for receipt in receipts:
                for kind, count in receipt.findings.items():
                    redacted[kind] = redacted.get(kind, 0) + count
            report(stored, 0)
    if not stored:
        raise Invalid("There is nothing to store: stdin was empty.")
    if json:
        print_json({"stored": stored, "ref": ref, "findings": redacted})
        return
    say(f"stored {many(stored, 'entry', 'entries')} in {ref}")
    if redacted:
        note(f"redacted: {counts(redacted)}")


def _batches(lines: BinaryIO, common: dict[str, Any]) -> Iterator[tuple[int, list[Draft]]]:
    import orjson

    from reverie.core.draft import to_draft
    from reverie.core.errors import Invalid

    first, batch, number = 1, list[Any](), 0
    while raw := lines.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            raise Invalid(f"Line {number} is over {MAX_LINE} bytes. Split it into several entries.")
        if not raw.strip():
            continue
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise Invalid(f"Line {number} is not JSON. Write one text or one object per line.") from None
        if not isinstance(value, str | dict):
            raise Invalid(f"Line {number} is neither a JSON text nor a JSON object.")
        try:
            batch.append(to_draft({**common, "content": value} if isinstance(value, str) else {**common, **value}))
        except Invalid as fault:
            raise Invalid(f"Line {number}: {fault.message}", pointer=fault.pointer) from None
        if len(batch) == _BATCH:
            yield first, batch
            first, batch = number + 1, []
    if batch:
        yield first, batch


def _attributes(pairs: Sequence[str]) -> dict[str, Any]:
    import orjson

    from reverie.core.errors import Invalid

    results: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        plain = not name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise Invalid("--attribute is NAME=TEXT, or NAME:=JSON.")
        try:
            results[name] = value if plain else orjson.loads(value)
        except orjson.JSONDecodeError:
            raise Invalid(f"--attribute {name}: what follows := is not JSON.") from None
    return results


def _content(text: str | None, file: Path | None, *, edit: bool) -> str:
    """The text of the command line, of a file, of an editor, or of stdin."""
    from reverie.core.errors import Invalid

    if (text is not None) + (file is not None) + edit > 1:
        raise Invalid("Give the text, --file or --edit: one of them.")
    if text is not None and text != "-":
        if not text.strip():
            raise Invalid("There is nothing to store: the text is empty. Write it in quotes: reverie put 'something'")
        return text
    if file is not None:
        with file.open("rb") as opened:
            return _decode(opened, str(file))
    if edit or (text is None and sys.stdin.isatty() and _editor()):
        return _edit()
    if sys.stdin.isatty():
        raise Invalid("Give the text as an argument, pipe it in (echo 'text' | reverie put), or set EDITOR.")
    piped = _decode(sys.stdin.buffer, "Stdin")
    if not piped.strip():
        raise Invalid(
            "There is nothing to store: stdin was empty. Give the text as an argument, or use --file or --edit."
        )
    return piped


def _editor() -> str:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def _edit() -> str:
    """Open an editor and return the text. The file is private, and removed afterwards."""
    import shlex
    import subprocess
    import tempfile

    from reverie.core.errors import Invalid

    command = shlex.split(_editor() or "vi")
    with tempfile.TemporaryDirectory(prefix="reverie-") as folder:
        path = Path(folder) / "memory.txt"
        path.touch(mode=0o600)
        try:
            left = subprocess.run([*command, str(path)], check=False).returncode  # noqa: S603  (the user's own editor)
        except OSError:
            raise Invalid(f"The editor {command[0]} cannot be started. Set EDITOR.") from None
        if left != 0:
            raise Invalid(f"The editor ended with {left}; nothing was stored.")
        with path.open("rb") as opened:
            written = _decode(opened, "The text")
    if not written.strip():
        raise Abort
    return written


def _decode(source: BinaryIO, name: str) -> str:
    from reverie.core.errors import Invalid, TooLarge

    raw = source.read(MAX_TEXT + 1)
    if len(raw) > MAX_TEXT:
        raise TooLarge(f"{name} is over {MAX_TEXT} bytes. Split it into several entries.")
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Invalid(f"{name} is not UTF-8 text.") from None
