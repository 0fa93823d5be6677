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


def _preview(look: Look) -> Document:
    return {
        "subject": look.form_field("subject"),
        "ref": look.form_field("ref"),
        "mentions": look.form_field("mentions") == "1",
    }


def preview(look: Look) -> Document:
    """Show everything that the forget would reach. Changes nothing."""
    form = _preview(look)
    ref, mentions = form["ref"] or None, form["mentions"]
    found = look.host.forget.forget(look.actor, form["subject"], ref=ref, mentions=mentions, preview=True)
    reached = look.host.forget.reached(look.actor, form["subject"], ref=ref, mentions=mentions, limit=_SHOWN)
    entries = [{**entry_document(entry), "way": way} for entry, way in reached]
    return show(look) | form | {"preview": _plain(found), "entries": entries}


def forget(look: Look) -> Document:
    """Forget, and show the certificate."""
    form = _preview(look)
    if look.form_field("sure") != "1":
        raise Invalid("Tick the box to confirm that this cannot be undone.", pointer="/sure")
    done = look.host.forget.forget(look.actor, form["subject"], ref=form["ref"] or None, mentions=form["mentions"])
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
