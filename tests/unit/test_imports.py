"""Imports point one way. Cheaper than a reviewer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.statements import statements

import reverie

ROOT = Path(reverie.__file__).parent

LAYERS = (
    ("core",),
    ("redact", "search", "settings"),
    ("index", "distil", "providers"),
    ("store",),
    ("services",),
    ("memory",),
    ("dreams",),
    ("jobs",),
    ("window",),
    ("privacy",),
    ("host",),
    ("ops",),
    ("http",),
    ("client", "mcp"),
    ("protocols", "api", "importers"),
    ("app",),
    ("library",),
    ("akashik", "responses", "anthropic", "integrations", "demo"),
    ("aio",),
    ("",),
)
"""Packages and modules, lowest first. A module imports its own package and lower layers only."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

MEANT = {
    ("distil", "redact"),  # distilled text passes the same redactor as a fresh write
    ("providers", "distil"),  # a language model is a distiller
    ("api", "importers"),  # the command line runs them
    ("api", "protocols"),  # commands and tools for what a protocol keeps: agents, capabilities, windows
}
"""Arrows inside a layer that are meant."""

STORE_FOR_USE_CASES = ("reverie.store.contract", "reverie.store.leases", "reverie.store.group_commit")
"""All that memory, dreams, jobs, windows, privacy and protocols know of a store."""

USE_CASES = ("services", "memory", "dreams", "window", "privacy", "protocols", "api")

ENTRY_POINTS = ("api/cli/", "http/run.py", "http/__main__.py")
"""Where a process begins: these may import `app`, inside functions only."""

PROTOCOL_WORDS = re.compile(
    r"akashik|openwop|attune|coordinate\b|handoff|workflow|discovery|responses api|openai|anthropic|"
    r"previous_response|encrypted_content|mcp\b|langgraph",
    re.IGNORECASE,
)
"""Words of protocols. `memory` works for all of them and names none."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


@cache
def imports(path: Path) -> list[tuple[str, bool, int]]:
    """(imported module, whether at the top level and at run time, line)."""
    found: list[tuple[str, bool, int]] = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy: set[int] = set()
    for node in statements(tree):
        guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or guarded:
            lazy.update(id(child) for child in statements(node))
    for node in statements(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: relative import"
            names = [node.module or ""]
            if node.module in ("reverie", "reverie.api", "reverie.protocols", "reverie.store"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name == "reverie" or name.startswith("reverie."):
                found.append((name, id(node) not in lazy, node.lineno))  # type: ignore[attr-defined]
    return found


def part(name: str) -> str:
    """`reverie.memory.entries` -> `memory`; the package itself and its names -> ``."""
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 and pieces[1] in LEVEL else ""


def inside(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part_of(path: Path) -> str:
    return part("reverie." + inside(path).removesuffix(".py").replace("/", "."))


def upward(path: Path) -> Iterator[tuple[str, str]]:
    """(layer, where) of every import that points the wrong way."""
    own = part_of(path)
    for name, eager, line in imports(path):
        other = part(name)
        if other == own or (other == "" and (not eager or name in ("reverie", "reverie.__version__"))):
            continue
        if LEVEL[other] >= LEVEL["app"] and not eager and inside(path).startswith(ENTRY_POINTS):
            continue
        if LEVEL[other] >= LEVEL[own] and (own, other) not in MEANT:
            yield other, f"{inside(path)}:{line} imports {name}"


def test_imports_point_one_way() -> None:
    wrong = [where for path in modules() for _, where in upward(path)]
    assert not wrong, f"these arrows point the wrong way: {wrong}"


def test_a_concrete_store_is_named_by_app_alone() -> None:
    wrong = []
    for path in modules():
        own = part_of(path)
        for name, _, line in imports(path):
            where = f"{inside(path)}:{line} imports {name}"
            if own in USE_CASES and part(name) == "store" and not name.startswith(STORE_FOR_USE_CASES):
                wrong.append(f"{where}: use cases know the contract of a store")
            if name.startswith(("reverie.store.sqlite", "reverie.store.postgres")) and own not in ("store", "app"):
                wrong.append(f"{where}: only app names a concrete store")
    assert not wrong


def test_interfaces_and_protocols_never_import_each_other() -> None:
    wrong = []
    for path in modules():
        own = inside(path).split("/")
        if own[0] not in ("protocols", "api") or len(own) < 3:
            continue
        for name, _, line in imports(path):
            pieces = name.split(".")
            other = pieces[2] if pieces[1] == own[0] and len(pieces) > 2 else own[1]
            if other != own[1] and (ROOT / own[0] / other).is_dir():
                wrong.append(f"{inside(path)}:{line} imports {name}")
    assert not wrong


def test_memory_knows_no_word_of_a_protocol() -> None:
    found = [
        f"{inside(path)}:{n}: {line.strip()}"
        for path in sorted((ROOT / "memory").rglob("*.py"))
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PROTOCOL_WORDS.search(line)
    ]
    assert not found
