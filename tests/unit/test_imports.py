"""Imports point one way. Cheaper than a reviewer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reverie

ROOT = Path(reverie.__file__).parent

LAYERS = {
    "core": 0,
    "redact": 1,
    "recall": 1,
    "dream": 1,
    "models": 1,
    "store": 1,
    "window": 1,
    "settings": 1,
    "host": 2,
    "serve": 3,
    "ops": 3,
    "worker": 3,
    "doors": 4,
    "app": 5,
    "library": 6,
    "akashik": 6,
    "aio": 7,
    "": 8,
}
"""Who may import whom: a lower number never imports a higher one. `doors` stand on `serve`, which they share."""

PEERS_ALLOWED = {
    ("dream", "redact"),  # distilled text passes the same redactor as a fresh write
    ("models", "dream"),  # a language model is a distiller
    ("serve", "ops"),
    ("serve", "worker"),
    ("worker", "ops"),
}
"""Arrows between neighbours of the same layer that are meant."""

ENTRY_POINTS = ("doors/cli/", "serve/run.py", "serve/__main__.py")
"""Where a process begins: these may import `app`, inside functions only."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool, int]]:
    """(imported module, whether at the top level and at run time, line)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy: set[int] = set()
    for node in ast.walk(tree):
        guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or guarded:
            lazy.update(id(child) for child in ast.walk(node))
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: relative import"
            names = [node.module or ""]
            if node.module in ("reverie", "reverie.doors"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name == "reverie" or name.startswith("reverie."):
                yield name, id(node) not in lazy, node.lineno  # type: ignore[attr-defined]


def part(name: str) -> str:
    """`reverie.host.write` -> `host`; the package itself and its names -> ``."""
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 and pieces[1] in LAYERS else ""


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_one_way(path: Path) -> None:
    inside = path.relative_to(ROOT).as_posix()
    own = part("reverie." + inside.removesuffix(".py").replace("/", "."))
    for name, eager, line in imports(path):
        where = f"{inside}:{line} imports {name}"
        other = part(name)
        if other == own:
            if own == "doors":
                mine, its = inside.split("/")[1], name.split(".")[2] if name.count(".") > 1 else ""
                shared = its == "mcp" and mine == "akashik"  # its tools are served as those of memory are
                assert shared or its in ("", mine), f"{where}: doors never import each other"
            continue
        if other == "" and name in ("reverie", "reverie.__version__"):
            continue
        if other in ("app", "library") and not eager and inside.startswith(ENTRY_POINTS):
            continue
        if other == "" and not eager:
            continue
        if own == "host" and other == "store":
            assert name == "reverie.store.contract", f"{where}: the host knows the contract only"
        if name.startswith("reverie.store.sqlite") or name.startswith("reverie.store.postgres"):
            assert own == "app", f"{where}: only app names a concrete store"
        lower = LAYERS[other] < LAYERS[own]
        assert lower or (own, other) in PEERS_ALLOWED, f"{where}: this arrow points the wrong way"
