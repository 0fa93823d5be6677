"""Names of the protocol: prefixed ids, actors, paths of memories."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from reverie.core.errors import Invalid, NotFound

STORE, MEMORY, VERSION, DREAM, SESSION, KEY = "memstore_", "mem_", "memver_", "drm_", "sesn_", "apikey_"
DOOR = "anthropic"
"""The door that entries of memory stores come through, whichever interface wrote them."""
ENTRIES = "/entries/"
"""Folder of a bound store in which entries without a path appear, read-only."""
MAX_SEGMENTS = 20
MAX_PATH_BYTES = 1024
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


def bare(prefix: str, text: str, what: str) -> str:
    """An id without its prefix. What cannot be an id is not found."""
    rest = text.removeprefix(prefix)
    if rest == text or not _ID.fullmatch(rest):
        raise NotFound(f"There is no {what} with that id.")
    return rest


def path_fault(path: str) -> str | None:
    """Return the reason why a text is not the path of a memory; None when it is one."""
    if not path.startswith("/"):
        return "it must start with /"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if size > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    segments = path[1:].split("/")
    if len(segments) > MAX_SEGMENTS:
        return f"it has more than {MAX_SEGMENTS} segments"
    if any(segment in ("", ".", "..") for segment in segments):
        return "it has an empty, . or .. segment"
    if any(unicodedata.category(c) in ("Cc", "Cf") or c in "\u2028\u2029" for c in path):
        return "it has a control or format character"
    if not unicodedata.is_normalized("NFC", path):
        return "it is not in Unicode normalization form C"
    return None


def check_path(path: str, *, pointer: str = "/path") -> None:
    """Refuse a text that is not the path of a memory."""
    fault = path_fault(path)
    if fault is not None:
        raise Invalid(f"path: {fault}.", pointer=pointer)


def check_prefix(prefix: str) -> None:
    """Refuse a text that is not a folder: `/`, or a path that ends with a slash."""
    if prefix != "/" and not (prefix.endswith("/") and path_fault(prefix[:-1]) is None):
        raise Invalid("path_prefix: it must be / or a path that ends with /.", pointer="/path_prefix")


def parents(path: str) -> list[str]:
    """Paths above a path, the nearest last."""
    segments = path.split("/")[1:-1]
    return ["/" + "/".join(segments[: n + 1]) for n in range(len(segments))]


def session_name(session: str) -> str:
    """A session as the protocol shows it."""
    return session if session.startswith(SESSION) else SESSION + session


def actor_document(actor: str, session: str | None) -> Mapping[str, str]:
    """Return the author of a version."""
    if session is not None:
        return {"type": "session_actor", "session_id": session_name(session)}
    kind, _, name = actor.partition(":")
    if kind == "key" and name:
        return {"type": "api_actor", "api_key_id": KEY + name}
    if kind == "host" and name:
        return {"type": "service_account_actor", "service_account_id": f"svac_{name}"}
    return {"type": "user_actor", "user_id": "user_local" if kind == "local" else actor}
