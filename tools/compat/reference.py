"""The reference memory server's own tests, which are in TypeScript, against `reverie mcp --profile reference`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.compat.report import Case, results

ROOT = Path(__file__).parents[2]
MANAGER = Path(__file__).with_name("reference_manager.ts")


def reference(tests: Path) -> list[Case]:
    """Every test of a file: theirs, with our class behind the one they import. Needs npm."""
    folder = ROOT / ".venvs" / "compat-vitest"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "vitest").exists():
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "vitest"]
        subprocess.run(install, check=True, capture_output=True, cwd=folder)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        there = Path(scratch) / "__tests__"
        there.mkdir()
        shutil.copy(tests, there)
        shutil.copy(MANAGER, Path(scratch) / "index.ts")
        report = Path(scratch) / "report.xml"
        command = ["npx", "vitest", "run", "--root", scratch, "--reporter=junit", f"--outputFile={report}"]
        env = {**os.environ, "REVERIE": str(Path(sys.executable).with_name("reverie")), "NO_COLOR": "1"}
        subprocess.run(
            [*command, "--testTimeout=600000", "--hookTimeout=600000"], cwd=folder, env=env, capture_output=True
        )
        found = [case._replace(name=case.name.rpartition(" > ")[2]) for case in results(report)]
        return found or [Case(tests.name, False)]
