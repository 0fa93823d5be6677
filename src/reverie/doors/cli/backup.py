"""reverie backup ..., reverie restore: copies that were proved before they are called backups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reverie.doors.cli.session import DEFAULT_TENANT, Data, DatabaseUrl, Json, session
from reverie.doors.cli.terminal import note, print_json, progress, say

app = typer.Typer(help="Online backups: create, verify. `reverie restore` brings one back.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE")]


@app.command("create")
def create(
    file: File,
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Also copy the key file, to FILE.key. Guard it like a password.")
    ] = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Copy the database while it is in use. The copy is verified before it gets its name; FILE.json describes it.

    \b
    Example:
      reverie backup create /backups/reverie-2026-11-15.db
    """
    from reverie.app import open_store
    from reverie.ops.backup import create as make

    with session(DEFAULT_TENANT, data, database_url, text=False) as opened, progress("copying") as report:
        key = opened.settings.key_path
        manifest = make(opened.host, file, open_store=open_store, key=key if with_key else None, progress=report)
    if json:
        print_json(manifest)
        return
    say(f"backed up {manifest['bytes']} bytes, {len(manifest['tenants'])} tenants, to {file} (verified)")
    if manifest["key_file"] is None and key.exists():
        note(f"The key file {key} is not inside. Keep a copy of it elsewhere, or use --with-key:")
        note("without it, registered secrets of a restored backup cannot be opened.")


@app.command("verify")
def verify(file: File, json: Json = False) -> None:
    """Prove a backup: its checksum, the integrity of the file, and the log of every tenant.

    \b
    Example:
      reverie backup verify /backups/reverie-2026-11-15.db
    """
    from reverie.app import open_store
    from reverie.ops.backup import verify as prove

    with progress("verifying") as report:
        found = prove(file, open_store=open_store, progress=report)
    _print(found, json, f"sound: {len(found['tenants'])} tenants, {found['bytes']} bytes, schema {found['schema']}")


def restore(
    file: File,
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="A new or empty data folder.")],
    json: Json = False,
) -> None:
    """Bring a backup back, into a folder of its own. It is verified first; nothing is ever overwritten.

    \b
    Example:
      reverie restore /backups/reverie-2026-11-15.db --into ./restored && reverie serve --data ./restored
    """
    from reverie.app import open_store
    from reverie.ops.backup import restore as bring_back

    with progress("restoring") as report:
        found = bring_back(file, into, open_store=open_store, progress=report)
    _print(found, json, f"restored to {into}: {len(found['tenants'])} tenants. Start it: reverie serve --data {into}")
    if not json and found["key_file"] is None:
        note(f"Put the key file back as {into / 'reverie.key'} if tenants have registered secrets.")


def _print(found: dict[str, Any], json: bool, line: str) -> None:
    if json:
        print_json(found)
    else:
        say(line)
