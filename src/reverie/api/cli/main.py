"""`reverie`: the commands, and the one place where a fault becomes a line and an exit code.

0  done        1  failed        2  not a valid command line        130  interrupted
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from reverie.api.cli.catalog import CATALOG, COMMANDS
from reverie.api.cli.command import HELP, Abort, Command, Exit, Group, UsageError, group_page, near, page_width, pairs
from reverie.api.cli.terminal import neutral, one_line

_ABOUT = (
    "A memory host for AI agents. Start with: reverie serve, or reverie put 'something to remember'. "
    "`reverie COMMAND --help` explains a command, with an example."
)
_CODES = "Exit codes: 0 done, 1 failed, 2 not a valid command line, 130 interrupted."


def root_page(width: int) -> str:
    """The page of `reverie --help`: every command by purpose. Imports no command."""
    from reverie.api.cli.command import paragraphs

    lines = ["Usage: reverie COMMAND [OPTIONS] [ARGS]", "", *paragraphs(_ABOUT, width)]
    left = max(map(len, COMMANDS))
    for purpose, commands in CATALOG.items():
        rows = [(f"{name:<{left}}", summary) for name, (_, summary) in commands.items()]
        lines += ["", f"{purpose}:", *pairs(rows, width)]
    options = [("--version", "Print the version and exit."), ("-h, --help", "Show this page and exit.")]
    lines += ["", "Options:", *pairs([(f"{name:<{left}}", meaning) for name, meaning in options], width)]
    return "\n".join([*lines, "", *paragraphs(_CODES, width)]) + "\n"


def find(name: str) -> Command | Group:
    """The command or group of this name. No other is imported."""
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(f"reverie.api.cli.{module}"), attribute)
    return found if isinstance(found, Group) else command_of(f"reverie {name}", found)


def command_of(path: str, function: object) -> Command:
    """A function as a command, with its groups of options expanded."""
    from reverie.api.cli.session import expand

    return Command(path, expand(function))  # type: ignore[arg-type]


def main() -> None:
    """The entry point."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code. Never raises and never shows a traceback, unless REVERIE_DEBUG=1."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    json = "--json" in arguments
    try:
        code = _dispatch(list(arguments))
        sys.stdout.flush()
        return code
    except Exit as leaving:
        return leaving.code
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    except BrokenPipeError:
        return _close_output()
    except Abort:
        return _fail("Stopped; nothing was changed.", "not_confirmed", json=json)
    except UsageError as fault:
        message = fault.message if fault.message.endswith("?") else f"{fault.message}."
        return _fail(f"{message} Try: {fault.path} --help", "usage_error", code=2, json=json)
    except KeyboardInterrupt as interrupt:
        return _fail(f"Interrupted. {interrupt}".strip(), "interrupted", code=130, json=json)
    except Exception as fault:
        return _explain(fault, json)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in HELP:
        sys.stdout.write(root_page(page_width()))
        return 0 if arguments else 2
    name, *words = arguments
    if name == "--version":
        name = "version"
    if name.startswith("-"):
        raise UsageError(f"{name} comes after a command: reverie COMMAND {name}", "reverie")
    if name not in COMMANDS:
        raise UsageError(f"There is no command {name}{near(name, COMMANDS)}", "reverie")
    found = find(name)
    if isinstance(found, Command):
        found.run(words)
        return 0
    path = f"reverie {name}"
    if not words or words[0] in HELP:
        sys.stdout.write(group_page(path, found, page_width()))
        return 0 if words else 2
    if words[0].startswith("-"):
        raise UsageError(f"{words[0]} comes after a command: {path} COMMAND {words[0]}", path)
    if words[0] not in found.functions:
        elsewhere = f". Did you mean reverie {words[0]}?" if words[0] in COMMANDS else ""
        raise UsageError(f"There is no command {path} {words[0]}{elsewhere or near(words[0], found.functions)}", path)
    command_of(f"{path} {words[0]}", found.functions[words[0]]).run(words[1:])
    return 0


_FILE_FAULTS: dict[type[OSError], str] = {
    FileNotFoundError: "There is no file or folder {file}. Check the path.",
    PermissionError: "This user has no right to open {file}. Change its permissions, or choose another place.",
    IsADirectoryError: "{file} is a folder, and a file is needed. `reverie import {file}` reads the files of a folder.",
    NotADirectoryError: "A part of the path {file} is a file, not a folder.",
}


def _explain(fault: Exception, json: bool) -> int:
    from reverie.core.errors import ReverieError

    if os.environ.get("REVERIE_DEBUG") == "1":
        import traceback

        traceback.print_exception(fault)
    if isinstance(fault, ReverieError):
        details = {**fault.details, **({"pointer": fault.pointer} if fault.pointer else {})}
        if json:
            return _fail(fault.message, fault.reason, details=details, json=True)
        field = (fault.pointer or "").strip("/")
        alone = not field or field.lower() in fault.message.lower().replace("'", " ").split()
        return _fail(f"{'' if alone else field + ': '}{fault.message} ({fault.reason})")
    if isinstance(fault, OSError):
        named = f" {fault.filename}" if fault.filename else ""
        message = f"{fault.strerror or type(fault).__name__}:{named}" if named else str(fault.strerror or fault)
        if named and (sentence := _FILE_FAULTS.get(type(fault))):
            message = sentence.format(file=fault.filename)
        return _fail(message, "os_error", json=json)
    # The message of an unexpected fault may hold memory text: only its type is shown.
    message = f"Unexpected fault ({type(fault).__name__}). Run it again with REVERIE_DEBUG=1 to see where."
    return _fail(message, "internal_error", json=json)


def _fail(
    message: str, error: str = "", *, code: int = 1, details: dict[str, object] | None = None, json: bool = False
) -> int:
    """One line on stderr; under --json the body that the REST interface has: `error`, `message`, `details`."""
    try:
        if json:
            from reverie.api.cli.terminal import json_line

            body = {"error": error, "message": neutral(message), **({"details": details} if details else {})}
            sys.stderr.write(json_line(body).decode())
        else:
            sys.stderr.write(f"reverie: {one_line(message)}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        return _close_output()
    return code


def _close_output() -> int:
    """End quietly after the reader of our output closed it (`reverie list | head -1`)."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):
            continue
    return 1


if __name__ == "__main__":
    main()
