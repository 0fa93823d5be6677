"""The example of Claude's memory tool runs, and prints what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "anthropic_memory_tool.py"


def test_one_conversation_knows_what_another_learned() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "I will remember that, Mira.",
        "Oolong it is. And I noted that you live in Lisbon now.",
        "Here's the content of /memories/mira.md with line numbers:",
        "     1\tMira drinks oolong tea.",
        "     2\tMira lives in Lisbon.",
        "     3\t",
    ]
