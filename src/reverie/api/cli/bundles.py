"""export: a tenant's entries as a bundle, as Markdown files or as JSON lines."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from reverie.api.cli.command import Option
from reverie.api.cli.session import HERE, AnyRef, At, CommandSession
from reverie.api.cli.terminal import progress

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.core.query import Page


class To(StrEnum):
    """Format of an export."""

    bundle = "bundle"
    markdown = "markdown"
    jsonl = "jsonl"


def export(
    ref: AnyRef = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="PATH", help="Default: stdout. A folder for markdown. Never overwrites."),
    ] = None,
    to: Annotated[To, Option("--to", help="A bundle, one Markdown file per entry, or plain JSON lines.")] = To.bundle,
    events: Annotated[
        bool, Option("--events/--no-events", help="Include the log in a bundle, or leave it out.")
    ] = True,
    at: At = HERE,
) -> None:
    """Write a tenant's entries as a bundle, as Markdown files or as JSON lines.

    All are plain text, and `reverie import` reads each of them back. A bundle can be checked by its hashes. With -o,
    --json reports what was written.

    \b
    Examples:
      reverie export -o memory.jsonl
      reverie export --to markdown -o notes/
      reverie export --ref support-bot --no-events | gzip > support.jsonl.gz
    """
    from reverie.core.errors import Invalid

    if to is To.markdown:
        if output is None:
            raise Invalid("Markdown is a folder of files: name it with -o.")
        _export_pages(output, ref, at)
        return
    with ExitStack() as stack:
        opened = stack.enter_context(at.session(text=False))
        if ref is not None:
            opened.check_ref(ref)
        total = opened.host.reader.stats(opened.actor)["entries"]
        sink = stack.enter_context(_sink(output))
        report = stack.enter_context(progress("exporting"))
        lines = 0
        if to is To.jsonl:
            import orjson

            found: Iterator[bytes] = (orjson.dumps(document) + b"\n" for document in _documents(opened, ref))
        else:
            found = opened.host.bundles.export(opened.actor, ref=ref, events=events)
        for line in found:
            sink.write(line)
            lines += 1
            if lines % 500 == 0:
                report(lines, max(total, lines))
        sink.flush()
    if output is None:
        return
    at.answer({"file": str(output), "lines": lines, "bytes": output.stat().st_size}, f"wrote {lines} lines to {output}")


def _page(opened: CommandSession, ref: str, cursor: str | None) -> Page[Entry]:
    return opened.host.reader.page(opened.actor, ref, limit=500, cursor=cursor)


def _documents(opened: CommandSession, ref: str | None) -> Iterator[dict[str, Any]]:
    """Every readable entry of a memory, or of all of them, as every interface shows it."""
    from reverie.core.query import each
    from reverie.memory.export import entry_document

    for name in [ref] if ref is not None else [name for name, _ in opened.host.reader.refs(opened.actor)]:
        yield from map(entry_document, each(partial(_page, opened, name)))


def _export_pages(output: Path, ref: str | None, at: At) -> None:
    """One file per entry. The folder appears under its name only when it is whole."""
    from reverie.core.errors import Invalid
    from reverie.core.files import make_folder, open_new
    from reverie.importers.entry_file import entry_file, file_name

    if output.exists():
        raise Invalid(f"{output} exists already. Choose a new name; an export never overwrites.")
    partial = output.with_name(f".{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of an export that was cut off
    written = 0
    try:
        make_folder(partial)
        with at.session(text=False) as opened, progress("exporting") as report:
            if ref is not None:
                opened.check_ref(ref)
            total = opened.host.reader.stats(opened.actor)["entries"]
            for document in _documents(opened, ref):
                file = partial / file_name(document)
                make_folder(file.parent)
                with os.fdopen(open_new(file), "w", encoding="utf-8", newline="") as page:
                    page.write(entry_file(document))
                written += 1
                report(written, max(total, written))
        partial.replace(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    at.answer({"folder": str(output), "files": written}, f"wrote {written} files to {output}")


@contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    """Open the target of an export. A file gets its name only when it is complete."""
    from reverie.core.errors import Invalid
    from reverie.core.files import open_new

    if output is None:
        yield sys.stdout.buffer
        return
    if not output.parent.is_dir():
        raise Invalid(f"There is no folder {output.parent}. Make it first.")
    if output.exists():
        raise Invalid(f"{output} exists already. Choose a new name; an export never overwrites.")
    partial = output.with_name(f".{output.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # of an export that was cut off
        with os.fdopen(open_new(partial), "wb") as sink:
            yield sink
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)
