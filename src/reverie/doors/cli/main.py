"""`reverie`: the commands, and the one place where a fault becomes a line and an exit code.

0  done        1  failed        2  not a valid command line        130  interrupted
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from reverie.doors.cli import (
    agents,
    audit,
    backup,
    bundles,
    demo,
    dream,
    entries,
    entry,
    jobs,
    keys,
    lineage,
    mcp,
    openwop,
    operate,
    policy,
    privacy,
    put,
    recall,
    schedules,
    secrets,
    window,
)
from reverie.doors.cli.terminal import neutral, one_line

app = typer.Typer(
    name="reverie",
    help="A memory host for AI agents. Start with: reverie serve, or reverie put 'something to remember'.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (put, entries, recall, lineage, privacy, bundles, operate, mcp, demo, window):
    module.register(app)
app.add_typer(entry.app, name="entry")
app.add_typer(dream.app, name="dream")
app.add_typer(schedules.app, name="schedules")
app.add_typer(jobs.app, name="jobs")
app.add_typer(audit.app, name="audit")
app.add_typer(secrets.app, name="secrets")
app.add_typer(policy.app, name="policy")
app.add_typer(keys.app, name="keys")
app.add_typer(agents.app, name="agents")
app.add_typer(openwop.app, name="openwop")
app.add_typer(backup.app, name="backup")
app.command("restore")(backup.restore)
app.command("migrate-store")(backup.migrate_store)


def _version(wanted: bool) -> None:
    if wanted:
        operate.version()
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    return


def main() -> None:
    """The entry point."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code. Never raises and never shows a traceback, unless REVERIE_DEBUG=1."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = get_command(app).main(list(arguments), prog_name="reverie", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    except BrokenPipeError:
        return _reader_left()
    except typer.Abort:
        return _fail("Stopped; nothing was changed.")
    except typer.TyperException as fault:
        return _usage(fault)
    except KeyboardInterrupt:
        return _fail("Interrupted.", 130)
    except Exception as fault:
        return _explain(fault)


def _usage(fault: typer.TyperException) -> int:
    context = getattr(fault, "ctx", None)
    message = fault.format_message()
    if type(fault).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(neutral(message) + "\n")
        return fault.exit_code
    where = f" Try: {context.command_path} --help" if context is not None else ""
    return _fail(f"{message.rstrip('.')}.{where}", fault.exit_code)


def _explain(fault: Exception) -> int:
    from reverie.core.errors import ReverieError

    if os.environ.get("REVERIE_DEBUG") == "1":
        import traceback

        traceback.print_exception(fault)
    if isinstance(fault, ReverieError):
        field = fault.pointer.strip("/") + ": " if fault.pointer else ""
        return _fail(f"{field}{fault.message} ({fault.reason})")
    if isinstance(fault, OSError):
        named = f" {fault.filename}" if fault.filename else ""
        return _fail(f"{fault.strerror or type(fault).__name__}:{named}" if named else str(fault.strerror or fault))
    # The message of an unexpected fault may hold memory text: only its type is shown.
    return _fail(f"Unexpected fault ({type(fault).__name__}). Run it again with REVERIE_DEBUG=1 to see where.")


def _fail(message: str, code: int = 1) -> int:
    try:
        sys.stderr.write(f"reverie: {one_line(message)}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        return _reader_left()
    return code


def _reader_left() -> int:
    """Whoever read our output closed it (`reverie list | head -1`): end quietly."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):
            continue
    return 1


if __name__ == "__main__":
    main()
