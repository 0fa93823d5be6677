"""Write the parts of the documentation that come from the code.

    python tools/generate_docs.py            write them
    python tools/generate_docs.py --check    exit 1 when a page is not up to date

A page holds hand-written text and blocks between `<!-- generated: NAME -->` and `<!-- end generated -->`.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
ADDRESSED = [ROOT / "pyproject.toml", ROOT / "mkdocs.yml", *sorted((ROOT / "deploy/systemd").glob("*.service")), *PAGES]
"""Files that may name the address of the project, which is `Source` in pyproject.toml."""
_ADDRESS = re.compile(r"https://[\w.-]+/[\w-]+/reverie(?=[/\s\")]|$)", re.MULTILINE)
_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end generated -->)", re.DOTALL)


def cli() -> str:
    """Every command with its help."""
    from reverie.api.cli.catalog import COMMANDS
    from reverie.api.cli.command import WIDEST, Command, group_page
    from reverie.api.cli.main import command_of, find, root_page

    def section(path: str, page: str) -> str:
        return f"{'##' if path == 'reverie' else '###'} `{path}`\n\n```text\n{page.rstrip()}\n```\n"

    sections = [section("reverie", root_page(WIDEST))]
    for name in COMMANDS:
        path, found = f"reverie {name}", find(name)
        if isinstance(found, Command):
            sections.append(section(path, found.page(WIDEST)))
            continue
        sections.append(section(path, group_page(path, found, WIDEST)))
        for second, function in found.functions.items():
            sections.append(section(f"{path} {second}", command_of(f"{path} {second}", function).page(WIDEST)))
    return "\n".join(sections)


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
    from reverie.api.console.operate import explained, written
    from reverie.core.policy import TenantPolicy

    rows = ["| name | default | unit | meaning |", "|---|---|---|---|"]
    for name, value in TenantPolicy().document().items():
        unit, meaning = explained(name)
        rows.append(
            f"| `{name}` | {f'`{shown}`' if (shown := written(name, value)) else 'none'} | {unit} | {meaning} |"
        )
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

    for name in _modules_with_errors():
        importlib.import_module(name)
    rows = ["| code | class | message when nothing more is known |", "|---|---|---|"]
    for error in _subclasses(tree.ReverieError):
        rows.append(f"| `{error.code}` | `{error.__name__}` | {inspect.cleandoc(error.__doc__ or '')} |")
    rows += ["", "Finer codes, raised where more is known:", "", "| code | class |", "|---|---|"]
    rows += [f"| `{code}` | `{name}` |" for code, name in sorted(finer_codes().items())]
    return "\n".join(rows) + "\n"


def _modules_with_errors() -> list[str]:
    """Every module of the package that defines an error: the table must not depend on what was imported before."""
    package = ROOT / "src" / "reverie"
    return [
        ".".join(("reverie", *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(package.rglob("*.py"))
        if re.search(r'^    code = "', path.read_text("utf-8"), re.MULTILINE)
    ]


def _subclasses(error: type) -> Iterator[Any]:
    """The tree below a class: a module's own classes in their order, modules by name, whatever was imported first."""
    yield error
    for child in sorted(error.__subclasses__(), key=lambda one: (one.__module__ != error.__module__, one.__module__)):
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
    """Every operation of the HTTP interface, the native ones first."""
    from reverie.app import build_app, build_host
    from reverie.settings import Settings

    configured = Settings.load({}, database_url="sqlite://")
    host = build_host(configured)
    try:
        document = build_app(configured, host).openapi()
    finally:
        host.close()
    rows = ["| method | path | purpose |", "|---|---|---|"]
    paths = document["paths"]
    for path in sorted(paths, key=lambda path: not path.startswith("/v1/host/reverie")):
        for method, operation in paths[path].items():
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


def library() -> str:
    """Every public method of the library, with its promise and its example."""
    from reverie.library import Dreams, Memory, Ref
    from reverie.library import open as opens

    parts = [_described("reverie.open", opens)]
    for owner, name in ((Memory, "memory"), (Dreams, "memory.dreams"), (Ref, "ref")):
        parts += [f"### {owner.__name__}\n", _text(inspect.getdoc(owner) or "")]
        for method, function in vars(owner).items():
            said = inspect.getdoc(function) or ""
            if not method.startswith("_") and inspect.isfunction(function) and not said.startswith("Deprecated"):
                parts.append(_described(f"{name}.{method}", function))
    return "\n".join(parts)


def _described(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    given = [_plain(parameter) for parameter in signature.parameters.values() if parameter.name != "self"]
    shown = str(signature.replace(parameters=given)).replace("'", "")
    return f"#### `{name}`\n\n```text\n{name}{shown}\n```\n\n{_text(inspect.getdoc(function) or '')}"


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """A default that is a filter shown as one: its own text has the order of a set in it."""
    from reverie.core.query import Filter

    class Shown:
        def __repr__(self) -> str:
            return "Filter()"

    return parameter.replace(default=Shown()) if isinstance(parameter.default, Filter) else parameter


def _text(doc: str) -> str:
    promise, mark, example = doc.partition("\n\n>>>")
    return f"{promise}\n" + (f"\n```pycon\n>>>{example}\n```\n" if mark else "")


def demo() -> str:
    """What `reverie demo` prints, but for the time that it took. The tour gives the same bytes on every machine."""
    import contextlib
    import io

    from reverie.api.cli.main import run

    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("REVERIE_")}
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            assert run(["demo"]) == 0
    finally:
        os.environ.update(kept)
    lines = [line for line in printed.getvalue().splitlines() if not line.startswith("took ")]
    return "\n".join(["```console", "$ reverie demo", *lines, "...", "```"]) + "\n"


BLOCKS: dict[str, Callable[[], str]] = {
    "cli": cli,
    "settings": settings,
    "policy": policy,
    "events": events,
    "errors": errors,
    "rest": rest,
    "metrics": metrics,
    "logs": logs,
    "demo": demo,
    "library": library,
}


def main() -> int:
    made: dict[str, str] = {}

    def block(found: re.Match[str]) -> str:
        name = found[2]
        if name not in made:
            made[name] = BLOCKS[name]()
        return f"{found[1]}{made[name]}{found[3]}"

    stale = []
    source = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    for page in ADDRESSED:
        before = page.read_text(encoding="utf-8")
        after = _ADDRESS.sub(source, _BLOCK.sub(block, before) if page in PAGES else before)
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
