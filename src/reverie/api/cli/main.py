"""`reverie`: the commands, and the one place where a fault becomes a line and an exit code.

0  done        1  failed        2  not a valid command line        130  interrupted
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated

import typer
from typer.main import get_command

from reverie.api.cli.terminal import neutral, one_line

COMMANDS = {
    "put": "put:put",
    "get": "entries:get",
    "list": "entries:list_entries",
    "refs": "entries:refs",
    "stats": "entries:stats",
    "search": "recall:search",
    "context": "recall:context",
    "why": "lineage:why",
    "derived": "lineage:derived",
    "consolidate": "lineage:consolidate",
    "forget": "privacy:forget",
    "redact": "privacy:redact",
    "scan": "privacy:scan",
    "export": "bundles:export",
    "import": "bundles:import_bundle",
    "serve": "operate:serve",
    "worker": "operate:worker",
    "doctor": "operate:doctor",
    "upgrade": "operate:upgrade",
    "sweep": "operate:sweep",
    "settings": "operate:settings",
    "version": "operate:version",
    "mcp": "mcp:mcp",
    "demo": "demo:demo",
    "proxy": "window:proxy",
    "restore": "backup:restore",
    "migrate-store": "backup:migrate_store",
    "window": "window:app",
    "entry": "entry:app",
    "dream": "dream:app",
    "schedules": "schedules:app",
    "jobs": "jobs:app",
    "audit": "audit:app",
    "secrets": "secrets:app",
    "policy": "policy:app",
    "keys": "keys:app",
    "agents": "agents:app",
    "openwop": "openwop:app",
    "backup": "backup:app",
}
"""Every command as `module:name` beside this file: a function, or a Typer with commands of its own."""


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line, with these commands. A command that is typed is the only one that is imported."""
    app = typer.Typer(
        name="reverie",
        help="A memory host for AI agents. Start with: reverie serve, or reverie put 'something to remember'.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"reverie.api.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from reverie.api.cli.operate import version

        version()
        raise typer.Exit


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
        # Anything else than a command (help, a word with a typing error) needs to know them all.
        app = make_app(arguments[:1]) if arguments and arguments[0] in COMMANDS else make_app()
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
