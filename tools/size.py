"""Size: lines of code in `src/reverie`, by package.

    python tools/size.py            a table
    python tools/size.py FOLDER     of another tree

A line counts when it holds code: blank lines, comments and docstrings do not.
Lines of TOML count: rules may be data.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "reverie"
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def python_lines(path: Path) -> int:
    """Lines of a Python file that hold code."""
    lines: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in _NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _documentation(ast.parse(path.read_bytes())))


def _documentation(tree: ast.Module) -> set[int]:
    """Lines of the docstrings of modules, classes and functions."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def toml_lines(path: Path) -> int:
    """Lines of a TOML file that hold data."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def sizes(root: Path) -> Counter[str]:
    """Lines by package, or by module at the top."""
    found: Counter[str] = Counter()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".toml"):
            count = python_lines if path.suffix == ".py" else toml_lines
            found[path.relative_to(root).parts[0]] += count(path)
    return found


def main(root: Path) -> None:
    """Print the table."""
    found = sizes(root)
    for name, lines in found.most_common():
        print(f"{lines:7,}  {name}")
    print(f"{found.total():7,}  in all")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
