"""Workspace files: versioned, per tenant and workspace."""

from __future__ import annotations

from reverie.doors.openwop.call import api

router = api()
