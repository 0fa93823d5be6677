"""Resolve Reverie and each of its extras with the newest release of the extra's framework.

python tools/resolve_extras.py          exits 1 when a resolver would fall back to an older release

Frameworks that cap a package which Reverie needs make resolvers choose ancient releases of the framework, silently.
Each line compares the release that is chosen alone with the one that is chosen together with Reverie.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALONGSIDE = ("semantic-kernel",)
"""Frameworks without an extra that Reverie must install with."""
PYTHON = "3.12"


def resolved(*lines: str) -> dict[str, str]:
    """Names and versions that a resolver chooses for these requirements. Raises CalledProcessError."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "compile",
            "-q",
            "--no-header",
            "--no-annotate",
            "--python-version",
            PYTHON,
            "-",
        ],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return {
        name.lower(): version
        for name, version in re.findall(r"^([\w.-]+)(?:\[.*\])?==([^\s;]+)", done.stdout, re.MULTILINE)
    }


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = project["dependencies"]
    pairs = [(extra, lines) for extra, lines in project["optional-dependencies"].items() if extra != "all"]
    pairs += [(name, [name]) for name in ALONGSIDE]
    failed = 0
    for extra, lines in pairs:
        names = [re.split(r"[\[<>=]", line)[0].lower() for line in lines]
        try:
            alone, together = resolved(*(re.split(r"[<>=]", line)[0] for line in lines)), resolved(*core, *lines)
        except subprocess.CalledProcessError as fault:
            print(f"FAIL  {extra}: no solution: {fault.stderr.strip().splitlines()[-1][:200]}")
            failed += 1
            continue
        for name in names:
            same = name in together and alone.get(name) == together[name]
            failed += not same
            print(
                f"{'ok  ' if same else 'FAIL'}  {extra}: {name} {together.get(name)}"
                + ("" if same else f", not {alone.get(name)}")
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
