"""The source is readable: short functions, plain prose."""

from __future__ import annotations

import ast
import re
import tokenize
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tests.statements import statements

import reverie

SOURCE = Path(reverie.__file__).parent
MOST_LINES = 80


def test_functions_are_short() -> None:
    long = {f"{one.module} {one.name}" for one in _source().definitions if one.is_function and one.lines > MOST_LINES}
    assert not long


QUESTIONS = re.compile(r"\s*(?:What|Who|Whom|Whose|Why|How|Where|Which|When)\b")
FIGURATIVE = re.compile(r"\b(?:told|stands(?!\s+for\b)|nobody|whoever|anew)\b", re.IGNORECASE)


def test_docstrings_begin_with_the_noun_or_the_verb() -> None:
    nominal = {
        f"{place}: {text[:60]!r}"
        for place, text in _source().prose
        if not text.startswith("#") and QUESTIONS.match(text)
    }
    assert not nominal


def test_prose_has_no_figurative_verbs() -> None:
    figurative = {
        f"{place}: {found[0]}" for place, text in _source().prose if (found := FIGURATIVE.search(_NAME.sub("", text)))
    }
    assert not figurative


_NAME = re.compile(r"`[^`]*`")

PLAIN_NAMES = (
    *("window", "api/cli", "api/console", "api/mcp", "importers", "integrations", "client", "ops", "mcp", "library"),
    *("protocols/openwop", "protocols/responses", "protocols/anthropic", "protocols/mem0", "protocols/akashik"),
    *("api/rest", "demo", "distil", "dreams", "http", "index", "jobs", "privacy", "providers", "redact", "store"),
    *("core", "memory"),
)
"""Packages whose functions and classes are named by nouns and verbs."""
PARTICIPLES = frozenset(["asked", "told", "shown", "kept", "held", "said", "given", "found", "stands", "tells"])
SCHEMAS = frozenset({"Found", "GivenIn"})
"""Names of schemas in the OpenAPI document: part of the wire."""
ERRORS = frozenset({"Held"})
"""Errors that programs catch by name."""
CHECKS = frozenset({"is_told", "is_told_value", "_told", "_shown"})
"""Functions of rules whose names are part of the redactor's version."""
FUNCTIONS = ("memory",)
"""Packages whose functions are not named by a participle or gerund alone: `clean`, not `cleaned` or `cleaning`."""
ENDINGS = re.compile(r"_*[a-z]+(?:ed|ing)")
SENTENCES = "store/conformance/"
"""Cases of the conformance suite, named by the sentence that they prove."""


def test_functions_and_classes_are_named_by_nouns_and_verbs() -> None:
    figurative = {
        f"{one.module}:{one.line} {one.name}"
        for one in _source().definitions
        if one.module.startswith(tuple(f"{package}/" for package in PLAIN_NAMES))
        if not one.module.startswith(SENTENCES) and one.name not in SCHEMAS | ERRORS | CHECKS
        if PARTICIPLES & set(_words(one.name))
    }
    assert not figurative


def test_functions_are_not_named_by_a_participle_alone() -> None:
    participles = {
        f"{one.module}:{one.line} {one.name}"
        for one in _source().definitions
        if one.is_function and one.module.startswith(tuple(f"{package}/" for package in FUNCTIONS))
        if ENDINGS.fullmatch(one.name)
    }
    assert not participles


def _words(name: str) -> list[str]:
    """The words of a name, in either style; `not_found` is the term of the trade."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("not_found", "").split("_")


class _Definition(NamedTuple):
    """A function or a class."""

    module: str
    name: str
    line: int
    lines: int
    is_function: bool


class _Source(NamedTuple):
    """The package: its functions and classes; its docstrings (also those below an assignment) and comments, each with
    its place."""

    definitions: list[_Definition]
    prose: list[tuple[str, str]]


@cache
def _source() -> _Source:
    """Read once, and without its syntax trees, which take 170 MB."""
    read = _Source([], [])
    for path in sorted(SOURCE.rglob("*.py")):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
        for node in statements(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                is_function = not isinstance(node, ast.ClassDef)
                read.definitions.append(_Definition(name, node.name, node.lineno, lines, is_function))
            elif (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                read.prose.append((f"{name}:{node.lineno}", node.value.value))
        for token in tokenize.generate_tokens(StringIO(text).readline) if "#" in text else ():
            if token.type == tokenize.COMMENT:
                read.prose.append((f"{name}:{token.start[0]}", token.string))
    return read
