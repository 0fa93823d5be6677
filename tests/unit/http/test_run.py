"""The address a server listens on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reverie.app import build_host
from reverie.http.run import CannotListen, _greet, bind
from reverie.settings import Settings


@pytest.mark.parametrize("name", ["a..b", "a" * 70, "no such host"])
def test_a_name_that_is_no_host_is_said_in_one_line(name: str) -> None:
    with pytest.raises(CannotListen, match="Cannot listen on"):
        bind(name, 0)


@pytest.mark.parametrize(("terminal", "asked"), [(True, False), (False, True), (False, False)])
def test_a_first_key_is_made_for_a_reader(
    terminal: bool, asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    settings = Settings.load({}, data=str(tmp_path), print_key=asked)
    with closing(build_host(settings)) as host:
        for _ in range(2):
            _greet(settings, host, "http://x", shown=asked or terminal)
        assert len(host.keys.all()) == int(asked or terminal)
    printed = capsys.readouterr().out
    assert printed.count("export REVERIE_KEY=rvk_") == int(asked or terminal)
    assert printed.count("reverie keys create --tenant default") == (0 if asked or terminal else 2)
    assert printed.count("The command line on the same data") == int(terminal)
