"""Logs: one line per action of the process, with an `action` from a fixed vocabulary. Never content, never a key."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from enum import StrEnum
from functools import lru_cache
from typing import Any, TextIO

import orjson

from reverie.core.clock import to_iso
from reverie.redact import Redactor
from reverie.settings import Settings

LOGGER = logging.getLogger("reverie")
_REMEMBERED = 512
_MINTED = re.compile(r"0[0-9A-HJKMNP-TV-Z]{25}")
"""The form of ids made by this host. A caller's own request id was checked on arrival."""
_LEVELS = {level: logging.getLevelName(level).lower() for level in (logging.DEBUG, logging.INFO, logging.WARNING)}


class Action(StrEnum):
    """The vocabulary of actions."""

    STARTED = "serve.started"
    SEAMS_ON = "serve.seams"
    DAMAGED = "serve.damaged"
    STOPPING = "serve.stopping"
    STOPPED = "serve.stopped"
    REQUEST = "request.done"
    REQUEST_FAILED = "request.failed"
    READINESS = "readiness.changed"
    CLOCK = "clock.jumped"
    SWEPT = "worker.swept"
    INDEXED = "worker.indexed"
    COLLECTED = "worker.collected"
    DREAMT = "worker.dreamt"
    JOB = "worker.job"
    WORKER_FAILED = "worker.failed"
    SERVER = "server.note"


def log(action: Action, *, level: int = logging.INFO, **fields: str | int | float | bool | None) -> None:
    """Log an action. Fields are ids, codes, counts and times."""
    if not LOGGER.isEnabledFor(level):
        return
    if len(LOGGER.handlers) == 1 and isinstance(handler := LOGGER.handlers[0], LogLines) and not LOGGER.propagate:
        with suppress(Exception):  # the record below reports what is wrong
            handler.say(level, action, fields)  # no one else reads the record, and making one doubles the time
            return
    extra = {"action": action.value, "fields": fields}
    LOGGER.handle(LOGGER.makeRecord(LOGGER.name, level, "", 0, action.value, (), None, extra=extra))


def where(fault: BaseException) -> str:
    """The type of a fault and the line that raised it. Its message is left out: it may hold a caller's input."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f" at {trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}" if trace else ""
    return f"{type(fault).__name__}{at}"


class Guard:
    """The last guard: every text in a line passes the redactor."""

    def __init__(self, redactor: Redactor) -> None:
        # Routes, methods and keys recur, so results are cached.
        self.clean = lru_cache(_REMEMBERED)(lambda text: redactor.text(text).text)

    def fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that have a value, redacted."""
        return {
            name: self.clean(value) if isinstance(value, str) and not _MINTED.fullmatch(value) else value
            for name, value in fields.items()
            if value is not None
        }


Form = Callable[[dict[str, Any], dict[str, Any]], str]
"""Function that formats a line from its time, level, action and note, and from its other fields."""


def json_line(said: dict[str, Any], fields: dict[str, Any]) -> str:
    """A line as one JSON object."""
    return orjson.dumps(said | fields, default=str).decode()


def text_line(said: dict[str, Any], fields: dict[str, Any]) -> str:
    """A line as `time level action name=value ...`, without line breaks."""
    words = [*said.values(), *(f"{name}={value}" for name, value in fields.items())]
    return " ".join(words).replace("\n", " ").replace("\r", " ")


class LogLines(logging.StreamHandler[TextIO]):
    """Writes lines; in an event loop, all lines of one turn together.

    A write releases the interpreter lock, and with busy threads it takes a while to get it back.
    """

    def __init__(self, stream: TextIO, guard: Guard, form: Form) -> None:
        super().__init__(stream)
        self._guard = guard
        self._form = form
        self._waiting: list[str] = []

    def say(self, level: int, action: str, fields: Mapping[str, Any], note: str = "", at: float | None = None) -> None:
        """Write a line at the end of the turn of the event loop; a warning, or without a loop, at once."""
        try:
            loop = None if level >= logging.WARNING else asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        said = {
            "time": to_iso(int((time.time() if at is None else at) * 1000)),
            "level": _LEVELS.get(level) or logging.getLevelName(level).lower(),
            "action": str(action),
        }
        if note:
            said["note"] = self._guard.clean(note)
        with self.lock or nullcontext():
            self._waiting.append(self._form(said, self._guard.fields(fields)) + self.terminator)
            if loop is None:
                self.flush()
            elif len(self._waiting) == 1:
                loop.call_soon(self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record of any logger. Exceptions lose their messages."""
        try:
            fields = dict(getattr(record, "fields", {}))
            if record.exc_info and record.exc_info[1] is not None:
                fields["fault"] = where(record.exc_info[1])
            action, note = getattr(record, "action", Action.SERVER.value), record.getMessage()
            self.say(record.levelno, action, fields, note if note != action else "", record.created)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write the waiting lines. If the stream is closed or its disk full, they are lost and nothing else fails."""
        with self.lock or nullcontext():
            lines, self._waiting = self._waiting, []
            with suppress(OSError, ValueError):
                if lines:
                    self.stream.write("".join(lines))
                super().flush()


def configure(settings: Settings, redactor: Redactor) -> None:
    """Send the logs of this process, and the server's warnings, to stderr in the configured form."""
    # Our lines show none of this, and collecting it doubles the cost of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = LogLines(sys.stderr, Guard(redactor), json_line if settings.log_format == "json" else text_line)
    levels = {"reverie": settings.log_level.upper(), "uvicorn": "WARNING", "asyncio": "ERROR"}
    levels |= {"procrastinate": "CRITICAL", "psycopg.pool": "ERROR"}  # the worker logs failures, by code
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
