"""serve, worker, doctor, upgrade, sweep, settings, version: running a host."""

from __future__ import annotations

from typing import Annotated, Any

from reverie.api.cli.command import Exit, Option
from reverie.api.cli.session import (
    DEFAULT_TENANT,
    HERE,
    AllTenants,
    At,
    Data,
    DatabaseUrl,
    Json,
    load_settings,
    session,
)
from reverie.api.cli.terminal import many, note, print_json, print_table, progress, say, table_width

_FOR_MEANINGS = 110
"""Terminal width from which the meanings of settings are shown next to them."""


def serve(
    host: Annotated[str | None, Option(metavar="ADDRESS", help="Default: 127.0.0.1")] = None,
    port: Annotated[int | None, Option(metavar="PORT", help="Default: 8484; 0 picks a free one.")] = None,
    akashik_port: Annotated[int | None, Option(metavar="PORT", help="A second port, with Akashik at its root.")] = None,
    no_worker: Annotated[bool, Option("--no-worker", help="Leave jobs to `reverie worker`.")] = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Start the host. Prints its address when it is ready; SIGTERM ends it when the work at hand is done.

    \b
    Examples:
      reverie serve
      reverie serve --port 0 --data ./memory
    """
    from reverie.http.run import run
    from reverie.settings import Settings

    note_unknown()
    jobs = False if no_worker else None
    run(
        Settings.load(
            host=host, port=port, akashik_port=akashik_port, data=data, database_url=database_url, worker=jobs
        )
    )


def note_unknown() -> None:
    """Name the variables that look like settings and are none: most are misspelt."""
    from reverie.settings import unknown_names

    for name, similar in unknown_names().items():
        meant = f" Did you mean {' or '.join(similar)}?" if similar else ""
        note(f"{name[:64]} is set, but there is no such setting.{meant}")


def worker(
    concurrency: Annotated[
        int | None, Option(metavar="N", least=1, help="Jobs at once, on PostgreSQL. Default: 4.")
    ] = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Run jobs without serving: dreams, retention, vectors. SIGTERM ends it when the jobs at hand are done.

    Any number of workers may run, on any machine that reaches the database.

    \b
    Examples:
      reverie worker --data ./memory
      reverie worker --concurrency 8 --database-url postgresql://reverie@db/reverie
    """
    from reverie.http.run import work
    from reverie.settings import Settings

    work(Settings.load(data=data, database_url=database_url, worker_concurrency=concurrency))


def doctor(
    quick: Annotated[bool, Option("--quick", help="Skip the checks that read every byte.")] = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Check the installation, and name the remedy for each problem.

    Integrity, the log of every tenant, isolation, disk, clock, versions, key file. Exits 1 when something fails.

    \b
    Example:
      reverie doctor
    """
    from reverie.ops.doctor import examine

    with session(DEFAULT_TENANT, data, database_url) as opened, progress("examining") as report:
        checks = examine(opened.host, opened.settings, quick=quick, progress=report)
    failed = any(check.status == "fail" for check in checks)
    if json:
        print_json({"ok": not failed, "checks": checks})
    else:
        rows = [(check.status, check.name, check.found) for check in checks]
        print_table(["status", "check", "found"], rows, stretch="found", keep=("check",), lines=None)
        for check in checks:
            if check.next_step:
                note(f"{check.name}: {check.next_step}")
    if failed:
        raise Exit(1)


def upgrade(
    finish: Annotated[
        bool, Option("--finish", help="Also remove what only older releases used; none of them may be running.")
    ] = False,
    reseal: Annotated[bool, Option("--reseal", help="Accept pages whose checksum does not fit; see above.")] = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Bring the database's schema up to this release.

    Any process does this when it starts. Steps that remove what an older release still needs wait until you say that
    none is running (`--finish`), which is refused while one is connected. On SQLite, `--finish` also gives the pages of
    an older file checksums, which writes the file again.

    Another program that writes to a SQLite file leaves pages whose checksums do not fit, which look damaged. `--reseal`
    verifies structure, every log and every text without the checksums, then renews them. It cannot verify what no log
    covers (vectors, documents, keys): after real damage restore a backup instead.

    \b
    Example:
      reverie upgrade --finish
    """
    from reverie.app import upgrade_store

    schema, waiting = upgrade_store(load_settings(data, database_url), finish=finish or reseal, reseal=reseal)
    if json:
        print_json({"schema": schema, "waiting": waiting})
        return
    say(f"the database has schema {schema}")
    if waiting:
        note(f"{len(waiting)} steps wait. When no process of an older release runs: reverie upgrade --finish")


def sweep(all_tenants: AllTenants = False, at: At = HERE) -> None:
    """Destroy expired data, and data past its retention.

    A running server does this by itself.

    \b
    Example:
      reverie sweep --all-tenants
    """
    swept: dict[str, int] = {}
    with at.session(text=False) as opened:
        for name in opened.host.tenants() if all_tenants else [opened.actor.tenant]:
            actor = opened.acting_for(name)
            swept[name] = opened.host.lifecycle.sweep(actor)
    at.answer(
        {"swept": sum(swept.values()), "tenants": swept}, f"swept {many(sum(swept.values()), 'entry', 'entries')}"
    )


def settings(data: Data = None, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """Print every setting, its value and its origin.

    A value comes from an option, else from the environment, else from the configuration file: REVERIE_CONFIG, or
    reverie/reverie.toml in ~/.config or /etc. The file uses the names of the variables: REVERIE_PORT = 9000.

    \b
    Example:
      REVERIE_PORT=9000 reverie settings
    """
    from dataclasses import fields

    from reverie.settings import Settings

    loaded, origins = Settings.with_origins(data=data, database_url=database_url)
    rows: list[dict[str, Any]] = []
    for item in fields(loaded):
        variable = item.metadata["variable"]
        source = origins.get(item.name, "default") if getattr(loaded, item.name) != "" else "default"
        value = getattr(loaded, item.name)
        if item.name == "data":
            value = str(loaded.data_folder)
        help_ = item.metadata["help"]
        rows.append({"name": item.name, "variable": variable, "value": value, "source": source, "help": help_})
    if json:
        print_json({"items": rows})
        return
    note_unknown()
    columns = ["variable", "value", "origin", "meaning"]
    if table_width() < _FOR_MEANINGS:
        columns.pop()
    cells = [(row["variable"], str(row["value"]), row["source"], row["help"])[: len(columns)] for row in rows]
    print_table(columns, cells, stretch="meaning", keep=("value", "origin"), lines=None)
    if "meaning" not in columns:
        note("Their meanings: a wider window, reverie settings --json, or docs/settings.md")


def version(json: Json = False) -> None:
    """Print the version of Reverie and of its main parts.

    \b
    Example:
      reverie version --json
    """
    from reverie.ops.doctor import versions

    found = versions()
    if json:
        print_json(found)
        return
    say(f"reverie {found['reverie']} (Python {found['python']}, SQLite {found['sqlite']})")
