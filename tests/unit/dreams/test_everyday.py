"""A dream by default, of memories as people keep them: what must be kept is still there, most chatter is gone."""

from __future__ import annotations

from bench.hot import everyday


def test_what_must_be_kept_stays_and_most_chatter_leaves() -> None:
    rows = everyday()
    assert [row.memory for row in rows if not all(row.must_keep)] == []
    gone = [one for row in rows for one in row.chatter_gone]
    assert sum(gone) * 10 >= len(gone) * 6
    facts = [one for row in rows for one in row.facts]
    assert sum(facts) * 100 >= len(facts) * 95
