"""Every snippet of the README and the tutorial runs, in order, in one shell, and prints what the page says it prints.

Ids, times, hashes and scores differ from run to run: both sides are normalised, but for the demo, which gives the same
bytes on every machine. A line `...` stands for any lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.test_server import Child

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/tutorial.md", "docs/library.md", "docs/akashik.md", "docs/responses.md"]
LEAST = {"docs/library.md": 1, "docs/akashik.md": 1, "docs/responses.md": 1}
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NORMAL = [
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID" + "." * 24),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d\.\d{3}Z)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{16,64}\b"), "HASH"),
    (re.compile(r"\b\d\.\d{3}\b"), "N.NNN"),
]


def normal(text: str) -> list[str]:
    for pattern, word in _NORMAL:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def fits(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines are the same, `...` standing for any."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(fits(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and fits(shown[1:], printed[1:])


def commands(block: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


@pytest.mark.parametrize("page", PAGES)
def test_the_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment |= {"XDG_DATA_HOME": str(tmp_path / "share"), "HOME": str(tmp_path)}
    blocks = _FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    server = Child(tmp_path / "data") if page == "README.md" else None
    shell = subprocess.Popen(
        ["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path, env=environment
    )

    def run(command: str) -> str:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"{command}\necho; echo '--done--'\n".encode())
        shell.stdin.flush()
        lines = []
        while (line := shell.stdout.readline().decode()) not in ("--done--\n", ""):
            lines.append(line)
        return "".join(lines)

    try:
        if server is not None:  # the README goes on from `make run`: what it printed is pasted
            pasted = [line.strip() for line in server.lines if line.startswith("    export ")]
            assert len(pasted) == 2
            assert not run("; ".join(pasted)).strip()
        ran = 0
        for at, (kind, body) in enumerate(blocks):
            if kind == "console":
                for command, shown in commands(body):
                    if server is not None:
                        command = command.replace("http://127.0.0.1:8484", server.url)
                    printed = run(command)
                    same = str.splitlines if command == "reverie demo" else normal  # the demo is the same to the byte
                    assert fits(same(shown.strip("\n")), same(printed.strip("\n"))), f"$ {command}\n{printed}"
                    ran += 1
            elif kind == "python":
                (tmp_path / "snippet.py").write_text(body, encoding="utf-8")
                printed = run("python snippet.py")
                following = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
                assert following[0] == "text", "show what the snippet prints"
                assert normal(following[1]) == normal(printed), printed
                ran += 1
            elif (
                kind == "sh" and server is not None
            ):  # how a checkout starts: its targets exist; the server of this test stands in for them
                for line in body.splitlines():
                    if line.startswith("make "):
                        subprocess.run(["make", "-n", *line.split()[1:]], cwd=ROOT, check=True, capture_output=True)
                        ran += 1
                    else:
                        assert line.startswith("git clone "), line
            elif server is not None:
                assert kind == "text", f"a block of {kind} is not run"
        assert ran >= LEAST.get(page, 6)
    finally:
        shell.kill()
        shell.communicate()
        if server is not None:
            server.kill()
