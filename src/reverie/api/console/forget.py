"""Forget: a subject or words, a preview of everything reached, the confirmation, and the certificate."""

from __future__ import annotations

import msgspec

from reverie.api.console.page import Document, Look, Page
from reverie.core.errors import Invalid
from reverie.memory.export import entry_document
from reverie.privacy.certificate import Forgotten

_SHOWN = 100
_CERTIFICATES = 20


def show(look: Look) -> Document:
    """The form, and the certificates of the last forgets."""
    head = look.host.reader.snapshot(look.actor)
    events = look.host.reader.events(look.actor, before=head + 1, limit=_CERTIFICATES, types=("memory.forgotten",))
    return {
        "refs": [name for name, _ in look.host.reader.refs(look.actor)],
        "subject": "",
        "ref": "",
        "mentions": False,
        "preview": None,
        "entries": [],
        "certificate": None,
        "certificates": [event.document() for event in events],
    }


def _asked(look: Look) -> Document:
    return {"subject": look.sent("subject"), "ref": look.sent("ref"), "mentions": look.sent("mentions") == "1"}


def preview(look: Look) -> Document:
    """Everything that the forget would reach. Changes nothing."""
    asked = _asked(look)
    ref, mentions = asked["ref"] or None, asked["mentions"]
    found = look.host.forget.forget(look.actor, asked["subject"], ref=ref, mentions=mentions, preview=True)
    reached = look.host.forget.reached(look.actor, asked["subject"], ref=ref, mentions=mentions, limit=_SHOWN)
    entries = [{**entry_document(entry), "way": way} for entry, way in reached]
    return show(look) | asked | {"preview": _plain(found), "entries": entries}


def forget(look: Look) -> Document:
    """Destroy it. The answer is the certificate."""
    asked = _asked(look)
    if look.sent("sure") != "1":
        raise Invalid("Tick the box to confirm that this cannot be undone.", pointer="/sure")
    done = look.host.forget.forget(look.actor, asked["subject"], ref=asked["ref"] or None, mentions=asked["mentions"])
    return show(look) | {"certificate": _plain(done)}


def _plain(done: Forgotten) -> Document:
    document: Document = msgspec.to_builtins(done)
    return document


PAGE = Page(
    "forget",
    "/forget",
    "forget.html",
    show,
    {"preview": preview, "forget": forget},
    heavy=frozenset({"preview", "forget"}),
)
