"""Command lines run in this process, exactly as the entry point would: a process of its own takes a second to start."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from reverie.api.cli.main import run


@dataclass(frozen=True)
class Answer:
    """What a command line left behind."""

    code: int
    out: str
    err: str
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def failed(self, *words: str, code: int = 1) -> Answer:
        """Check that it failed with one clear line that has these words, and with nothing on stdout."""
        assert self.code == code, self
        assert self.out == "", self
        assert self.err.startswith(("reverie: ", '{"error":')), self.err
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err, self.err
        return self


def invoke(*arguments: str, stdin: bytes | str = b"", environment: Mapping[str, str] | None = None) -> Answer:
    """Run one command line; with `environment`, in that one and no other."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (given, b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        if environment is not None:
            patch.setattr("os.environ", dict(environment))
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        code = run(arguments)
        for stream in streams[1:]:
            stream.flush()
    raw = streams[1].buffer.getvalue()  # type: ignore[attr-defined]
    err = streams[2].buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert "Traceback" not in err, err
    return Answer(code, raw.decode("utf-8", "surrogateescape"), err, raw)
