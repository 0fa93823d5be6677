"""Record the examples of the OpenAPI document: bodies and answers of a real host.

    python tools/record_examples.py [--check]

The walk of tests/walk.py calls every operation over a socket, on a new SQLite file with a stopped clock. Ids, checksums
and times that are particular to the run are replaced by fixed ones, so every machine records the same. With --check
nothing is written, and the exit status says whether every example still has the shape of its request and answer.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import uvicorn

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.walk import SEAMS, Walker, walk  # noqa: E402

from reverie.app import build_app, build_host, build_worker  # noqa: E402
from reverie.core.clock import from_iso  # noqa: E402
from reverie.core.ids import encode  # noqa: E402
from reverie.host import Host  # noqa: E402
from reverie.http.openapi import EXAMPLES, ROOT_TWIN  # noqa: E402
from reverie.settings import Settings  # noqa: E402

NOW = from_iso("2026-11-15T08:05:09Z")
MOST = 3
"""Elements of a list that are shown."""


class Stopped:
    """A stopped clock."""

    def now(self) -> int:
        """The instant of every example."""
        return NOW


class Recorder(Walker):
    """A walker that keeps, for each operation and status, the first body and its answer."""

    def __init__(self, url: str, host: Host) -> None:
        super().__init__(url, host.keys.create("example").key)
        self._host = host
        self._tenants = 0
        self.keys: list[str] = []
        described = self._client.get("/v1/openapi.json").json()["paths"]
        self._ids = {
            (verb.upper(), at): one["operationId"] for at, each in described.items() for verb, one in each.items()
        }
        self.recorded: dict[str, dict[str, Any]] = {}

    def enter(self) -> None:
        """Give each group a tenant of its own, whose log begins at 1."""
        self._tenants += 1
        made = self._host.keys.create(f"example{self._tenants:02}")
        self.keys.append(made.id)
        self._client.headers["Authorization"] = f"Bearer {made.key}"

    def __call__(self, method: str, path: str, body: Any = None, *, status: int = 200, **options: Any) -> Any:
        read = super().__call__(method, path, body, status=status, **options)
        operation = self._ids[method, self.document.operation(method, path.partition("?")[0]) or ""]
        if not operation.startswith(ROOT_TWIN):
            sent = options.get("content", body)
            pair = {**({} if sent is None else {"body": sent}), **({} if read == "" else {"answer": read})}
            self.recorded.setdefault(operation, {}).setdefault(str(status), pair)
        return read


@contextmanager
def listening() -> Iterator[tuple[str, Host]]:
    """A host, and the address at which it listens."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.load({}, data=folder, **dict.fromkeys(SEAMS, True))
        served = build_host(settings, clock=Stopped())
        worker = build_worker(settings, served)
        worker.start()
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(build_app(settings, served), log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", served
        finally:
            server.should_exit = True
            thread.join()
            worker.stop()
            served.close()


def _id(number: int) -> str:
    return encode((NOW << 80) | (7 << 76) | (2 << 62) | number * 0x9E3779B97F4A7C15 % 2**62)


def _digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


STAND_INS: tuple[tuple[str, Callable[[int], str]], ...] = (
    (r"(?<![0-9A-Za-z])[0-9A-HJKMNP-TV-Z]{26}(?![0-9A-Za-z])", _id),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", lambda n: str(UUID(bytes=_digest(n)[:16]))),
    (r"(?<=ticket=)[\w-]+", lambda n: base64.urlsafe_b64encode(_digest(n)).decode().rstrip("=")),
    (r"(?<=-)[0-9a-f]{32}\b", lambda n: _digest(n)[:16].hex()),
    (r"\b[0-9a-f]{64}\b", lambda n: _digest(n).hex()),
)
"""Patterns of what differs from run to run, each with a stand-in for the nth that is found."""


def record() -> dict[str, Any]:
    """The examples by operation."""
    with listening() as (url, host):
        go = Recorder(url, host)
        walk(go)
        go.close()
    return settle(go.recorded, url, go.keys)


def settle(recorded: dict[str, Any], url: str, keys: list[str]) -> dict[str, Any]:
    """The same on every machine, lists shortened."""
    text = json.dumps({name: shorten(recorded[name]) for name in sorted(recorded)}, ensure_ascii=False)
    text = text.replace(url.partition("//")[2], "127.0.0.1:8484")
    text = re.sub("|".join(keys), "w7r2k0mhd5xq", text)
    known_as: dict[str, str] = {}
    for pattern, make in STAND_INS:
        for found in re.findall(pattern, text):
            known_as.setdefault(found, make(len(known_as)))
    for found, stand_in in known_as.items():
        text = text.replace(found, stand_in)
    made: dict[str, Any] = json.loads(text)
    return made


def shorten(value: Any) -> Any:
    """Lists of objects, and JSON lines, with the first ones."""
    if isinstance(value, dict):
        return {name: shorten(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shorten(one) for one in (value[:MOST] if value and isinstance(value[0], dict) else value)]
    if isinstance(value, str) and value.startswith("{"):
        return "".join(value.splitlines(keepends=True)[:MOST])
    return value


def differences(kept: Any, made: Any, place: str = "") -> Iterator[str]:
    """Where the kept examples have another shape than those made now. Scores, wordings and versions may differ."""
    if isinstance(kept, dict) and isinstance(made, dict):
        for name in sorted({*kept, *made}):
            if name in kept and name in made:
                yield from differences(kept[name], made[name], f"{place}/{name}")
            else:
                yield f"{place}/{name}"
    elif isinstance(kept, list) and isinstance(made, list):
        for first, second in zip(kept[:1], made[:1], strict=False):
            yield from differences(first, second, f"{place}/0")
    elif _kind(kept) != _kind(made) and None not in (kept, made):
        yield place


def _kind(value: Any) -> str:
    return "number" if isinstance(value, float) else type(value).__name__.replace("int", "number")


def main() -> int:
    made = record()
    if "--check" not in sys.argv:
        EXAMPLES.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return 0
    stale = list(differences(json.loads(EXAMPLES.read_text(encoding="utf-8")), made))
    for place in stale:
        print(f"{EXAMPLES.relative_to(ROOT)}: {place} is not what a host is sent or answers", file=sys.stderr)
    if stale:
        print("run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
