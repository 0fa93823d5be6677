"""The agents of this host, and what of their memory it cannot give them."""

from __future__ import annotations

from reverie.doors.openwop.call import api

router = api()
