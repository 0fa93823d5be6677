"""The Responses door: a window around the caller's own `openai` client."""

from reverie.protocols.responses.sdk import AsyncWindow, SyncWindow

__all__ = ["AsyncWindow", "SyncWindow"]
