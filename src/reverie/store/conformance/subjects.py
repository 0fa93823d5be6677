"""Subjects: one look-up finds every spelling of a subject, in every memory, readable or not."""

from __future__ import annotations

from reverie.core.entry import Entry, EntryState
from reverie.core.subject import subject_hash
from reverie.store.conformance.lab import Lab, make_event, same_but
from reverie.store.contract import ReadTx, WriteTx


def _about(lab: Lab, subject: str, ref: str | None = None, *, erased: bool = False) -> list[str]:
    def body(tx: ReadTx) -> list[Entry]:
        return tx.about(subject_hash(tx.log_key(), subject), erased=erased)

    return [entry.id for entry in lab.read(body, ref=ref)]


def match_whatever_their_case_and_surrounding_space(lab: Lab) -> None:
    """Stored as given, compared folded: case, surrounding space and composition do not count."""
    for number, subject in enumerate(("Zoë Straße", "  zoë STRASSE", "ZOE\u0308 strasse ", "zoe strasse")):
        lab.put(id=f"e{number}", subject=subject)
    assert _about(lab, "zoë straße") == ["e0", "e1", "e2"]
    entry = lab.get("e1")
    assert entry is not None
    assert entry.subject == "  zoë STRASSE"


def match_whatever_their_unicode_form_and_invisible_characters(lab: Lab) -> None:
    """Letters of another width and invisible characters do not count, whichever of the two has them."""
    spelled = ("Ada", "A\u200bda", "\ufeffada\u00ad", "\uff21\uff44\uff41")
    for number, subject in enumerate(spelled):
        lab.put(id=f"e{number}", subject=subject)
    lab.put(id="tag", tags=("subject:ad\u2060a",))
    lab.put(id="unseen", subject="\u200b")
    for asked in spelled:
        assert _about(lab, asked) == ["e0", "e1", "e2", "e3", "tag"]
    assert _about(lab, "\u200b") == ["unseen"]
    lab.purge("e1")
    assert _about(lab, "ada") == ["e0", "e2", "e3", "tag"]


def are_named_by_the_field_and_by_tags(lab: Lab) -> None:
    """The tag `subject:` counts as the field does; an entry that has both is found once."""
    lab.put(id="field", subject="Ada")
    lab.put(id="tag", tags=("subject:ada", "subject:Grace", "other"))
    lab.put(id="both", subject="ada", tags=("subject:ADA",))
    lab.put(id="neither", tags=("ada",))
    assert _about(lab, "ADA") == ["field", "tag", "both"]
    assert _about(lab, "grace") == ["tag"]
    assert _about(lab, "nobody") == []


def are_found_in_every_memory_and_state_but_their_own_tenant_only(lab: Lab) -> None:
    """Archived and deleted entries are found, purged ones are not; a bound ref limits the look-up."""
    lab.put(id="a", subject="ada", ref="one")
    lab.put(id="b", subject="ada", ref="two")
    lab.put(id="c", subject="ada", ref="one", tenant="rival")
    lab.change("a", ref="one", state=EntryState.DELETED)
    lab.change("b", ref="two", archived=True)
    assert _about(lab, "ada") == ["a", "b"]
    assert _about(lab, "ada", ref="two") == ["b"]
    lab.purge("b", ref="two")
    assert _about(lab, "ada") == ["a"]


def follow_a_rewrite(lab: Lab) -> None:
    """An entry whose labels were redacted is no longer found by the old ones."""
    entry = lab.put(id="a", subject="ada", tags=("subject:grace",))

    def body(tx: WriteTx) -> None:
        after = same_but(entry, subject="[REDACTED]", tags=())
        tx.rewrite(after, seq=tx.append(make_event("memory.rescanned", entry_id="a")), terms=[], vector=None)

    lab.write(body)
    assert _about(lab, "ada") == []
    assert _about(lab, "grace") == []
    assert _about(lab, "[redacted]") == ["a"]


def lead_to_a_tombstone_until_it_is_forgotten(lab: Lab) -> None:
    """Entries made from a purged entry can still be reached; after a forget of the subject, by another one only."""
    lab.put(id="a", subject="ada", tags=("subject:grace",))
    lab.put(id="b", subject="ada", tags=("subject:grace",))
    lab.purge("a")
    assert _about(lab, "ada") == ["b"]
    assert _about(lab, "ada", erased=True) == ["a", "b"]

    def forget(tx: WriteTx) -> None:
        for entry_id in ("a", "b"):
            seq = tx.append(make_event("memory.purged", entry_id=entry_id))
            tx.purge(entry_id, seq=seq, subject=subject_hash(tx.log_key(), "ADA"))

    lab.write(forget)
    assert _about(lab, "ada", erased=True) == []
    assert _about(lab, "grace", erased=True) == ["a"]
