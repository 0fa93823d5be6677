"""Every public method of the library has an example in its docstring, and the example does what it says."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.library import Dreams, Memory, Ref


def documented() -> Iterator[tuple[str, Any]]:
    yield "reverie", reverie
    yield "open", reverie.open
    for owner in (Memory, Dreams, Ref):
        yield owner.__name__, owner
        for name, function in vars(owner).items():
            said = function.__doc__ or ""
            if inspect.isfunction(function) and not name.startswith("_") and not said.startswith("Deprecated"):
                yield f"{owner.__name__}.{name}", function


@pytest.mark.parametrize(("name", "thing"), list(documented()))
def test_the_example_does_what_it_says(
    name: str, thing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    doc = thing.__doc__ or ""
    assert ">>>" in doc, "it has no example"
    with reverie.open(tmp_path / "data") as memory:
        notes = memory.ref("notes")
        first = notes.put("Ana prefers e-mail to phone calls.", subject="ana", tags=["preference"])
        notes.put("We deploy on Thursdays.")
        notes.put("The office is in Nantes.")
        scope: dict[str, Any] = {"reverie": reverie, "memory": memory, "notes": notes, "first": first}
        if "dream." in doc or name.startswith("Dreams"):
            days = memory.ref("days")
            days.put_many([f"Day {n}: the ferry left at {n + 5} o'clock, and it rained." for n in range(12)])
            scope["dream"] = days.dream(budget=4000)
        test = doctest.DocTestParser().get_doctest(inspect.cleandoc(doc), scope, name, None, None)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, clear_globs=False)
    assert runner.failures == 0, capsys.readouterr().out
