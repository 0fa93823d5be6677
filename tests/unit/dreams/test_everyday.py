"""A dream by default, of memories as people keep them: what must be kept is still there, most chatter is gone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bench.hot import everyday

import reverie


def test_what_must_be_kept_stays_and_most_chatter_leaves() -> None:
    rows = everyday()
    assert [row.memory for row in rows if not all(row.must_keep)] == []
    gone = [one for row in rows for one in row.chatter_gone]
    assert sum(gone) * 10 >= len(gone) * 8
    facts = [one for row in rows for one in row.facts]
    assert sum(facts) * 100 >= len(facts) * 95


def test_reports_are_rolled_up_around_notes_that_stay(tmp_path: Path) -> None:
    rules = [
        "Never restart db-7 during the stock count, the handhelds lose their carts.",
        "The spare key of the cold store hangs behind the fuse box on the first floor.",
        "Odile wants the flash page number in config.h, not in scan.c, before she approves.",
    ]
    reports = [text for n in (31, 30, 32, 33) for text in (f"compile ok {n}.5 s", "heartbeat", "session started")]
    lines = [*rules, *reports, "compile failed: missing header"]
    with reverie.open(tmp_path) as memory:
        notes = memory.ref("notes")
        for number, text in enumerate(lines):
            notes.put(text, created_at=datetime(2026, 4, 6 + number // 3, 9, number, tzinfo=UTC))
        assert notes.dream(fit=True) is not None
        hot = list(notes.entries())
    assert sorted(entry.content for entry in hot if entry.kind == "note") == sorted(rules)
    dream = "\n".join(entry.content for entry in hot if entry.kind == "dream")
    assert "compile ok 30.5 to 33.5 s (×4, 7 to 10 April 2026; once: compile failed: missing header)" in dream
    assert "heartbeat" not in dream
    assert "session" not in dream


def test_reports_of_one_day_with_failures_pass_the_gates(tmp_path: Path) -> None:
    """The counts in `(×8; 2 times, last: ...)` were taken for numbers that no source has, and the dream failed."""
    reports = [f"Backup ok {n} min" for n in (12, 14, 11, 16, 13, 15, 14, 12)]
    reports[3:3] = ["Backup failed: disk full"]
    with reverie.open(tmp_path) as memory:
        notes = memory.ref("notes")
        for number, text in enumerate([*reports, "Backup failed: no space on nas-9"]):
            notes.put(text, created_at=datetime(2026, 7, 6, 9, number, tzinfo=UTC))
        assert notes.dream(fit=True) is not None
        (dream,) = [entry.content for entry in notes.entries() if entry.kind == "dream"]
    assert "Backup ok 11 to 16 min (×8; 2 times, last: Backup failed: no space on nas-9)" in dream


def test_a_list_of_numbers_in_a_roll_up_is_no_flipped_claim(tmp_path: Path) -> None:
    """`Deployed build 398` before the comma seemed to deny `without trouble`, and the reports stayed as they were."""
    with reverie.open(tmp_path) as memory:
        notes = memory.ref("notes")
        for number, build in enumerate((398, 407, 443, 508)):
            text = f"Deployed build {build} to staging without trouble."
            notes.put(text, created_at=datetime(2026, 7, 6 + number, 9, tzinfo=UTC))
        assert notes.dream() is not None
        (dream,) = [entry.content for entry in notes.entries()]
    assert "Deployed build 398, 407, 443, 508 to staging without trouble (×4" in dream
