"""Logs: the actions of the process, one line each, with an `action` from a fixed vocabulary. Never content, never a
key.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
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
"""An id as this host makes them. A caller's own id for a request was checked when it came."""


class Action(StrEnum):
    """Everything the process says it did."""

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
    """Say what happened. Fields are ids, codes, counts and times."""
    if LOGGER.isEnabledFor(level):
        # Not `LOGGER.log`: that walks the stack for the caller's line, which no record of ours shows.
        extra = {"action": action.value, "fields": fields}
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, level, "", 0, action.value, (), None, extra=extra))


def where(fault: BaseException) -> str:
    """Return the type of a fault and the line that raised it. Not its message: that may hold a caller's input."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f" at {trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}" if trace else ""
    return f"{type(fault).__name__}{at}"


class Guard(logging.Filter):
    """The last guard: every text of every record passes the redactor, and faults lose their messages."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        # Routes, methods and keys come again and again: what was found clean is not looked at twice.
        self._clean = lru_cache(_REMEMBERED)(lambda text: redactor.text(text).text)

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = self._clean(record.getMessage())
        record.args = None
        fields: dict[str, Any] = dict(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[1] is not None:
            fields["fault"] = where(record.exc_info[1])
        record.exc_info = record.exc_text = record.stack_info = None
        record.fields = {
            name: self._clean(value) if isinstance(value, str) and not _MINTED.fullmatch(value) else value
            for name, value in fields.items()
            if value is not None
        }
        if not hasattr(record, "action"):
            record.action = Action.SERVER.value
        return True


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "time": to_iso(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "action": record.__dict__["action"],
        }
        if record.msg != document["action"]:
            document["note"] = record.msg
        return orjson.dumps({**document, **record.__dict__["fields"]}, default=str).decode()


class TextLines(logging.Formatter):
    """`time level action name=value ...`, one record per line, even when a value holds line breaks."""

    def format(self, record: logging.LogRecord) -> str:
        action = record.__dict__["action"]
        words = [to_iso(int(record.created * 1000)), record.levelname.lower(), action]
        if record.msg != action:
            words.append(record.msg)
        words += [f"{name}={value}" for name, value in record.__dict__["fields"].items()]
        return " ".join(words).replace("\n", " ").replace("\r", " ")


class LogLines(logging.StreamHandler[TextIO]):
    """Writes lines; in an event loop, those of one turn together.

    A write gives the interpreter away, and with threads at work it takes a while to get it back.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._waiting: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or let it wait for the end of the turn. Warnings are written at once."""
        try:
            loop = None if record.levelno >= logging.WARNING else asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        try:
            self._waiting.append(self.format(record) + self.terminator)
            if loop is None:
                self.flush()
            elif len(self._waiting) == 1:
                loop.call_soon(self.flush)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write what waits. If the stream is closed or its disk full, lines are lost and nothing else fails."""
        with self.lock or nullcontext():
            lines, self._waiting = self._waiting, []
            with suppress(OSError, ValueError):
                if lines:
                    self.stream.write("".join(lines))
                super().flush()


def configure(settings: Settings, redactor: Redactor) -> None:
    """Send the logs of this process, and the server's warnings, to stderr in the configured form."""
    # Nothing of this is in a line of ours, and finding it out takes as long as all the rest of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = LogLines(sys.stderr)
    handler.addFilter(Guard(redactor))
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    levels = {"reverie": settings.log_level.upper(), "uvicorn": "WARNING", "asyncio": "ERROR"}
    levels |= {"procrastinate": "CRITICAL", "psycopg.pool": "ERROR"}  # the worker logs failures, by code
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
