"""One change of many entries: a preview of all affected entries, page by page, then the change of exactly these.

Affected are the entries chosen in a list, or all that its filter matches. An entry that changed between preview and
confirmation is noticed: a filter is previewed again, a chosen entry is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from reverie.api.console.memories import CHANGES, FACETS, filter_of
from reverie.api.console.page import Document, Look, Page, See, whole
from reverie.api.console.text import number, segment
from reverie.core.actor import Right
from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import Entry
from reverie.core.errors import Conflict, Invalid, NotFound
from reverie.memory.export import entry_document

LIMIT = 50
MOST_CHOSEN = 200
ACTS = {"pin": "pin", "archive": "archive", "retract": "retract", "forget": "erase"}
LEFT = {
    "version_conflict": "changed since you looked",
    "not_found": "gone since you looked",
    "held": "on hold",
    "forbidden": "written by someone else",
}
_FILTERS = (*(name for name in FACETS if name != "age"), "from")


def show(look: Look) -> Document:
    """A page of the entries that the filter in the address matches, as of the first preview."""
    return _reach(look, look.text("ref"), _check_change(look.text("change")))


def _reach(look: Look, ref: str, change: str, *, restart: bool = False) -> Document:
    look.actor.require(Right.WRITE)
    kept = {} if restart else {name: look.number(name, 0, least=0, most=2**53) for name in ("at", "count")}
    question = (ref, change, *(look.text(name) for name in _FILTERS))
    cursor = None if restart else look.cursor(*question)
    found = look.host.bulk.reach(
        look.actor, ref, filter_of(look), position=kept.get("at") or None, limit=LIMIT, cursor=cursor
    )
    document = _effects(look, ref, change, found.page.items)
    return document | {
        "count": kept.get("count") or found.count,
        "at": found.position,
        "cursor": look.sealed(found.page.cursor, *question),
        "filters": [
            {"name": name, "value": look.text(name)} for name in _FILTERS if name != "from" and look.text(name)
        ],
        "moved": restart,
        "address": f"/memories/change?{urlencode(_address(look, ref, change))}",
    }


def _effects(look: Look, ref: str, change: str, entries: Sequence[Entry]) -> Document:
    derived: set[str] = set()
    if change == "forget":
        derived = {made for entry in entries for made in look.host.lineage.derived(look.actor, ref, entry.id)}
    title, effect = CHANGES[change]
    return {
        "ref": ref,
        "change": change,
        "title": title,
        "effect": effect,
        "entries": [entry_document(entry) for entry in entries],
        "derived": len(derived),
        "chosen": False,
        "gone": 0,
        "count": len(entries),
        "at": None,
        "cursor": None,
        "filters": [],
        "moved": False,
        "address": "/memories/change",
    }


def _address(look: Look, ref: str, change: str) -> list[tuple[str, str]]:
    """The parameters of the preview's address. An age becomes an instant, so that the filter stays the same."""
    named = {name: look.text(name) for name in _FILTERS}
    if age := look.number("age", 0, least=0, most=36_500):
        named["from"] = str(look.host.parts.clock.now() - age * MS_PER_DAY)
    return [("ref", ref), ("change", change), *((name, value) for name, value in named.items() if value)]


def ask(look: Look) -> See | Document:
    """Show the entries that a change would affect: the chosen ones, or everything that matches the list's filter."""
    look.actor.require(Right.WRITE)
    change, ref = _check_change(look.form_field("change")), look.form_field("ref")
    if look.form_field("reach") == "all":
        return See(f"/memories/change?{urlencode(_address(look, ref, change))}")
    ids = list(dict.fromkeys(look.form_fields("id")))
    if not 1 <= len(ids) <= MOST_CHOSEN:
        raise Invalid(f"Choose 1 to {MOST_CHOSEN} entries, or everything that matches.", pointer="/id")
    entries = []
    for entry_id in ids:
        with suppress(NotFound):  # it left since the list was shown
            entries.append(look.host.reader.get(look.actor, ref, entry_id, cold=True))
    return _effects(look, ref, change, entries) | {"chosen": True, "gone": len(ids) - len(entries)}


def apply(look: Look) -> See | Document:
    """Make the change. Entries that cannot be changed are left as they are, and counted."""
    change, ref = _check_change(look.form_field("change")), look.form_field("ref")
    if change == "forget" and look.form_field("sure") != "1":
        raise Invalid("Tick the box to confirm that this cannot be undone.", pointer="/sure")
    act = ACTS[change]
    chosen = look.form_fields("entry")
    if chosen:
        outcome = look.host.lifecycle.change_many(look.actor, ref, act, _versions(chosen))
    else:
        position = whole(look.form_field("at"), "at", 0, least=0, most=2**53)
        count = whole(look.form_field("count"), "count", 0, least=0)
        try:
            outcome = look.host.bulk.change(look.actor, ref, filter_of(look), act, position=position, count=count)
        except Conflict:
            return _reach(look, ref, change, restart=True)
    return See(f"/memories?ref={segment(ref)}", _summary(change, outcome))


def _versions(chosen: Sequence[str]) -> list[tuple[str, int]]:
    """(Id, version) of each chosen entry, from the `version:id` of the preview."""
    if len(chosen) > MOST_CHOSEN:
        raise Invalid(f"Choose 1 to {MOST_CHOSEN} entries.", pointer="/entry")
    parted = [one.partition(":") for one in chosen]
    return [(entry_id, whole(version, "entry", 0, least=0)) for version, _, entry_id in parted]


def _summary(change: str, outcome: Mapping[str, int]) -> str:
    left = Counter(outcome)
    done = left.pop("done", 0)
    message = f"{CHANGES[change][0]}: {number(done)} of {number(sum(outcome.values()))} done."
    if left:
        message += f" Left alone: {', '.join(f'{number(count)} {LEFT.get(why, why)}' for why, count in left.items())}."
    return message


def _check_change(change: str) -> str:
    if change not in CHANGES:
        raise Invalid("Choose what to do with the entries.", pointer="/change")
    return change


_DO: dict[str, Any] = {"ask": ask, "apply": apply}
PAGE = Page("memories", "/memories/change", "change.html", show, _DO, heavy=frozenset({"apply"}))
