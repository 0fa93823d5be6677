"""import: entries from elsewhere, and from an export of Reverie."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from reverie.api.cli.command import Abort, Argument, Option, confirm
from reverie.api.cli.session import HERE, At, CommandSession
from reverie.api.cli.terminal import counts, many, note, print_json, progress, say

if TYPE_CHECKING:
    from reverie.importers.run import ImportResult, SourceSummary

BUNDLE = "bundle"


def import_memory(
    words: Annotated[list[str], Argument(metavar="[FORMAT] PATH", help="A file or folder; - for stdin. Or: undo ID.")],
    ref: Annotated[str | None, Option("--ref", "-r", metavar="REF", help="Store everything in this memory.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be stored, and store nothing.")] = False,
    check: Annotated[bool, Option("--check", help="Check that a bundle is whole, and store nothing.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Store without asking for confirmation.")] = False,
    at: At = HERE,
) -> None:
    """Import entries from other products, chats and notes, or from a bundle. Shows what it found before it stores.

    Formats: bundle, mcp-memory, claude-code, mem0, chatgpt, claude, letta, langgraph, basic-memory (obsidian),
    markdown, jsonl, csv, text. Without FORMAT it is recognised. Importing twice stores once; a record that changed
    replaces its earlier version. A damaged file stores nothing. `reverie import undo ID` takes an import back.

    \b
    Examples:
      reverie import memory.jsonl
      reverie import mem0 export.json --ref support-bot --dry-run
      reverie import chatgpt conversations.json --yes
      reverie import undo 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    from reverie.core.errors import Invalid

    if len(words) == 2 and words[0] == "undo":
        _undo(words[1], at)
        return
    if len(words) > 2:
        raise Invalid("Write: reverie import [FORMAT] PATH, or reverie import undo ID.")
    _check_format(words)
    with ExitStack() as stack:
        path = stack.enter_context(_file(words[-1]))
        name = words[0] if len(words) == 2 else _recognise(path)
        if name == BUNDLE:
            _bundle(path, ref, at, check=check or dry_run)
            return
        if check:
            raise Invalid("--check is for bundles; use --dry-run.")
        _records(path, name, ref, at, dry_run=dry_run, yes=yes, piped=path != Path(words[-1]))


def _check_format(words: list[str]) -> None:
    """Refuse an unknown format before its file is looked for, and a format without a file."""
    from reverie.core.errors import Invalid
    from reverie.importers import ALIASES, FORMATS, load

    if len(words) == 2:
        if words[0] != BUNDLE:
            load(words[0])
    elif words[0] in {BUNDLE, *FORMATS, *ALIASES} and not Path(words[0]).exists():
        raise Invalid(f"{words[0]} is a format; its file or folder is missing: reverie import {words[0]} PATH")
    elif words[0] == "undo":
        raise Invalid("The id of the import is missing: reverie import undo ID")


def _records(path: Path, name: str, ref: str | None, at: At, *, dry_run: bool, yes: bool, piped: bool) -> None:
    from reverie.importers.run import Importer

    with ExitStack() as stack:
        opened = stack.enter_context(_open(at, dry_run))
        importer = Importer(opened.host, opened.actor, path, format=name, ref=ref, piped=piped)
        with progress("reading") as report:
            look = importer.look(progress=report)
        if not at.json:
            _show(look)
        if dry_run:
            if at.json:
                print_json({"dry_run": True, "found": look})
            return
        if not yes and not at.json and sys.stdin.isatty() and not confirm("Store them?"):
            raise Abort
        if look.entries or look.restored:  # before anything is stored: it may be stopped half-way
            note(f"import {importer.id}")
        with progress("importing") as report:
            done = importer.store(progress=report)
    if at.json:
        print_json({"dry_run": False, "found": look, "stored": done})
        return
    _show_stored(done)


@contextmanager
def _open(at: At, dry_run: bool) -> Iterator[CommandSession]:
    """The host. A dry run makes no database: where there is none yet, nothing is a duplicate."""
    from reverie.core.errors import StoreUnavailable

    with ExitStack() as stack:
        try:
            opened = stack.enter_context(at.session(create=not dry_run))
        except StoreUnavailable:
            if not dry_run or at.host_url is not None:
                raise
            opened = stack.enter_context(At(database_url="sqlite://").session(create=True))
        yield opened


def _show(look: SourceSummary) -> None:
    say(f"{look.format}: {many(look.entries, 'entry', 'entries')} to store, {many(look.duplicates, 'duplicate')}")
    if look.restored:
        say(f"readable again: {look.restored}")
    for ref, count in look.refs.items():
        say(f"  into {ref}: {count}")
    if look.findings:
        say(f"secrets that will be replaced: {counts(look.findings)}")
    for reason, count in look.skipped.items():
        first = next((place for place, why in look.places if why == reason), "")
        say(f"left out: {count} x {reason}" + (f" (first: {first})" if first else ""))


def _show_stored(done: ImportResult) -> None:
    say(
        f"stored {many(done.entries, 'entry', 'entries')} and {many(done.links, 'link')};"
        f" {many(done.duplicates, 'duplicate')}" + (f", {done.restored} readable again" if done.restored else "")
    )
    if done.replaced:
        say(f"replaced {many(done.replaced, 'earlier version')}; an undo brings back what it replaced")
    if done.findings:
        note(f"redacted: {counts(done.findings)}")
    if done.entries:
        say(f"to take it back: reverie import undo {done.id}")


def _undo(import_id: str, at: At) -> None:
    from reverie.importers.run import undo

    with at.session() as opened, progress("undoing") as report:
        done = undo(opened.host, opened.actor, import_id, progress=report)
    gone = f"undone: {many(done.entries, 'entry', 'entries')} of {', '.join(done.refs)} no longer readable"
    at.answer(done, f"{gone}, {many(done.restored, 'earlier version')} back" if done.restored else gone)


def _recognise(path: Path) -> str:
    from reverie.importers import detect

    if path.is_file():
        with path.open("rb") as file:
            first = file.readline(4096)
        if b'"manifest"' in first and b"reverie.bundle/" in first:
            return BUNDLE
    return detect(path)


def _bundle(path: Path, ref: str | None, at: At, *, check: bool) -> None:
    with ExitStack() as stack:
        bundle: BinaryIO = stack.enter_context(path.open("rb"))
        # checking needs no database: a host in memory will do
        place = At(database_url="sqlite://") if check else at
        opened = stack.enter_context(place.session(create=True, text=not check))
        manifest: Any = opened.host.bundles.check(bundle)
        if check:
            if at.json:
                print_json(manifest)
            else:
                say(f"sound: {manifest['entries']} entries, {manifest['links']} links, {manifest['events']} events")
            return
        bundle.seek(0)
        report = stack.enter_context(progress("importing"))
        done = opened.host.bundles.load(opened.actor, bundle, ref=ref, total=manifest["lines"], progress=report)
    if at.json:
        print_json(done)
        return
    say(f"imported {done.entries} entries and {done.links} links; {done.skipped} were there already or had expired")
    if done.findings:
        note(f"redacted: {counts(done.findings)}")


@contextmanager
def _file(name: str) -> Iterator[Path]:
    """A path that can be read twice: first to look, then to store."""
    from reverie.core.errors import Invalid

    path = Path(name)
    if name != "-" and (path.is_file() or path.is_dir()):
        yield path
        return
    if name != "-" and not path.exists():
        raise Invalid(f"There is no file or folder {name}.")
    with tempfile.NamedTemporaryFile(prefix="reverie-import-", suffix=".jsonl") as held:
        if name == "-":
            shutil.copyfileobj(sys.stdin.buffer, held)
        else:  # a pipe
            with path.open("rb") as source:
                shutil.copyfileobj(source, held)
        held.flush()
        yield Path(held.name)
