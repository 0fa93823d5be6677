"""A framework that is missing or too old is named, with the release that is needed and the command that installs it."""

from __future__ import annotations

import sys
from importlib import import_module, metadata

import pytest

from reverie.core.errors import MissingExtra

ADAPTERS = {
    "adk": ("google-adk", "adk"),
    "agent_framework": ("agent-framework-core", "agent-framework"),
    "crewai": ("crewai", "crewai"),
    "langgraph": ("langgraph-checkpoint", "langgraph"),
    "llama_index": ("llama-index-core", "llama-index"),
    "pydantic_ai": ("pydantic-ai-slim", "pydantic-ai"),
    "strands": ("strands-agents", "strands"),
}


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize("installed", [None, "0.0.1"])
def test_the_release_that_is_needed_is_named(name: str, installed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution, extra = ADAPTERS[name]

    def version(asked: str) -> str:
        if installed is None:
            raise metadata.PackageNotFoundError(asked)
        return installed

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.delitem(sys.modules, f"reverie.integrations.{name}", raising=False)
    with pytest.raises(MissingExtra) as refused:
        import_module(f"reverie.integrations.{name}")
    said = str(refused.value)
    assert f"needs {distribution} " in said
    assert f"pip install 'reverie[{extra}]'" in said
    assert installed is None or f"{installed} is installed" in said
