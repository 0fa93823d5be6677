"""export and import: a tenant's memory as JSON lines."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from reverie.api.cli.session import DEFAULT_TENANT, AnyRef, Data, DatabaseUrl, Json, Tenant, session
from reverie.api.cli.terminal import counts, note, print_json, progress, say

_MEMORY = 16 * 2**20


def export(
    ref: AnyRef = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Else stdout. Never overwrites.")
    ] = None,
    events: Annotated[bool, typer.Option("--events/--no-events", help="With the log, or without.")] = True,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Write a tenant's memory as a bundle of JSON lines.

    Anyone can read it and check its hashes. With -o, --json reports what was written.

    \b
    Examples:
      reverie export -o memory.jsonl
      reverie export --ref support-bot --no-events | gzip > support.jsonl.gz
    """
    with ExitStack() as stack:
        opened = stack.enter_context(session(tenant, data, database_url, text=False))
        total = opened.host.reading.stats(opened.actor)["entries"]
        sink = stack.enter_context(_sink(output))
        report = stack.enter_context(progress("exporting"))
        lines = 0
        for line in opened.host.bundles.export(opened.actor, ref=ref, events=events):
            sink.write(line)
            lines += 1
            if lines % 500 == 0:
                report(lines, max(total, lines))
        sink.flush()
    if output is None:
        return
    if json:
        print_json({"file": str(output), "lines": lines, "bytes": output.stat().st_size})
        return
    say(f"wrote {lines} lines to {output}")


def import_bundle(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A bundle; - for stdin.")],
    ref: Annotated[
        str | None, typer.Option("--ref", "-r", metavar="REF", help="Put everything into this memory.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the bundle.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Read a bundle. It is checked to its last byte first; memories that are there already are left alone.

    \b
    Examples:
      reverie import memory.jsonl
      gunzip -c support.jsonl.gz | reverie import - --ref support-bot
    """
    with ExitStack() as stack:
        bundle = stack.enter_context(_seekable(file))
        # checking needs no database: a host in memory will do
        place = (None, "sqlite://") if check else (data, database_url)
        opened = stack.enter_context(session(tenant, *place, create=True, text=not check))
        manifest = opened.host.bundles.check(bundle)
        if check:
            if json:
                print_json(manifest)
            else:
                say(f"sound: {manifest['entries']} entries, {manifest['links']} links, {manifest['events']} events")
            return
        bundle.seek(0)
        report = stack.enter_context(progress("importing"))
        done = opened.host.bundles.load(opened.actor, bundle, ref=ref, total=manifest["lines"], progress=report)
    if json:
        print_json(done)
        return
    say(f"imported {done.entries} entries and {done.links} links; {done.skipped} were there already or had expired")
    if done.findings:
        note(f"redacted: {counts(done.findings)}")


@contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    """Where the bundle goes. A file appears under its name only when it is whole."""
    from reverie.core.errors import Invalid
    from reverie.core.files import open_new

    if output is None:
        yield sys.stdout.buffer
        return
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


@contextmanager
def _seekable(file: str) -> Iterator[BinaryIO]:
    """The bundle as a file that can be read twice: first to check it, then to store it."""
    with ExitStack() as stack:
        source = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        if file != "-" and source.seekable():
            yield source
            return
        held = stack.enter_context(tempfile.SpooledTemporaryFile(max_size=_MEMORY))
        shutil.copyfileobj(source, held)
        held.seek(0)
        yield held  # type: ignore[misc]  # a spooled file is a BinaryIO in all but name
