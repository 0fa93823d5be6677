"""The command line as real processes: pipes, signals, locales, and a server on the same data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.patience import PATIENCE

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
COMMAND = [sys.executable, "-m", "reverie.api.cli.main"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    return {**kept, "REVERIE_DATA": str(tmp_path / "data")}


@pytest.fixture
def reverie(environment: dict[str, str]) -> Run:
    def run(*arguments: str, stdin: bytes = b"", **extra: str) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [*COMMAND, *arguments], input=stdin, capture_output=True, env={**environment, **extra}, timeout=60
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done

    return run


@pytest.fixture
def server(environment: dict[str, str]) -> Iterator[str]:
    """The address of a server on the same data."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(b"listening on "):
                yield line.decode().split()[-1]
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def status(address: str, key: str) -> int:
    request = urllib.request.Request(
        f"{address}/v1/host/reverie/memory/default/entries", headers={"Authorization": f"Bearer {key}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_keys_work_and_stop_working_in_a_running_server(server: str, reverie: Run) -> None:
    made = json.loads(reverie("keys", "create", "--tenant", "default", "--json").stdout)
    assert status(server, made["key"]) == 200
    assert status(server, made["key"][:-1] + "x") == 401
    assert reverie("put", "written beside the server").returncode == 0
    new = json.loads(reverie("keys", "rotate", made["id"], "--json").stdout)
    assert reverie("keys", "revoke", new["id"]).returncode == 0
    assert status(server, made["key"]) == 401
    assert status(server, new["key"]) == 401
    assert reverie("audit", "verify", "--all-tenants").returncode == 0


def test_help_loads_no_database_and_no_numbers() -> None:
    probe = (
        "import sys\n"
        "from reverie.api.cli.main import run\n"
        "code = run(['--help'])\n"
        "heavy = {'apsw', 'numpy', 'starlette', 'rich', 'msgspec'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_early_is_no_fault(reverie: Run, environment: dict[str, str]) -> None:
    lines = b"\n".join(json.dumps(f"entry {n} " + "with a good many words " * 20).encode() for n in range(400))
    assert reverie("put", "--many", stdin=lines).returncode == 0
    for arguments in (["list", "--all", "--json"], ["export"]):
        process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        assert process.stderr.read() == b"", arguments
        process.stderr.close()
        assert process.wait(PATIENCE) in (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line(reverie: Run, environment: dict[str, str]) -> None:
    reverie("put", "something")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMMAND, "export"], stdout=full, stderr=subprocess.PIPE, env=environment, timeout=60)
    assert done.returncode == 1
    assert done.stderr.decode() == "reverie: No space left on device\n"


def test_redact_passes_lines_on_as_they_come(environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, "redact"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for line in (b"first line\n", b"second line\n"):
        process.stdin.write(line)
        assert process.stdout.readline() == line
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    process.stdout.close()


def test_tail_follows_another_process_until_interrupted(reverie: Run, environment: dict[str, str]) -> None:
    reverie("put", "before")
    process = subprocess.Popen(
        [*COMMAND, "audit", "tail", "-f", "-n", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        # a test run in the background of a shell passes on that Control-C is ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    first = json.loads(process.stdout.readline())
    reverie("put", "after")
    second = json.loads(process.stdout.readline())
    assert second["seq"] == first["seq"] + 1
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert b"Traceback" not in process.stderr.read()
    process.stdout.close()
    process.stderr.close()


def test_a_terminal_without_unicode(reverie: Run) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    assert reverie("put", "plain", "--tag", "ok", **plain).returncode == 0
    assert reverie("put", "-", stdin="Zürich 日本".encode(), **plain).returncode == 0
    listed = reverie("list", **plain)
    assert listed.returncode == 0
    assert b"Z\\xfcrich" in listed.stdout
    assert json.loads(reverie("list", "--json", **plain).stdout)["items"][0]["content"] == "Zürich 日本"


def test_two_processes_write_at_once(reverie: Run, environment: dict[str, str]) -> None:
    reverie("put", "the first")
    writers = [
        subprocess.Popen([*COMMAND, "put", "--many", "--ref", f"w{n}"], stdin=subprocess.PIPE, env=environment)
        for n in range(3)
    ]
    lines = b"\n".join(json.dumps(f"line {n}").encode() for n in range(700))
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(lines)
        writer.stdin.close()
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0, 0]
    refs = json.loads(reverie("refs", "--json").stdout)["items"]
    assert [item["entries"] for item in refs] == [1, 700, 700, 700]
    assert json.loads(reverie("audit", "verify", "--json").stdout)["ok"] is True


def test_a_backup_taken_while_others_write(reverie: Run, environment: dict[str, str], tmp_path: Path) -> None:
    reverie("put", "the first")
    lines = b"\n".join(json.dumps(f"line {n} of a long stream").encode() for n in range(3000))
    writer = subprocess.Popen([*COMMAND, "put", "--many"], stdin=subprocess.PIPE, env=environment)
    assert writer.stdin is not None
    writer.stdin.write(lines)
    writer.stdin.close()
    time.sleep(0.3)
    made = reverie("backup", "create", str(tmp_path / "copy.db"), "--json")
    assert made.returncode == 0, made.stderr
    assert writer.wait(PATIENCE) == 0
    assert reverie("backup", "verify", str(tmp_path / "copy.db")).returncode == 0
    raw = bytearray((tmp_path / "copy.db").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "copy.db").write_bytes(raw)
    damaged = reverie("backup", "verify", str(tmp_path / "copy.db"))
    assert damaged.returncode == 1
    assert b"SHA-256" in damaged.stderr
