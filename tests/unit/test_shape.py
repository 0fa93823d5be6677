"""The source is readable: short functions, plain prose."""

from __future__ import annotations

import ast
import re
import tokenize
from functools import cache
from pathlib import Path

import reverie

SOURCE = Path(reverie.__file__).parent
MOST_LINES = 80


def test_functions_are_short() -> None:
    long = set()
    for path in sorted(SOURCE.rglob("*.py")):
        for node in _nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES:
                    long.add(f"{path.relative_to(SOURCE)} {node.name}")
    assert not long


QUESTIONS = re.compile(r"\s*(?:What|Who|Whom|Whose|Why|How|Where|Which|When)\b")
FIGURATIVE = re.compile(r"\b(?:told|stands(?!\s+for\b)|nobody|whoever|anew)\b", re.IGNORECASE)


def test_docstrings_begin_with_the_noun_or_the_verb() -> None:
    nominal = {
        f"{place}: {text[:60]!r}" for place, text in _prose() if not text.startswith("#") and QUESTIONS.match(text)
    }
    assert not nominal


def test_prose_has_no_figurative_verbs() -> None:
    figurative = {
        f"{place}: {found[0]}" for place, text in _prose() if (found := FIGURATIVE.search(_NAME.sub("", text)))
    }
    assert not figurative


_NAME = re.compile(r"`[^`]*`")

PLAIN_NAMES = (
    *("window", "api/cli", "api/console", "api/mcp", "importers", "integrations", "client", "ops", "mcp", "library"),
    *("protocols/openwop", "protocols/responses", "protocols/anthropic", "protocols/mem0"),
)
"""Packages whose functions and classes are named by nouns and verbs."""
PARTICIPLES = frozenset(["asked", "told", "shown", "kept", "held", "said", "given", "found", "stands", "tells"])
SCHEMAS = frozenset({"Found", "GivenIn"})
"""Names of schemas in the OpenAPI document: part of the wire."""


def test_functions_and_classes_are_named_by_nouns_and_verbs() -> None:
    figurative = {
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
        for package in PLAIN_NAMES
        for path in sorted((SOURCE / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name not in SCHEMAS
        if PARTICIPLES & set(_words(node.name))
    }
    assert not figurative


def _words(name: str) -> list[str]:
    """The words of a name, in either style; `not_found` is the term of the trade."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("not_found", "").split("_")


@cache
def _nodes(path: Path) -> list[ast.AST]:
    """Every node of a module."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


@cache
def _prose() -> list[tuple[str, str]]:
    """Docstrings (also those below an assignment) and comments of the package, each with its place."""
    prose = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE)
        for node in _nodes(path):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                prose.append((f"{name}:{node.lineno}", node.value.value))
        with path.open(encoding="utf-8") as source:
            for token in tokenize.generate_tokens(source.readline):
                if token.type == tokenize.COMMENT:
                    prose.append((f"{name}:{token.start[0]}", token.string))
    return prose
