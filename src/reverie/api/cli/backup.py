"""reverie backup ..., reverie restore: copies that are verified before they get their names."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from reverie.api.cli.command import Argument, Group, Option
from reverie.api.cli.session import DEFAULT_TENANT, Data, DatabaseUrl, Json, load_settings, session
from reverie.api.cli.terminal import many, note, print_json, progress, say

if TYPE_CHECKING:
    from reverie.settings import Settings

app = Group("Online backups: create, verify. `reverie restore` restores one.")

File = Annotated[Path, Argument(metavar="FILE")]


@app.command("create")
def create(
    file: File,
    with_key: Annotated[
        bool, Option("--with-key", help="Also copy the key file, to FILE.key. Guard it like a password.")
    ] = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Copy the database while it is in use. The copy is verified before it gets its name; FILE.json describes it.

    On PostgreSQL the copy is SQL, for `psql` or for `reverie restore`.

    \b
    Examples:
      reverie backup create /backups/reverie-2026-11-15.db
      reverie backup create /backups/reverie-2026-11-15.sql --database-url postgresql://reverie@db/reverie
    """
    from reverie.app import open_store
    from reverie.ops.backup import create as make

    with session(DEFAULT_TENANT, data, database_url, text=False) as opened, progress("copying") as report:
        key = opened.settings.key_path
        manifest = make(opened.host, file, open_store=open_store, key=key if with_key else None, progress=report)
    if json:
        print_json(manifest)
        return
    say(f"backed up {manifest['bytes']} bytes, {many(len(manifest['tenants']), 'tenant')}, to {file} (verified)")
    if manifest["key_file"] is None and key.exists():
        note(f"The key file {key} is not inside. Keep a copy of it elsewhere, or use --with-key:")
        note("without it, registered secrets of a restored backup cannot be opened.")


@app.command("verify")
def verify(file: File, json: Json = False) -> None:
    """Verify a backup: its checksum, the integrity of the file, and the log of every tenant.

    \b
    Example:
      reverie backup verify /backups/reverie-2026-11-15.db
    """
    from reverie.app import open_store
    from reverie.ops.backup import verify as prove

    with progress("verifying") as report:
        found = prove(file, open_store=open_store, progress=report)
    _print(
        found, json, f"sound: {many(len(found['tenants']), 'tenant')}, {found['bytes']} bytes, schema {found['schema']}"
    )


def restore(
    file: File,
    into: Annotated[Path, Option("--into", metavar="DIR", help="A new or empty data folder.")],
    ledger: Annotated[
        Path | None,
        Option("--ledger", metavar="FILE", help="The forget ledger; default: forgotten.jsonl in the data folder."),
    ] = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Restore a backup into a new folder. It is verified first; nothing is ever overwritten.

    What was forgotten after the backup was made is forgotten again, by the ledger of the data folder in use. A backup
    of PostgreSQL becomes a SQLite database: move that to a server with `reverie migrate-store`, or load the backup
    itself with psql.

    \b
    Example:
      reverie restore /backups/reverie-2026-11-15.db --into ./restored && reverie serve --data ./restored
    """
    from reverie.app import open_store
    from reverie.ops.backup import restore as bring_back

    live = load_settings(data, database_url)
    if ledger is None and live.database != ":memory:" and live.ledger_path.is_file():
        ledger = live.ledger_path
    again = partial(_forget_again, live=live)
    with progress("restoring") as report:
        found = bring_back(file, into, open_store=open_store, ledger=ledger, forget_again=again, progress=report)
    _print(
        found,
        json,
        f"restored to {into}: {many(len(found['tenants']), 'tenant')}. Start it: reverie serve --data {into}",
    )
    if json:
        return
    if found["forgotten_again"] is None:
        note("There was no forget ledger: if anything was forgotten after the backup was made, forget it again.")
    elif found["forgotten_again"]:
        note(f"Repeated the forgets made after the backup: {many(found['forgotten_again'], 'subject')}.")
    if found["key_file"] is None:
        note(f"Put the key file back as {into / 'reverie.key'} if tenants have registered secrets.")


def migrate_store(
    source_url: Annotated[str, Argument(metavar="SOURCE", help="sqlite:///PATH or postgresql://...")],
    target_url: Annotated[
        str, Argument(metavar="TARGET", help="An empty store, or the target of an interrupted move.")
    ],
    keep_open: Annotated[bool, Option("--keep-open", help="Leave the source writable: a copy, not a move.")] = False,
    json: Json = False,
) -> None:
    """Move everything to another store, while it is in use. The copy is verified by the hashes of every tenant's log.

    Writing stops only for the last, short pass; after it the source takes no more writes. If it is
    interrupted at any time, the same command continues where it stopped.

    \b
    Example:
      reverie migrate-store sqlite:///memory/reverie.db postgresql://reverie@db/reverie
    """
    import shlex

    from reverie.app import build_store
    from reverie.core.errors import Invalid
    from reverie.ops.move import carry_files, check_files, move

    source, target = _settings_of("SOURCE", source_url), _settings_of("TARGET", target_url)
    if source.database == target.database or ":memory:" in (source.database, target.database):
        raise Invalid("Name two different databases, neither of them in memory.")
    check_files(source, target)
    old = build_store(source, create=False)
    try:
        new = build_store(target)
        try:
            with progress("moving") as report:
                done = move(old, new, close_source=not keep_open, progress=report)
            carried = carry_files(source, target)
        finally:
            new.close()
    finally:
        old.close()
    if json:
        print_json({"moved": done, "files": carried})
        return
    say(f"moved {many(done.tenants, 'tenant')}, {many(done.entries, 'entry', 'entries')}, {many(done.events, 'event')}")
    for name in carried:
        note(f"copied {name}")
    note(f"To use the new store: REVERIE_DATABASE_URL={shlex.quote(target_url)} reverie serve")
    if done.closed:
        note("The source takes no more writes. Remove it when you no longer need it.")


def _forget_again(database: Path, ledger: Path, *, live: Settings) -> int:
    """Repeat the forgets of the ledger in a database that is being restored."""
    from reverie.app import build_host
    from reverie.host import Host
    from reverie.privacy.ledger import FileLedger
    from reverie.settings import DatabaseUrl as Url

    key = database.with_name("reverie.key")
    url = Url(f"sqlite:///{database.absolute()}")
    chosen = replace(live, database_url=url, key_file=str(_first(key, live.key_path)))
    opened = build_host(chosen, create=False)
    try:
        host = Host(replace(opened.parts, ledger=FileLedger(ledger), read_only=False))
        return sum(host.forget.replay(host.system_actor(tenant)) for tenant in host.tenants())
    finally:
        opened.close()


def _first(*paths: Path) -> Path:
    return next((path for path in paths if path.is_file()), paths[0])


def _print(found: dict[str, Any], json: bool, line: str) -> None:
    if json:
        print_json(found)
    else:
        say(line)


def _settings_of(argument: str, url: str) -> Settings:
    """The settings of a store named on the command line. Raises Invalid with the name of the argument."""
    from reverie.core.errors import Invalid
    from reverie.settings import Settings

    try:
        named = Settings.load(database_url=url)
        _ = named.database  # says what is wrong with the address
        return named
    except Invalid as fault:
        raise Invalid(fault.message.replace("REVERIE_DATABASE_URL", argument)) from None
