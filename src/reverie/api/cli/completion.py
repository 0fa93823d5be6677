"""reverie completion: the completion script of a shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from reverie.api.cli.command import Argument, Command
from reverie.api.cli.session import Json
from reverie.api.cli.terminal import print_json


class Shell(StrEnum):
    """A shell that completes words."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[Shell, Argument(metavar="SHELL", help="bash, zsh or fish.")], json: Json = False
) -> None:
    """Print the completion script of a shell. It holds every command and option: a key press starts no process.

    \b
    Examples:
      eval "$(reverie completion bash)"
      reverie completion zsh > ~/.zfunc/_reverie
      reverie completion fish > ~/.config/fish/completions/reverie.fish
    """
    script = _SCRIPTS[shell]()
    if json:
        print_json({"shell": shell.value, "script": script})
    else:
        sys.stdout.write(script)


def lines() -> Iterator[tuple[str, str, Command]]:
    """Every command: its first word, its second (or nothing), and itself."""
    from reverie.api.cli.catalog import COMMANDS
    from reverie.api.cli.main import command_of, find

    for name in COMMANDS:
        found = find(name)
        if isinstance(found, Command):
            yield name, "", found
        else:
            for second, function in found.functions.items():
                yield name, second, command_of(f"reverie {name} {second}", function)


def _options(command: Command) -> list[str]:
    return [flag for option in command.options for flag in (*option.on, *option.off) if flag.startswith("--")]


def _cases() -> Iterator[str]:
    """The words that may come next, by the words so far, as branches of a shell's `case`."""
    names: dict[str, list[str]] = {}
    for first, second, command in lines():
        words = " ".join([*_options(command), "--help"])
        if second:
            names.setdefault(first, []).append(second)
            yield f'    "{first} {second}") words="{words}" ;;'
        else:
            names[first] = []
            yield f'    "{first} "*) words="{words}" ;;'
    for first, seconds in names.items():
        if seconds:
            yield f'    "{first} "*) words="{" ".join(seconds)} --help" ;;'
    yield f'    *) words="{" ".join(names)} --help --version" ;;'


def _bash() -> str:
    head = [
        "_reverie() {",
        '  local words="" first="" second=""',
        '  [ "$COMP_CWORD" -gt 1 ] && first="${COMP_WORDS[1]}"',
        '  [ "$COMP_CWORD" -gt 2 ] && second="${COMP_WORDS[2]}"',
        '  case "$first $second" in',
    ]
    tail = [
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
        "}",
        "complete -o default -F _reverie reverie",
    ]
    return "\n".join([*head, *_cases(), *tail]) + "\n"


def _zsh() -> str:
    head = [
        "#compdef reverie",
        "_reverie() {",
        '  local words_="" first="" second=""',
        "  (( CURRENT > 2 )) && first=$words[2]",
        "  (( CURRENT > 3 )) && second=$words[3]",
        '  case "$first $second" in',
    ]
    body = [case.replace(" words=", " words_=") for case in _cases()]
    tail = [
        "  esac",
        "  compadd -- ${=words_}",
        "  _files",
        "}",
        'if [ "$funcstack[1]" = "_reverie" ]; then _reverie "$@"; else compdef _reverie reverie; fi',
    ]
    return "\n".join([*head, *body, *tail]) + "\n"


def _fish() -> str:
    def quote(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    made: list[str] = []
    seen: set[str] = set()
    for first, second, command in lines():
        from reverie.api.cli.catalog import CATALOG

        summary = next(group[first][1] for group in CATALOG.values() if first in group)
        if first not in seen:
            seen.add(first)
            made.append(f"complete -c reverie -n __fish_use_subcommand -a {first} -d {quote(summary)}")
        within = f"__fish_seen_subcommand_from {first}"
        if second:
            made.append(f"complete -c reverie -f -n {quote(within)} -a {second} -d {quote(command.summary)}")
            within += f"; and __fish_seen_subcommand_from {second}"
        for option in command.options:
            for flag in (*option.on, *option.off):
                if flag.startswith("--"):
                    value = "" if option.flag else " -r"
                    about = quote(option.declared.help)
                    made.append(f"complete -c reverie -n {quote(within)} -l {flag[2:]}{value} -d {about}")
    return "\n".join(made) + "\n"


_SCRIPTS = {Shell.bash: _bash, Shell.zsh: _zsh, Shell.fish: _fish}
