"""The statements of a module: definitions, imports and docstrings, without the expressions that are most of a tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement inside of `node`, at any depth."""
    for block in _BLOCKS:
        inner = getattr(node, block, ())
        if isinstance(inner, list):  # the body of a lambda or of a conditional expression is none
            for part in inner:
                yield part
                yield from statements(part)
