"""Install a wheel in an empty environment and use it: `reverie serve` answers; `reverie mcp` asks for its extra first.

python tools/try_wheel.py dist/reverie-*.whl
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ROOT / "requirements"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}},
}


def main(wheel: str) -> int:
    folder = Path(tempfile.mkdtemp(prefix="reverie-wheel-"))
    try:
        _try(Path(wheel), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{Path(wheel).name}: reverie serve and reverie mcp run in an empty environment")
    return 0


def _try(wheel: Path, folder: Path) -> None:
    python, command = folder / "env/bin/python", folder / "env/bin/reverie"
    uv = [sys.executable, "-m", "uv"]
    install = [*uv, "pip", "install", "-q", "--python", str(python)]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(folder / "env")], check=True)
    subprocess.run([*install, "--require-hashes", "-r", str(REQUIREMENTS / "core.txt")], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "REVERIE_DATA": str(folder / "data")}

    without = subprocess.run([command, "mcp"], env=environment, cwd=folder, capture_output=True, text=True)
    assert without.returncode != 0, without.stdout
    assert "pip install 'reverie[mcp]'" in without.stderr, without.stderr

    _serve(command, folder, environment)

    subprocess.run([*install, "--require-hashes", "-r", str(REQUIREMENTS / "run.txt")], check=True)
    spoken = subprocess.run(
        [command, "mcp"],
        input=json.dumps(HELLO) + "\n",
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(spoken.stdout)["result"]["serverInfo"]["name"] == "reverie", spoken.stdout


def _serve(command: Path, folder: Path, environment: dict[str, str]) -> None:
    server = subprocess.Popen(
        [command, "serve", "--port", "0"],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None
    said: list[str] = []
    try:
        for line in server.stdout:
            said.append(line)
            if "listening on http" in line:
                break
        else:
            raise AssertionError("".join(said))
        address = "http" + said[-1].partition("listening on http")[2].split()[0]
        with urllib.request.urlopen(f"{address}/readyz") as answer:
            assert answer.status == 200
    finally:
        server.terminate()
        server.stdout.read()
    assert server.wait(timeout=60) == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
