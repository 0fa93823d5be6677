"""The Responses door: a window around the caller's own `openai` client."""

from reverie.doors.responses.window import AsyncWindow, SyncWindow

__all__ = ["AsyncWindow", "SyncWindow"]
