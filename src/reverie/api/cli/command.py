"""The parser of command lines: declarations of arguments, their values, and the help page.

A command is a function. Its parameters are annotated with `Option` and `Argument`; its docstring is its help, where a
paragraph that begins with a backspace (`\\b`) is printed as it is. Only the standard library is imported here, so that
a command starts as fast as Python does.
"""

from __future__ import annotations

import inspect
import os
import sys
import types
import typing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

WIDEST = 100
"""Width of a help page on a wider terminal, in columns."""
_LEFT = 32
HELP = ("-h", "--help")
COMMON = ("tenant", "data", "database_url", "url", "json")
"""Parameters that most commands have; the help page lists them separately."""


@dataclass(frozen=True, init=False)
class Option:
    """A parameter with a name: `--ref REF`, `-r REF`, `--yes`, `--pinned/--not-pinned`."""

    flags: tuple[str, ...]
    metavar: str
    help: str
    least: int | None
    most: int | None
    show_default: bool

    def __init__(
        self,
        *flags: str,
        metavar: str = "",
        help: str = "",  # noqa: A002
        least: int | None = None,
        most: int | None = None,
        show_default: bool = True,
    ) -> None:
        values = {"flags": flags, "metavar": metavar, "help": help, "least": least, "most": most}
        for name, value in {**values, "show_default": show_default}.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Argument:
    """A positional parameter."""

    metavar: str = ""
    help: str = ""


class Exit(Exception):
    """End the command with this exit code, without a message."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        super().__init__(code)


class Abort(Exception):
    """The person at the terminal declined."""


class UsageError(Exception):
    """The command line is not valid. The exit code is 2."""

    def __init__(self, message: str, path: str) -> None:
        self.message = message
        self.path = path
        super().__init__(message)


class Group:
    """Commands under one name: `reverie dream run`, `reverie dream undo`."""

    def __init__(self, help: str) -> None:  # noqa: A002
        self.help = help
        self.functions: dict[str, Callable[..., None]] = {}

    def command(self, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Register a function as the command of this name."""

        def register(function: Callable[..., None]) -> Callable[..., None]:
            self.functions[name] = function
            return function

        return register


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command, read from its signature."""

    name: str
    declared: Option | Argument
    type: Any
    many: bool
    required: bool
    default: Any
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    @property
    def flag(self) -> bool:
        """Whether it takes no value."""
        return self.type is bool

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it accepts; empty: any."""
        if isinstance(self.type, type):
            return tuple(str(choice.value) for choice in self.type) if issubclass(self.type, Enum) else ()
        return tuple(map(str, typing.get_args(self.type)))

    @property
    def metavar(self) -> str:
        """Name of its value on the help page."""
        if self.declared.metavar:
            return self.declared.metavar
        if self.choices:
            return "|".join(self.choices)
        return {int: "N", float: "NUMBER"}.get(self.type, self.name.upper())

    def convert(self, text: str, path: str) -> Any:
        """Convert a word to the parameter's type. Raises UsageError."""
        shown = self.on[-1] if self.on else self.metavar
        if self.choices:
            if text not in self.choices:
                raise UsageError(f"{shown} is one of {', '.join(self.choices)}", path)
            return self.type(text) if isinstance(self.type, type) else text
        if self.type in (int, float):
            try:
                number = self.type(text)
            except ValueError:
                noun = "a whole number" if self.type is int else "a number"
                raise UsageError(f"{shown} is {noun}", path) from None
            least, most = (getattr(self.declared, bound, None) for bound in ("least", "most"))
            if (least is not None and number < least) or (most is not None and number > most):
                bounds = f"at least {least}" if most is None else f"{least or 0} to {most}"
                raise UsageError(f"{shown} is {bounds}", path)
            return number
        return self.type(text)


class Command:
    """A function as a command, with its parameters and its help."""

    def __init__(self, path: str, function: Callable[..., None]) -> None:
        self.path = path
        self.function = function
        self.help = inspect.cleandoc(function.__doc__ or "")
        self.parameters = list(_parameters(function))

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        return first_sentence(self.help)

    @property
    def options(self) -> list[Parameter]:
        """Its parameters with a name."""
        return [parameter for parameter in self.parameters if parameter.on]

    @property
    def arguments(self) -> list[Parameter]:
        """Its positional parameters."""
        return [parameter for parameter in self.parameters if not parameter.on]

    def run(self, words: Sequence[str]) -> None:
        """Call the function with these words; on `--help` print the page instead. Raises UsageError."""
        values = self.parse(words)
        if values is None:
            sys.stdout.write(self.page(page_width()))
        else:
            self.function(**values)

    def parse(self, words: Sequence[str]) -> dict[str, Any] | None:
        """Values by the name of the parameter; None when the help page is requested."""
        flags = {flag: (parameter, True) for parameter in self.options for flag in parameter.on}
        flags |= {flag: (parameter, False) for parameter in self.options for flag in parameter.off}
        values: dict[str, Any] = {}
        places: list[str] = []
        left = deque(words)
        while left:
            word = left.popleft()
            if word == "--":
                places += left
                break
            if word == "-" or not word.startswith("-"):
                places.append(word)
                continue
            if word in HELP:
                return None
            name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
            if name not in flags:
                raise self._unknown(name, flags)
            parameter, meaning = flags[name]
            if parameter.flag:
                if equals and word.startswith("--"):
                    raise UsageError(f"{name} takes no value", self.path)
                if equals:  # -ab is -a -b
                    left.appendleft(f"-{value}")
                values[parameter.name] = meaning
                continue
            if not equals:
                if not left:
                    raise UsageError(f"{name} needs a value: {name} {parameter.metavar}", self.path)
                value = left.popleft()
            converted = parameter.convert(value, self.path)
            if parameter.many:
                values.setdefault(parameter.name, []).append(converted)
            else:
                values[parameter.name] = converted
        self._place(places, values)
        self._complete(values)
        return values

    def _complete(self, values: dict[str, Any]) -> None:
        """Add the defaults of what was not given. Raises UsageError for a parameter that has none."""
        for parameter in self.parameters:
            if parameter.name not in values:
                if parameter.required:
                    missing = parameter.on[-1] if parameter.on else parameter.metavar
                    meaning = f" {parameter.declared.help}" if parameter.declared.help and not parameter.on else ""
                    raise UsageError(f"{missing} is missing: {self.usage}.{meaning}".rstrip("."), self.path)
                values[parameter.name] = list(parameter.default) if parameter.many else parameter.default

    def _unknown(self, name: str, flags: dict[str, Any]) -> UsageError:
        if name == "--url" and "--data" in flags:  # a command that opens the data itself has none
            return UsageError("This works on the data itself: run it on the host's machine, without --url", self.path)
        return UsageError(f"There is no option {name} here{near(name, flags)}", self.path)

    def _place(self, words: list[str], values: dict[str, Any]) -> None:
        for parameter in self.arguments:
            if parameter.many:
                if words:
                    values[parameter.name] = [parameter.convert(word, self.path) for word in words]
                words = []
            elif words:
                values[parameter.name] = parameter.convert(words.pop(0), self.path)
        if words:
            raise UsageError(f"{words[0]} is one word too many: {self.usage}{self._place_of(words[0])}", self.path)

    def _place_of(self, word: str) -> str:
        """Advice on a word that is one too many."""
        if any("--output" in parameter.on for parameter in self.options):
            return f". To write to a file: -o {word}"
        return ". Quote a text that has spaces" if self.arguments else ""

    @property
    def usage(self) -> str:
        """The usage line."""
        parts = [self.path, "[OPTIONS]"]
        for parameter in self.arguments:
            shown = parameter.metavar
            if not shown.startswith("["):
                shown = shown + ("..." if parameter.many and "..." not in shown else "")
                shown = shown if parameter.required else f"[{shown}]"
            parts.append(shown)
        parts += [f"{p.on[-1]} {p.metavar}" for p in self.options if p.required]
        return " ".join(parts)

    def page(self, width: int) -> str:
        """The help page."""
        lines = [f"Usage: {self.usage}", "", *paragraphs(self.help, width)]
        described = [(p.metavar, p.declared.help) for p in self.arguments if p.declared.help]
        if described:
            lines += ["", "Arguments:", *pairs(described, width)]
        own = [_row(p) for p in self.options if p.name not in COMMON]
        lines += ["", "Options:", *pairs([*own, ("-h, --help", "Show this page and exit.")], width)]
        common = [_row(p) for p in self.options if p.name in COMMON]
        if common:
            lines += ["", "Target and output:", *pairs(common, width)]
        return "\n".join(lines) + "\n"


def group_page(path: str, group: Group, width: int) -> str:
    """The help page of a group."""
    rows = [(name, first_sentence(inspect.cleandoc(made.__doc__ or ""))) for name, made in group.functions.items()]
    lines = [f"Usage: {path} COMMAND [OPTIONS] [ARGS]", "", *paragraphs(group.help, width), "", "Commands:"]
    return "\n".join([*lines, *pairs(rows, width)]) + "\n"


def first_sentence(text: str) -> str:
    """The first sentence of a help text."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    head, stop, _ = paragraph.partition(". ")
    return head + "." if stop else paragraph


def paragraphs(text: str, width: int) -> Iterator[str]:
    """A help text, indented and wrapped; what begins with `\\b` is printed as it is."""
    import textwrap

    for at, paragraph in enumerate(text.split("\n\n")):
        if at:
            yield ""
        if paragraph.startswith("\b"):
            yield from (f"  {line}" for line in paragraph.split("\n")[1:])
        else:
            yield from (f"  {line}" for line in textwrap.wrap(" ".join(paragraph.split()), width - 4))


def pairs(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Names and meanings in two columns. A meaning is wrapped, never cut."""
    import textwrap

    left = min(max((len(name) for name, _ in rows), default=0), _LEFT) + 4
    for name, meaning in rows:
        wrapped = textwrap.wrap(meaning, max(width - left, 20), break_on_hyphens=False) or [""]
        if len(name) + 4 > left:
            yield f"  {name}"
        else:
            yield f"  {name:<{left - 2}}{wrapped.pop(0)}".rstrip()
        yield from (f"{'':<{left}}{line}" for line in wrapped)


def page_width() -> int:
    """Width of a help page: that of the terminal, within limits."""
    return max(40, min(columns(), WIDEST))


def columns() -> int:
    """Columns of the terminal; 80 when there is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def near(word: str, known: Any) -> str:
    """`. Did you mean X?`, when something like the word is known; else nothing."""
    from difflib import get_close_matches

    bare = {one.lstrip("-"): one for one in known}  # leading dashes do not make options similar
    found = get_close_matches(word.lstrip("-"), list(bare), n=3, cutoff=0.6)
    return f". Did you mean {' or '.join(bare[one] for one in found)}?" if found else ""


def confirm(question: str) -> bool:
    """Ask for yes or no on the terminal."""
    while True:
        answer = ask(f"{question} [y/N]: ").strip().lower()
        if answer in ("y", "yes"):
            return True
        if answer in ("", "n", "no"):
            return False


def ask(question: str, *, hidden: bool = False) -> str:
    """A line from the terminal; the question goes to stderr."""
    try:
        if hidden:
            from getpass import getpass

            return getpass(question, stream=sys.stderr)
        sys.stderr.write(question)
        sys.stderr.flush()
        line = sys.stdin.readline()
    except EOFError:
        raise Abort from None
    if not line:
        raise Abort
    return line.rstrip("\n")


def _parameters(function: Callable[..., None]) -> Iterator[Parameter]:
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        annotation = parameter.annotation
        declared = next(
            (item for item in getattr(annotation, "__metadata__", ()) if isinstance(item, Option | Argument)), None
        )
        if declared is None:
            raise TypeError(f"{function.__qualname__}: {name} is neither an Option nor an Argument")
        kind = annotation.__origin__
        if typing.get_origin(kind) in (typing.Union, types.UnionType):
            kind = next(part for part in typing.get_args(kind) if part is not type(None))
        many = typing.get_origin(kind) is list
        if many:
            (kind,) = typing.get_args(kind)
        required = parameter.default is inspect.Parameter.empty
        default = ([] if many else None) if required else parameter.default
        on: tuple[str, ...] = ()
        off: tuple[str, ...] = ()
        if isinstance(declared, Option):
            flags = declared.flags or (f"--{name.replace('_', '-')}",)
            split = [flag.partition("/") for flag in flags]
            on = tuple(sorted((flag for flag, _, _ in split), key=len))
            off = tuple(flag for _, _, flag in split if flag)
        yield Parameter(name, declared, kind, many, required, default, on, off)


def _row(parameter: Parameter) -> tuple[str, str]:
    declared = parameter.declared
    shown = ", ".join(parameter.on) + (f" / {', '.join(parameter.off)}" if parameter.off else "")
    if not parameter.flag:
        shown += f" {parameter.metavar}"
    meaning = declared.help
    default = parameter.default
    if isinstance(default, Enum):
        default = default.value
    if not parameter.flag and isinstance(declared, Option) and declared.show_default and default not in (None, "", []):
        meaning += f"  [default: {default}]"
    elif parameter.off and default is not None:
        meaning += f"  [default: {(parameter.on if default else parameter.off)[-1]}]"
    return shown, meaning.strip()
