"""The TypeScript client against a real host. Collected where node is (see conftest.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def test_the_client_is_what_the_generator_writes() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate_typescript.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_its_own_tests_pass_on_a_host(running: Any, tenant: str) -> None:
    environment = {**os.environ, "REVERIE_URL": running.url, "REVERIE_KEY": running.key(tenant)}
    done = subprocess.run(
        ["node", "--test", "test/"],
        cwd=ROOT / "clients" / "typescript",
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
