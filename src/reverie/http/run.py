"""Run the server: bind, show the address, serve, drain, close."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from reverie.core.errors import ReverieError, StoreCorrupt
from reverie.host import Host
from reverie.http.banner import banner, first_key, home_tenant, paste
from reverie.http.origin import is_loopback
from reverie.http.paths import OwnPort
from reverie.jobs.worker import Runner
from reverie.ops import logs, traces
from reverie.ops.heaps import bound_heaps
from reverie.ops.logs import Action, log
from reverie.settings import Settings

DRAIN_SECONDS = 30
SWITCH_SECONDS = 0.0005
"""Time slice of a thread before another one gets the interpreter. With Python's 5 ms, a request that passes through
four threads waits 20 ms behind one tenant that computes; with half a millisecond, 2.
"""


class CannotListen(ReverieError):
    """The server cannot listen on this address."""

    code = "cannot_listen"


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then finish the requests at hand, stop the worker and close the store.

    Prints `listening on http://HOST:PORT` on one line when it accepts connections. Returns after a clean stop.
    """
    from reverie.app import build_app, build_host, build_worker

    bound_heaps()
    sys.setswitchinterval(SWITCH_SECONDS)
    listener = bind(settings.host, settings.port)
    listeners = [listener]
    try:
        if settings.akashik_port:
            listeners.append(bind(settings.host, settings.akashik_port))
        url = f"http://{_bracketed(settings.host)}:{listener.getsockname()[1]}"
        host = build_host(settings)
        try:
            logs.configure(settings, host.parts.redactor)
            _look_for_damage(settings, host)
            shown = settings.print_key or sys.stdout.isatty()  # a journal keeps what it is given
            _greet(settings, host, url, shown=shown)
            tracing = traces.configured()
            app = build_app(settings, host, traces=tracing)
            app.state.console_sample = _sample
            if settings.seams:
                log(Action.SEAMS_ON, level=logging.WARNING, seams=",".join(settings.seams))
            worker = build_worker(settings, host, metrics=app.state.metrics, pausing=app.state.threads.pausing)
            app.router.lifespan_context = _lifespan(worker, start=settings.worker and not settings.read_only)
            if settings.akashik_port:
                app.add_middleware(OwnPort, port=settings.akashik_port, prefix="/akashik")
            local = shown and is_loopback(settings.host)
            link = f"{url}/sign-in?once={app.state.console_links.make()}" if local else None
            # A full collection stops every thread; over all that was loaded so far it takes 60 to 90 ms each time.
            gc.freeze()
            Server(app, url, link=link).run(sockets=listeners)
            worker.stop()
            tracing.close()
        finally:
            host.close()
        log(Action.STOPPED)
    finally:
        for one in listeners:
            one.close()


def _greet(settings: Settings, host: Host, url: str, *, shown: bool) -> None:
    """Print a first key where there is none or, unless `shown`, the command that creates one. A terminal that has its
    key gets the lines to paste.
    """
    first = first_key(host) if shown else None
    lines = paste(settings, url)
    if first is not None:
        print(banner(url, *first, lines), flush=True)
    elif sys.stdout.isatty():
        print("The command line on the same data:", *(f"    {line}" for line in lines), sep="\n", flush=True)
    elif not shown and not host.parts.read_only and not host.keys.all():
        print(f"Reverie has no keys yet. Create one: reverie keys create --tenant {home_tenant(host)}", flush=True)


def _sample() -> list[dict[str, Any]]:
    """Return the sample entries that the console offers for an empty tenant."""
    from reverie.demo.corpus import entries

    return entries()


def _look_for_damage(settings: Settings, host: Host) -> None:
    """Refuse a database that is damaged or lost acknowledged writes. A read-only host logs that and serves the rest."""
    try:
        host.parts.store.check(quick=True)
    except StoreCorrupt as fault:
        if not settings.read_only:
            raise
        log(Action.DAMAGED, level=logging.ERROR, code=fault.code, next_step="reverie doctor")


def work(settings: Settings) -> None:
    """Run jobs until SIGTERM or SIGINT; then finish those at hand. Prints `working` once it has begun."""
    from reverie.app import build_host, build_worker

    bound_heaps()
    over = threading.Event()
    before = {number: signal.signal(number, lambda *_: over.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    host = build_host(settings)
    try:
        logs.configure(settings, host.parts.redactor)
        worker = build_worker(settings, host)
        worker.start()
        print("working", flush=True)
        log(Action.STARTED, concurrency=settings.worker_concurrency)
        while not over.wait(1.0):  # without a timeout, the wait would hold up the signal handler too
            pass
        log(Action.STOPPING)
        worker.stop()
        log(Action.STOPPED)
    finally:
        host.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 picks a free port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as fault:  # UnicodeError: a name that IDNA cannot encode
        reason = getattr(fault, "strerror", None) or "unknown address"
        raise CannotListen(
            f"Cannot listen on {host}:{port}: {reason}. Choose another with --host or --port, or with REVERIE_PORT."
        ) from fault
    listener.set_inheritable(True)
    return listener


def http_protocol() -> Any:
    """httptools with a bounded head where it is installed; else uvicorn's own parser, which bounds the head itself."""
    if find_spec("httptools") is None:
        return "auto"
    from reverie.http.head import BoundedHead

    return BoundedHead


class Drained(uvicorn.Server):
    """A uvicorn server that finishes the requests at hand after a signal, and exits with status 0.

    It prints its address on one line once it listens. `more`: further settings of uvicorn.
    """

    def __init__(self, app: Any, url: str, **more: Any) -> None:
        config = uvicorn.Config(
            app,
            loop="auto",  # uvloop wherever it is installed
            http=http_protocol(),
            ws="websockets-sansio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            **more,
        )
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(f"listening on {self._url}", flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again afterwards: a drained stop is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.should_exit and number == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


class Server(Drained):
    """The host's server. It prints the link that signs in, and ends open streams at a signal."""

    def __init__(self, app: Starlette, url: str, *, link: str | None = None) -> None:
        super().__init__(app, url)
        self._app = app
        self._link = link

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            if self._link is not None:
                print(f"console (this link signs in once): {self._link}", flush=True)
            log(Action.STARTED, url=self._url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log(Action.STOPPING)
        self._app.state.health.stopping = True
        self._app.state.tail.stop()
        await super().shutdown(sockets)


def _lifespan(worker: Runner, *, start: bool) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        if start:
            worker.start()
        yield

    return lifespan


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
