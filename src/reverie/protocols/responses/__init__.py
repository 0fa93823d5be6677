"""The Responses API: a window around the caller's own `openai` client, and the proxy."""

from reverie.protocols.responses.sdk import AsyncWindow, SyncWindow

__all__ = ["AsyncWindow", "SyncWindow"]
