"""Hooks of a coding agent: the end of a session stores its messages, the start of the next one recalls them.

    python examples/coding_agent.py ./memory

`reverie connect claude-code --write` puts the same commands into the agent's configuration; here they are called as the
agent would call them, with JSON on stdin.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SAID = [
    ("user", "Always run the linter before you commit; we deploy on Thursdays."),
    ("assistant", "Understood: the linter runs before every commit, and deployments are on Thursdays."),
]


def hook(name: str, folder: str, given: dict[str, Any]) -> str:
    """Call a hook as an agent does; returns what it prints."""
    command = [sys.executable, "-m", "reverie.api.cli.main", "hook", name, "--data", folder]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
    return done.stdout


def main(folder: str) -> str:
    with tempfile.TemporaryDirectory() as project:
        transcript = Path(project) / "session.jsonl"
        lines = [
            {"type": role, "uuid": f"turn-{at}", "message": {"role": role, "content": text}}
            for at, (role, text) in enumerate(SAID)
        ]
        transcript.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        given = {"cwd": project, "session_id": "monday", "transcript_path": str(transcript)}
        hook("session-end", folder, {**given, "hook_event_name": "SessionEnd"})
        hook("session-end", folder, {**given, "hook_event_name": "SessionEnd"})  # twice stores once
        started = hook("session-start", folder, {"cwd": project, "hook_event_name": "SessionStart"})
    text: str = json.loads(started)["hookSpecificOutput"]["additionalContext"]
    return text


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else "./memory"))
