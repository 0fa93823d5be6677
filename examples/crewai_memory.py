"""CrewAI's memory on Reverie, without an embedding model. Scope, categories and importance are given, so that CrewAI
asks no model for them.

    python examples/crewai_memory.py [FOLDER or URL]
"""

from __future__ import annotations

import os
import sys
import tempfile

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")

from crewai.memory.unified_memory import Memory

import reverie
from reverie.integrations.crewai import ReverieStorage


def main(target: str) -> str:
    with reverie.open(target) as memory:
        storage = ReverieStorage(memory)
        crew_memory = Memory(storage=storage, embedder=storage.embed)  # Crew(..., memory=crew_memory)
        for text in ("Ann drinks Darjeeling tea.", "The office is in Nantes."):
            crew_memory.remember(text, scope="/team/ann", categories=["facts"], importance=0.5)
        found = crew_memory.recall("Which tea does Ann drink?", scope="/team", depth="shallow")
        crew_memory.close()
        return found[0].record.content


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
