"""Write the parts of the documentation that the code already says.

    python tools/generate_docs.py            write them
    python tools/generate_docs.py --check    exit 1 when a page is not up to date

A page holds hand-written text and blocks between `<!-- generated: NAME -->` and `<!-- end generated -->`.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end generated -->)", re.DOTALL)


def cli() -> str:
    """Every command with its help."""
    os.environ["COLUMNS"] = "100"
    from typer.main import get_command

    from reverie.api.cli.main import make_app

    return "\n".join(_command(get_command(make_app()), "reverie", None))


def _command(command: Any, path: str, parent: Any) -> Iterator[str]:
    context = command.make_context(path.split()[-1], [], parent=parent, resilient_parsing=True)
    context.max_content_width = context.terminal_width = 100
    yield f"## `{path}`\n" if parent is None else f"### `{path}`\n"
    yield f"```text\n{command.get_help(context).rstrip()}\n```\n"
    for name, child in getattr(command, "commands", {}).items():
        yield from _command(child, f"{path} {name}", context)


def settings() -> str:
    """Every setting."""
    from reverie.settings import Settings

    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for item in fields(Settings):
        default = (
            "(empty)"
            if item.default == ""
            else f"`{str(item.default).lower() if isinstance(item.default, bool) else item.default}`"
        )
        rows.append(f"| `{item.metadata['variable']}` | {default} | {item.metadata['help']} |")
    return "\n".join(rows) + "\n"


def policy() -> str:
    """Every policy of a tenant."""
    from reverie.core.policy import TenantPolicy

    rows = ["| name | default |", "|---|---|"]
    rows += [f"| `{name}` | `{value}` |" for name, value in TenantPolicy().document().items()]
    return "\n".join(rows) + "\n"


def events() -> str:
    """Every event type."""
    from reverie.core.event import EVENT_TYPES

    rows = ["| type | what happened |", "|---|---|"]
    rows += [f"| `{name}` | {meaning} |" for name, meaning in EVENT_TYPES.items()]
    return "\n".join(rows) + "\n"


def errors() -> str:
    """Every error class, then the finer codes that are raised with them."""
    from reverie.core import errors as tree

    rows = ["| code | class | message when nothing more is known |", "|---|---|---|"]
    for error in _subclasses(tree.ReverieError):
        rows.append(f"| `{error.code}` | `{error.__name__}` | {inspect.cleandoc(error.__doc__ or '')} |")
    rows += ["", "Finer codes, raised where more is known:", "", "| code | class |", "|---|---|"]
    rows += [f"| `{code}` | `{name}` |" for code, name in sorted(finer_codes().items())]
    return "\n".join(rows) + "\n"


def _subclasses(error: type) -> Iterator[Any]:
    yield error
    for child in error.__subclasses__():
        yield from _subclasses(child)


def finer_codes() -> dict[str, str]:
    """Codes given as `SomeError(..., code="...")` anywhere in the package, with the class that carries them."""
    import ast

    from reverie.core import errors as tree

    found: dict[str, str] = {}
    for path in sorted((ROOT / "src/reverie").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not hasattr(tree, node.func.id):
                continue
            for keyword in node.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    found[str(keyword.value.value)] = node.func.id
    return found


def rest() -> str:
    """Every operation of the HTTP interface."""
    from reverie.app import build_app, build_host
    from reverie.settings import Settings

    configured = Settings.load({}, database_url="sqlite://")
    host = build_host(configured)
    try:
        document = build_app(configured, host).openapi()
    finally:
        host.close()
    rows = ["| method | path | purpose |", "|---|---|---|"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            summary = (operation.get("summary") or operation.get("description") or "").split("\n")[0]
            rows.append(f"| {method.upper()} | `{path}` | {summary} |")
    return "\n".join(rows) + "\n"


def metrics() -> str:
    """Every metric."""
    from reverie.ops.metrics import Metrics

    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for item in vars(Metrics()).values():
        if hasattr(item, "_documentation"):
            name = item._name + ("_total" if item._type == "counter" else "")
            labels = ", ".join(f"`{label}`" for label in item._labelnames)
            rows.append(f"| `{name}` | {item._type} | {labels} | {item._documentation} |")
    return "\n".join(rows) + "\n"


def logs() -> str:
    """Every action a log line may name."""
    from reverie.ops.logs import Action

    return ", ".join(f"`{action.value}`" for action in Action) + ".\n"


BLOCKS: dict[str, Callable[[], str]] = {
    "cli": cli,
    "settings": settings,
    "policy": policy,
    "events": events,
    "errors": errors,
    "rest": rest,
    "metrics": metrics,
    "logs": logs,
}


def main() -> int:
    made: dict[str, str] = {}

    def block(found: re.Match[str]) -> str:
        name = found[2]
        if name not in made:
            made[name] = BLOCKS[name]()
        return f"{found[1]}{made[name]}{found[3]}"

    stale = []
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = _BLOCK.sub(block, before)
        if after != before:
            stale.append(page)
            if "--check" not in sys.argv:
                page.write_text(after, encoding="utf-8")
    for page in stale:
        print(f"{'not up to date' if '--check' in sys.argv else 'wrote'}: {page.relative_to(ROOT)}", file=sys.stderr)
    if stale and "--check" in sys.argv:
        print("run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
