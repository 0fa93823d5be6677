"""Logs: one line, a known action, no secret."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from reverie.ops.logs import Action, Form, Guard, LogLines, json_line, log, text_line, where
from reverie.redact import load_redactor

KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
Capture = Callable[..., io.StringIO]


@pytest.fixture
def capture(monkeypatch: pytest.MonkeyPatch) -> Iterator[Capture]:
    """`capture(form)`: what the logger `reverie` writes from now on."""
    level = logging.getLogger("reverie").level

    def make(form: Form) -> io.StringIO:
        written = io.StringIO()
        handler = LogLines(written, Guard(load_redactor()), form)
        logger = logging.getLogger("reverie")
        monkeypatch.setattr(logger, "handlers", [handler])
        monkeypatch.setattr(logger, "propagate", False)
        logger.setLevel(logging.DEBUG)  # not by attribute: a logger remembers which levels it lets through
        return written

    yield make
    logging.getLogger("reverie").setLevel(level)


def test_json_lines(capture: Capture) -> None:
    written = capture(json_line)
    log(Action.REQUEST, request="r1", status=200, key=None)
    line = json.loads(written.getvalue())
    assert (line["action"], line["request"], line["status"]) == ("request.done", "r1", 200)
    assert "key" not in line


def test_text_lines_stay_lines(capture: Capture) -> None:
    written = capture(text_line)
    log(Action.REQUEST, request="a\nb")
    assert written.getvalue().count("\n") == 1
    assert " info request.done request=a b" in written.getvalue()


def test_a_closed_stream_disturbs_nothing(capture: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    capture(text_line).close()
    faults: list[object] = []

    async def speak() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        log(Action.REQUEST, request="r1")
        await asyncio.sleep(0)

    asyncio.run(speak())
    log(Action.REQUEST, request="r2")
    assert faults == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", [json_line, text_line])
def test_a_secret_that_gets_this_far_goes_no_further(capture: Capture, form: Form) -> None:
    written = capture(form)
    log(Action.REQUEST, request=f"key {KEY}")
    logging.getLogger("reverie").warning("odd: %s", KEY)
    assert KEY not in written.getvalue()


def test_a_fault_is_named_and_not_quoted(capture: Capture) -> None:
    written = capture(json_line)
    with pytest.raises(ValueError, match="the text") as caught:
        raise ValueError("the text of a memory")
    logging.getLogger("reverie").error("failed", exc_info=caught.value)
    assert where(caught.value).startswith("ValueError at ")
    assert "the text of a memory" not in written.getvalue()
    assert "ValueError" in written.getvalue()


def test_lines_of_one_turn_of_an_event_loop_are_written_together_and_warnings_at_once(capture: Capture) -> None:
    written = capture(text_line)

    async def turns() -> list[int]:
        seen = []
        log(Action.REQUEST, request="r1")
        log(Action.REQUEST, request="r2")
        seen.append(written.getvalue().count("\n"))
        await asyncio.sleep(0)
        seen.append(written.getvalue().count("\n"))
        log(Action.REQUEST, request="r3")
        log(Action.REQUEST_FAILED, level=logging.ERROR, request="r4")
        seen.append(written.getvalue().count("\n"))
        return seen

    assert asyncio.run(turns()) == [0, 2, 4]
    assert [line.rpartition("=")[2] for line in written.getvalue().splitlines()] == ["r1", "r2", "r3", "r4"]
