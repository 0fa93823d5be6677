"""pytest plugin: the Anthropic SDK's own tests of memory stores, dreams and the memory tool, against Reverie.

The client is theirs, unmodified but for its address and key: a host is started on a free port. Their tests name things
that do not exist (`memory_store_id`, `limit=0`, model `string`); those literals become real ones before a request is
sent. The memory tool is ours in place of the one that works on a folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import anthropic
import httpx2
import pytest
from anthropic.lib.tools import _beta_builtin_memory_tool as tools

import reverie
from reverie.anthropic import AsyncMemoryTool, MemoryTool

WORKSPACE = "wrkspc_011CZkZaBF1tNoB5wlCeusgy"
_NUMBERS = count(1)


class Host:
    """A host of its own, without a worker: its dreams stay pending, so that they can be canceled."""

    def __init__(self) -> None:
        self.data = tempfile.mkdtemp()
        command = [str(Path(sys.executable).with_name("reverie"))]
        env = {**os.environ, "REVERIE_DATA": self.data}
        made = subprocess.run(
            [*command, "keys", "create", "--tenant", "sdk", "--json"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        self.key = json.loads(made.stdout)["key"]
        policy = ["policy", "set", "--tenant", "sdk", f"workspace_id={WORKSPACE}"]
        subprocess.run([*command, *policy], env=env, check=True, capture_output=True)
        env |= {"REVERIE_RATE_PER_SECOND": "0"}
        self.process = subprocess.Popen(
            [*command, "serve", "--port", "0", "--no-worker"], env=env, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = next(line for line in self.process.stdout if "listening on" in line)
        self.url = line.split()[-1].strip() + "/anthropic"

    def send(self, path: str, /, **body: Any) -> dict[str, Any]:
        """One request of ours, to make what a test then names."""
        answer = httpx2.post(self.url + path, json=body, headers={"Authorization": f"Bearer {self.key}"})
        answer.raise_for_status()
        return dict(answer.json())


def _staged(url: str, body: Any, params: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """A request with real things in place of the literals."""
    made: dict[str, str] = {}

    def store() -> str:
        if "store" not in made:
            made["store"] = HOST.send("/v1/memory_stores", name="staged")["id"]
        return made["store"]

    def memory() -> str:
        if "memory" not in made:
            given = HOST.send(f"/v1/memory_stores/{store()}/memories", path="/notes.md", content="first")
            made["version"] = given["memory_version_id"]
            HOST.send(f"/v1/memory_stores/{store()}/memories/{given['id']}", content="second")
            made["memory"] = given["id"]
        return made["memory"]

    def version() -> str:
        memory()
        return made["version"]

    def dream() -> str:
        inputs = [{"type": "memory_store", "memory_store_id": store()}]
        memory()
        found = HOST.send("/v1/dreams", inputs=inputs, model="reverie-extractive")["id"]
        if url.partition("?")[0].endswith("/archive"):
            HOST.send(f"/v1/dreams/{found}/cancel")
        return str(found)

    real = {"memory_store_id": store, "memory_id": memory, "memory_version_id": version, "dream_id": dream}
    for literal, make in real.items():
        url = re.sub(rf"/{literal}(?=[/?]|$)", lambda _, make=make: f"/{make()}", url)
    digest = hashlib.sha256(b"second").hexdigest()

    def swapped(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: swapped(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [swapped(inner, name) for inner in value]
        if name in real and isinstance(value, str):
            return real[name]()
        known = {"model": "reverie-extractive", "path": "/other.md", "path_prefix": "/notes/"}
        if name == "page":
            return None
        if name == "limit":
            return 1
        if name in ("content_sha256", "expected_content_sha256"):
            return digest
        return known.get(name, value) if isinstance(value, str) else value

    cleaned = {name: inner for name, inner in swapped(params).items() if inner is not None}
    return url, swapped(body), cleaned


def _prepared(options: Any) -> Any:
    if "/v1/memory_stores" in options.url or "/v1/dreams" in options.url:
        options.url, options.json_data, options.params = _staged(
            options.url, options.json_data, dict(options.params or {})
        )
    return options


class Client(anthropic.Anthropic):
    """Theirs, with our address and key."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "base_url": HOST.url, "api_key": HOST.key, "max_retries": 0})

    def _prepare_options(self, options: Any) -> Any:
        return _prepared(options)


class AsyncClient(anthropic.AsyncAnthropic):
    """The same."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "base_url": HOST.url, "api_key": HOST.key, "max_retries": 0})

    async def _prepare_options(self, options: Any) -> Any:
        return _prepared(options)


class Folder:
    """What their tests of the memory tool expect of a path, answered from the store."""

    known: ClassVar[dict[str, Folder]] = {}

    def __init__(self, tool: MemoryTool, path: str = "/memories", *, later: bool = False) -> None:
        self.tool, self.path, self.later = tool, path, later
        self.name = f"reverie-{next(_NUMBERS)}"
        Folder.known[self.name] = self

    def __str__(self) -> str:
        return self.name

    def __truediv__(self, name: str) -> Folder:
        return Folder(self.tool, f"{self.path}/{name}")

    def mkdir(self, **_: Any) -> None:
        """A directory exists as long as something lies below it."""

    def is_dir(self) -> Any:
        """Whether a directory is there; awaited by their asynchronous tests."""
        answer = not self.tool.handle({"command": "view", "path": self.path})["is_error"]

        async def soon() -> bool:
            return answer

        return soon() if self.later else answer

    def write_bytes(self, data: bytes) -> None:
        """Make the file."""
        self.tool.handle({"command": "create", "path": self.path, "file_text": data.decode()})

    def read_bytes(self) -> bytes:
        """Read the file."""
        shown = self.tool.handle({"command": "view", "path": self.path})["content"]
        return "\n".join(line.partition("\t")[2] for line in shown.split("\n")[1:]).encode()

    def snapshot(self) -> dict[str, str]:
        """Every file below it, with its text."""
        shown = self.tool.handle({"command": "view", "path": self.path})["content"].split("\n")[2:]
        found: dict[str, str] = {}
        for path in (line.partition("\t")[2] for line in shown):
            below = Folder(self.tool, path.rstrip("/"))
            found |= below.snapshot() if path.endswith("/") else {path.lstrip("/"): below.read_bytes().decode()}
        return found


def _opened() -> tuple[reverie.Memory, str]:
    memory = reverie.open(tempfile.mkdtemp())
    memory.set_policy(max_memory_bytes=8_000_000)
    return memory, "tool"


class Tool(MemoryTool):
    """Ours, with the two attributes of theirs."""

    def __init__(self, base_path: str = "") -> None:  # noqa: ARG002  (theirs)
        super().__init__(*_opened())
        self.base_path = self.memory_root = Folder(self)


class AsyncTool(AsyncMemoryTool):
    """The same."""

    def __init__(self, base_path: str = "") -> None:  # noqa: ARG002  (theirs)
        memory, store = _opened()
        super().__init__(memory, store)
        self.base_path = self.memory_root = Folder(MemoryTool(memory, store), later=True)


# Their conftest, which imports the clients, is read before pytest_configure: the plugin acts when it is imported.
HOST = Host()
anthropic.Anthropic, anthropic.AsyncAnthropic = Client, AsyncClient  # type: ignore[misc]
tools.BetaLocalFilesystemMemoryTool = Tool  # type: ignore[misc,assignment]
tools.BetaAsyncLocalFilesystemMemoryTool = AsyncTool  # type: ignore[misc,assignment]


def pytest_unconfigure() -> None:
    """Stop the host."""
    HOST.process.terminate()
    HOST.process.wait(30)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Paths and snapshots of a folder are looked up when a test runs."""
    for item in items:
        module: Any = getattr(item, "module", None)
        if hasattr(module, "get_directory_snapshot"):
            module.Path = lambda name: Folder.known.get(str(name)) or Path(name)
            module.get_directory_snapshot = lambda name: Folder.known[name].snapshot()
