"""The errors of Reverie.

    ReverieError
      Invalid             the request cannot be right                    (400)
        UnsupportedRef    a name of something that is not memory         (400)
        TooLarge          a body, an entry or a batch over its limit     (413)
        MissingExtra      an optional package is not installed here      (501)
      Unauthenticated     no key, or not a valid one                     (401)
      Forbidden           a valid key without the right                  (403)
      NotFound            absent, or invisible to the caller             (404)
      Conflict            the stored version is not the expected one     (409)
        IdempotencyReused the key was used for another request           (409)
        Busy              someone else holds the lease                   (409)
        Held              a hold forbids it                              (409)
      Unprocessable       well formed, but cannot be done as asked       (422)
      RateLimited         too many requests                              (429)
      QuotaExceeded       the tenant's storage quota is used up          (429)
      ReadOnly            this host does not take writes                 (503)
      StoreError          the store cannot do its work
        StoreFull         disk full                                      (507)
        StoreBusy         locked for too long by another process         (503)
        StoreCorrupt      the file is not a sound Reverie database       (500)
        StoreUnavailable  cannot be opened or reached                    (503)
          HostUnreachable a running host does not answer                 (503)

Each class has a stable snake_case `code`; doors map codes to the errors of their protocol. The HTTP statuses on the
right are a hint to doors: the core does not use them. Messages say what to do next and never contain text of entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class ReverieError(Exception):
    """Something went wrong inside Reverie."""

    code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        pointer: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.reason = code or self.code
        self.pointer = pointer
        """JSON pointer to the field at fault, when there is one."""
        self.details: dict[str, Any] = dict(details or {})
        super().__init__(self.message)


class Invalid(ReverieError):
    """The request is not valid."""

    code = "validation_error"


class UnsupportedRef(Invalid):
    """This names a provider window, which is not memory: no memory read or write reaches it."""

    code = "unsupported_ref_namespace"


class TooLarge(Invalid):
    """The request is larger than this host accepts."""

    code = "too_large"


class MissingExtra(Invalid):
    """A package that this needs is not installed. Install the extra that the message names."""

    code = "missing_extra"


class Unauthenticated(ReverieError):
    """Send a valid key: `Authorization: Bearer KEY`. Make one with `reverie keys create`."""

    code = "unauthenticated"


class Forbidden(ReverieError):
    """The key does not have the right to do this."""

    code = "forbidden"


class NotFound(ReverieError):
    """Nothing with this name or id is visible to you."""

    code = "not_found"


class Conflict(ReverieError):
    """The stored version is not the one you expected. Read it again, then repeat the change."""

    code = "version_conflict"


class IdempotencyReused(Conflict):
    """This idempotency key was used for a different request. Use a new key for a new request."""

    code = "idempotency_key_reused"


class Busy(Conflict):
    """Another worker holds the lease on this. Try again when it is done."""

    code = "busy"


class Held(Conflict):
    """A hold forbids erasing this. Release the hold first."""

    code = "held"


class Unprocessable(ReverieError):
    """The request is well formed but cannot be done as asked."""

    code = "unprocessable"


class RateLimited(ReverieError):
    """Too many requests. Wait as long as `retry_after_seconds` says."""

    code = "rate_limited"


class QuotaExceeded(ReverieError):
    """The tenant's storage quota is used up. Forget or dream, or raise the quota."""

    code = "quota_exceeded"


class ReadOnly(ReverieError):
    """This host is read-only at the moment."""

    code = "read_only"


class StoreError(ReverieError):
    """The store cannot do its work."""

    code = "store_error"


class StoreFull(StoreError):
    """The disk is full. Nothing was stored. Free some space, then try again."""

    code = "storage_full"


class StoreBusy(StoreError):
    """Another process kept the database locked for too long. Nothing was stored. Try again."""

    code = "store_busy"


class StoreCorrupt(StoreError):
    """The file is not a sound Reverie database. Restore the newest backup: `reverie restore`."""

    code = "store_corrupt"


class StoreUnavailable(StoreError):
    """The database cannot be opened. Check the path, its permissions and that it is reachable."""

    code = "store_unavailable"


class HostUnreachable(StoreUnavailable):
    """The host does not answer. Start it with `reverie serve`, or check the address (--url, REVERIE_URL)."""

    code = "host_unreachable"
