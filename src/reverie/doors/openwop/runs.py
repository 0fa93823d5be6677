"""Runs: start, look at, follow, cancel, fork."""

from __future__ import annotations

from reverie.doors.openwop.call import api

router = api()
