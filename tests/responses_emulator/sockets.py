"""WebSocket mode in front of the emulated provider: one port for both, as the provider has it."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx2
from tests.responses_emulator.server import Emulator
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

LIMIT = "websocket_connection_limit_reached"


class SocketFront:
    """An address that answers HTTP as the emulator does, and WebSockets by asking the emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.frames: list[dict[str, Any]] = []
        """Every frame that a client sent."""
        self.connections = 0
        self.limit: int | None = None
        """After so many responses a connection has reached its age."""
        self.drop = 0
        """So many requests are answered by a closed connection."""
        self._sockets = serve(self._talk, "127.0.0.1", 0, max_size=None)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._sockets.serve_forever, daemon=True).start()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._listener.close()
        self._sockets.shutdown()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._split, args=(near,), daemon=True).start()

    def _split(self, near: socket.socket) -> None:
        head = b""
        with suppress(OSError):
            while b"\r\n\r\n" not in head:
                head = near.recv(65536, socket.MSG_PEEK)
                if not head:
                    return
            plain = httpx2.URL(self._emulator.url)
            there = (plain.host, plain.port or 80)
            if b"upgrade: websocket" in head.lower():
                there = self._sockets.socket.getsockname()
            far = socket.create_connection(there)
            threading.Thread(target=_pump, args=(far, near), daemon=True).start()
            _pump(near, far)

    def _talk(self, client: ServerConnection) -> None:
        self.connections += 1
        done = 0
        assert client.request is not None
        key = client.request.headers["Authorization"]
        with suppress(ConnectionClosed):
            for text in client:
                frame = json.loads(text)
                self.frames.append(frame)
                if frame["type"] != "response.create":
                    client.send(json.dumps({"type": "passed.on", "frame": frame}))
                    continue
                if self.drop:
                    self.drop -= 1
                    client.close()
                    return
                if self.limit is not None and done >= self.limit:
                    client.send(json.dumps({"type": "error", "status": 400, "error": {"code": LIMIT, "message": ""}}))
                    client.close()
                    return
                done += 1
                self._answer(client, frame, key)

    def _answer(self, client: ServerConnection, frame: dict[str, Any], key: str) -> None:
        body = {name: value for name, value in frame.items() if name not in ("type", "stream_id")} | {"stream": True}
        mark = {"stream_id": frame["stream_id"]} if "stream_id" in frame else {}
        with (
            httpx2.Client(trust_env=False, timeout=60) as http,
            http.stream("POST", f"{self._emulator.url}/responses", json=body, headers={"Authorization": key}) as answer,
        ):
            if answer.status_code != 200:
                error = json.loads(answer.read()).get("error")
                client.send(json.dumps({"type": "error", "status": answer.status_code, "error": error} | mark))
                return
            for line in answer.iter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    told = line.removeprefix("data: ")
                    client.send(json.dumps(json.loads(told) | mark) if mark else told)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
