"""No function is longer than a reader can follow."""

from __future__ import annotations

import ast
from pathlib import Path

import reverie

SOURCE = Path(reverie.__file__).parent
MOST_LINES = 80


def test_functions_are_short() -> None:
    long = set()
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES:
                    long.add(f"{path.relative_to(SOURCE)} {node.name}")
    assert not long
