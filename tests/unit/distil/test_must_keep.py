from __future__ import annotations

import pytest

from reverie.distil.must_keep import find, inferred
from reverie.distil.source import Source


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Backups must run nightly.", "rule"),
        ("We agreed on blue.", "decision"),
        ("The report is due by Friday.", "commitment"),
        ("Must it run nightly?", None),
        ("The sky is blue.", None),
    ],
)
def test_sentences_that_read_like_a_rule_a_decision_or_a_commitment(sentence: str, why: str | None) -> None:
    assert inferred(sentence) == why


def test_declared_items_come_from_pins_kinds_and_markers() -> None:
    found = find(
        [
            Source("a", "Anything at all.", 0, pinned=True),
            Source("b", "Use tabs. Not spaces.", 0, kind="human_directive"),
            Source("c", "Done. TODO: clean up. todo: and test. The todo list is long.", 0),
        ]
    )
    assert [(m.source_id, m.text, m.why) for m in found if m.declared] == [
        ("a", "Anything at all.", "pinned"),
        ("b", "Use tabs.", "kind"),
        ("b", "Not spaces.", "kind"),
        ("c", "TODO: clean up.", "marker"),
        ("c", "todo: and test.", "marker"),
    ]
