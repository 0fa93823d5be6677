"""`Idempotency-Key` under OpenWOP."""

from __future__ import annotations

from reverie.http.once import Once
from reverie.protocols.openwop.http.errors import code_of, status_of

once = Once(status_of, code_of)
