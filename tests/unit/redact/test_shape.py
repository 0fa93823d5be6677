"""No function of the redactor is longer or has more branches than a reader can follow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import reverie.redact

FOLDER = Path(reverie.redact.__file__).parent
MOST_BRANCHES = 20
MOST_LINES = 80
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)


def complexity(function: ast.AST) -> int:
    """One, and one more for every branch, loop, handler, condition of a comprehension and operand of `and` or `or`."""
    count = 1
    for node in ast.walk(function):
        count += isinstance(node, _BRANCHES)
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += len(node.ifs)
    return count


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(FOLDER)}:{node.lineno} {node.name}", node


def test_every_function_is_short_and_simple() -> None:
    made = list(functions())
    assert len(made) > 200
    assert not [name for name, node in made if complexity(node) > MOST_BRANCHES]
    assert not [name for name, node in made if (node.end_lineno or 0) - node.lineno >= MOST_LINES]


def test_branches_are_counted() -> None:
    source = "def f(a):\n    if a and a.b or a.c:\n        return [x for x in a if x]\n    return 1 if a else 2\n"
    assert complexity(ast.parse(source).body[0]) == 7
