"""The message envelope: closed, eight members, exact protocol and version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reverie.core.policy import TenantPolicy
from reverie.protocols.akashik.errors import FieldError

PROTOCOL = "akashik"
VERSION = "0.1.0"
OPERATIONS = (
    "REGISTER",
    "DEREGISTER",
    "RECORD",
    "ATTUNE",
    "DETECT",
    "MERGE",
    "SUBSCRIBE",
    "REPLAY",
    "COMPACT",
    "COORDINATE",
    "HANDOFF",
    "SESSION",
)
MEMBERS = ("protocol", "version", "id", "operation", "agent_id", "session_id", "epoch", "payload")
LIMIT_EPOCH = 2**53
MAX_NAME = 256
TEXTS_OF_A_MESSAGE = 8
"""Maximum text in one message, as a multiple of the largest entry."""


def stored_units(operation: str | None, payload: Any) -> int:
    """Count the units that a message asks the Field to store: they count against its key's entries per second."""
    if operation == "MERGE":
        return int(isinstance(payload, dict) and payload.get("strategy") == "synthesis")
    return int(operation == "RECORD")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message as sent: well formed, not yet authorised."""

    id: str
    operation: str
    agent_id: str
    session_id: str | None
    epoch: int
    payload: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """The message on the wire."""
        return {
            "protocol": PROTOCOL,
            "version": VERSION,
            "id": self.id,
            "operation": self.operation,
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "epoch": self.epoch,
            "payload": dict(self.payload),
        }

    def fingerprint(self) -> str:
        """A text that is equal for repeats of a message, whatever the order of members."""
        return json.dumps(self.document(), sort_keys=True, separators=(",", ":"))


def read_envelope(document: Any, operation: str | None = None) -> Envelope:
    """Parse the envelope in `document`; `operation` is that of the route. Raises INVALID_ENVELOPE."""

    def no(text: str) -> FieldError:
        return FieldError("INVALID_ENVELOPE", text, operation=operation)

    if not isinstance(document, dict):
        raise no("A message is a JSON object.")
    missing = [name for name in MEMBERS if name not in document]
    if missing:
        raise no(f"The envelope lacks {', '.join(missing)}.")
    if len(document) != len(MEMBERS):
        raise no("The envelope has a member that the protocol does not know; extensions ride inside the payload.")
    if document["protocol"] != PROTOCOL or document["version"] != VERSION:
        raise no(f"This Field speaks {PROTOCOL} {VERSION}.")
    for name in ("id", "agent_id"):
        if not isinstance(document[name], str) or not document[name].strip():
            raise no(f"{name} is a string that is not empty.")
    session = document["session_id"]
    if session is not None and (not isinstance(session, str) or not session.strip()):
        raise no("session_id is a string or null.")
    for name in ("agent_id", "session_id"):
        if document[name] is not None and len(document[name]) > MAX_NAME:
            raise no(f"{name} is at most {MAX_NAME} characters.")
    epoch = document["epoch"]
    if type(epoch) is not int or epoch < 0:
        raise no("epoch is a whole number, 0 or more.")
    if not isinstance(document["payload"], dict):
        raise no("payload is an object.")
    named = document["operation"]
    if named not in OPERATIONS:
        raise no(f"operation is one of {', '.join(OPERATIONS)}.")
    if operation is not None and named != operation:
        raise no(f"This address is for {operation}; the envelope says {named}.")
    return Envelope(document["id"], named, document["agent_id"], session, epoch, document["payload"])


def check_texts(payload: Mapping[str, Any], policy: TenantPolicy) -> None:
    """Refuse texts that no operation could store, before the redactor reads them. Raises INVALID_REQUEST."""
    longest, most = policy.max_entry_bytes, policy.max_entry_bytes * TEXTS_OF_A_MESSAGE
    total, stack = 0, [payload]
    while stack:
        value: Any = stack.pop()
        if isinstance(value, str):
            total += len(value)
            if len(value) > longest or total > most:
                raise FieldError(
                    "INVALID_REQUEST", f"A text is at most {longest} bytes, and those of a message {most} together."
                )
        elif isinstance(value, Mapping):
            stack += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            stack += value
