"""Currency: a statement that a later one of the same speaker and subject overtakes leaves the text as outdated.

The later line also names the sources of the outdated statement, and must be kept if that one had to be. An outdated
statement that says more than the later line follows it in brackets, so that a room or a name is not lost with a date.
Statements declared binding, routine status, figures of a period (`Groceries this week: 95 euros`) and chatter neither
overtake nor are overtaken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from reverie.core.pause import paced
from reverie.distil.rollup import is_of_period
from reverie.distil.statements import Candidate, Into, Place, with_earlier
from reverie.distil.updates import Utterance, says_more, updates
from reverie.distil.value import LOW

_LONGEST = 24
"""Words and marks above which a statement says too much to be overtaken as a whole."""


def overtake(items: Sequence[Candidate], into: Into) -> list[Candidate]:
    """Return the statements without those that a later one overtook."""
    spoken = [item for item in items if _speaks(item)]
    lasting = [not is_of_period(item.text) for item in spoken]
    at = {str(number): item for number, item in enumerate(compress(spoken, lasting))}
    found = updates([Utterance(number, item.text, (item.speaker, item.about)) for number, item in at.items()])
    gone: dict[Place, Candidate] = {}
    newest: dict[Place, Candidate] = {}
    for update in paced(found):  # oldest first, so that the sources of a whole chain reach its end
        older, newer = at[update.older], at[update.newer]
        older = newest.get(older.place, older)
        newer = newest.get(newer.place, newer)
        gone[older.place] = older
        into[older.place] = ("outdated", newer.place)
        if says_more(older.text, newer.text):
            newest[newer.place] = with_earlier(newer, older)
            continue
        newest[newer.place] = newer._replace(
            source_ids=(*newer.source_ids, *(i for i in older.source_ids if i not in newer.source_ids)),
            must_keep=newer.must_keep or older.must_keep,
            factor=max(newer.factor, older.factor),
        )
    return [newest.get(item.place, item) for item in items if item.place not in gone]


def _speaks(item: Candidate) -> bool:
    return (
        not item.required
        and item.kind not in LOW
        and item.length <= _LONGEST
        and not item.text.startswith("(")
        and not item.text.endswith("?")
    )
