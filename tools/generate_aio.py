"""Write src/reverie/aio.py from the signatures and docstrings of the library.

    python tools/generate_aio.py            write it
    python tools/generate_aio.py --check    exit 1 when it is not up to date

The facade has no logic: every call of `Memory` and `Ref` runs, unchanged, in a thread of the facade's own pool; for
those that the library has in a form of its own for this (`_put`), one thread serves all who wait.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = tuple(ROOT / "src/reverie/library" / name for name in ("__init__.py", "memory.py", "dreams.py", "ref.py"))
TARGET = ROOT / "src/reverie/aio.py"

NOT_WRAPPED = {"ref", "close", "__init__", "__enter__", "__exit__"}
SERVED_TOGETHER = {"put"}
ONE_BY_ONE = "Iterator"

HEADER = '''"""Reverie for programs that use asyncio. Written by tools/generate_aio.py from the library; do not edit.

import reverie.aio

async with reverie.aio.open("./memory") as memory:
    notes = memory.ref("support-bot")
    await notes.put("The customer prefers e-mail.")
    found = await notes.search("how to reach the customer")

Every call runs in a thread of the memory's own pool, so the event loop never waits for a disk; puts that wait at the
same time share one thread and one commit. A call that is cancelled is not undone: what was already given to a thread
is carried out.
"""
'''

MEMORY = '''
class AsyncMemory:
    """One tenant's memory."""

    def __init__(self, memory: library.Memory, pool: ThreadPoolExecutor) -> None:
        self._memory = memory
        self._pool = pool
        self.dreams = AsyncDreams(self, memory.dreams)
        """Reports of dreams: list, get, diff, verify, undo."""

    def __repr__(self) -> str:
        return f"<Async{repr(self._memory)[1:]}"

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def ref(self, name: str) -> AsyncRef:
        """One named memory of the tenant, for example an agent's."""
        return AsyncRef(self, self._memory.ref(name))

    async def close(self) -> None:
        """Finish all accepted work, then release the store."""
        await self._run(self._memory.close)
        self._pool.shutdown(wait=False)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
'''

DREAMS = '''
class AsyncDreams:
    """The dreams of a memory: `memory.dreams`."""

    def __init__(self, memory: AsyncMemory, dreams: library.Dreams) -> None:
        self._dreams = dreams
        self._run = memory._run

    async def __call__(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Deprecated: `memory.dreams.list(ref)`."""
        return await self._run(functools.partial(self._dreams, ref, limit=limit))
'''

REF = '''
class AsyncRef:
    """One named memory."""

    def __init__(self, memory: AsyncMemory, ref: library.Ref) -> None:
        self.memory = memory
        self.name = ref.name
        self._ref = ref
        self._run = memory._run

    def __repr__(self) -> str:
        return f"<AsyncRef {self.name} of {self.memory!r}>"
'''

OPEN = '''
CALLERS = 64
"""Maximum number of concurrent calls of one memory; others wait in turn, without blocking the loop."""


def open({signature}) -> Opening:
    """{doc}

    `async with open(...) as memory`, or `memory = await open(...)` and `await memory.close()`.
    """
    return Opening(functools.partial(library.open, {arguments}))


class Opening:
    """A memory that is about to be opened: await it, or enter it."""

    def __init__(self, call: Callable[[], library.Memory]) -> None:
        self._call = call
        self._memory: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self._open()
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def _open(self) -> AsyncMemory:
        pool = ThreadPoolExecutor(max_workers=CALLERS, thread_name_prefix="reverie-aio")
        try:
            memory = await asyncio.get_running_loop().run_in_executor(pool, self._call)
        except BaseException:
            pool.shutdown(wait=False)
            raise
        return AsyncMemory(memory, pool)


async def _each(lines: Iterator[T], run: Callable[..., Awaitable[T | None]]) -> AsyncIterator[T]:
    while (line := await run(functools.partial(next, lines, None))) is not None:
        yield line
'''


def generate() -> str:
    """The text of aio.py."""
    nodes = [node for path in LIBRARY for node in ast.parse(path.read_text(encoding="utf-8")).body]
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    opening = next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "open")
    text = [HEADER, _imports(nodes), _open(opening), MEMORY]
    text += [_method(node, "self._memory") for node in _methods(classes["Memory"])]
    text.append(DREAMS)
    text += [_method(node, "self._dreams") for node in _methods(classes["Dreams"])]
    text.append(REF)
    text += [_method(node, "self._ref") for node in _methods(classes["Ref"])]
    return _formatted("\n".join(text))


def _open(node: ast.FunctionDef) -> str:
    doc = _promise(node).rstrip()
    return OPEN.format(signature=ast.unparse(node.args), doc=doc, arguments=_arguments(node, bound=False))


def _imports(nodes: list[ast.stmt]) -> str:
    """The types that the library's signatures name, and what the facade itself needs."""
    own = """
# ruff: noqa: A001, A002, B008

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from reverie import library
from reverie.library import Age

"""
    theirs = [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        and node.module not in ("__future__", "reverie.app", "reverie.client", "types")
        and not (node.module or "").startswith("reverie.library")
    ]
    return own + "\n".join(dict.fromkeys(theirs)) + '\n\nT = TypeVar("T")\n'


def _promise(node: ast.FunctionDef) -> str:
    """The docstring without its example, which is not one of a coroutine."""
    text = (
        (ast.get_docstring(node, clean=False) or "").partition("\n\n" + " " * (node.col_offset + 4) + ">>>")[0].rstrip()
    )
    return text + "\n" + " " * (node.col_offset + 4) if "\n" in text else text


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [
        child
        for child in node.body
        if isinstance(child, ast.FunctionDef) and child.name not in NOT_WRAPPED and not child.name.startswith("_")
    ]


def _method(node: ast.FunctionDef, target: str) -> str:
    assert node.returns is not None
    returns = ast.unparse(node.returns)
    doc = _promise(node)
    arguments = _arguments(node, bound=True)
    call = f"functools.partial({target}.{node.name}, {arguments})" if arguments else f"{target}.{node.name}"
    signature = ast.unparse(node.args)
    if node.name in SERVED_TOGETHER:
        return f'''
    async def {node.name}({signature}) -> {returns}:
        """{doc}"""
        return await {target}._{node.name}(self.memory._pool, {arguments})
'''
    if returns.startswith(ONE_BY_ONE):
        item = returns.removeprefix(ONE_BY_ONE)
        return f'''
    async def {node.name}({signature}) -> Async{ONE_BY_ONE}{item}:
        """{doc}"""
        lines = await self._run({call})
        async for line in _each(lines, self._run):
            yield line
'''
    return f'''
    async def {node.name}({signature}) -> {returns}:
        """{doc}"""
        return await self._run({call})
'''


def _arguments(node: ast.FunctionDef, *, bound: bool) -> str:
    plain = [argument.arg for argument in node.args.args[1 if bound else 0 :]]
    named = [f"{argument.arg}={argument.arg}" for argument in node.args.kwonlyargs]
    rest = [f"**{node.args.kwarg.arg}"] if node.args.kwarg else []
    return ", ".join(plain + named + rest)


def _formatted(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(TARGET)]
    rules = ["--select", "F401,I", "--ignore", "RUF100"]
    fixed = subprocess.run(
        [*ruff, "check", "-q", "--fix-only", *rules, *name, "-"], input=text, capture_output=True, text=True, cwd=ROOT
    )
    done = subprocess.run(
        [*ruff, "format", "-q", *name, "-"], input=fixed.stdout, capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout


def main() -> int:
    text = generate()
    if "--check" in sys.argv:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
            print("src/reverie/aio.py is not up to date: run `make docs`", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
