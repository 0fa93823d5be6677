"""Routine reports become one line; updates of different things do not."""

from __future__ import annotations

from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.source import Source

DAY = 86_400_000
START = 1_759_449_600_000  # 3 October 2025


def count(text: str) -> int:
    return len(text.split())


def distilled(*texts: str) -> str:
    sources = [Source(f"s{i:02d}", text, START + i * DAY) for i, text in enumerate(texts)]
    return ExtractiveDistiller().distil(sources, output_tokens=500, count=count).text


def test_repeated_status_lines_become_one_with_ranges() -> None:
    text = distilled(*(f"Reindex finished in {n} s." for n in (41, 52, 66, 48)))
    assert "Reindex finished in 41 to 66 s (×4, 3 to 6 October 2025)" in text
    assert text.count("Reindex") == 1


def test_a_failure_among_them_follows_in_brackets() -> None:
    text = distilled(
        "Reindex finished in 41 s.", "Reindex finished in 52 s.", "Reindex failed.", "Reindex finished in 66 s."
    )
    assert "Reindex finished in 41 to 66 s (×3, 3 to 6 October 2025; once: Reindex failed)" in text


def test_a_failure_of_something_else_keeps_its_own_line() -> None:
    text = distilled("Reindex finished in 41 s.", "Reindex finished in 52 s.", "Backup failed: disk 3 is full.")
    text += distilled(*(f"Reindex finished in {n} s." for n in (41, 52, 66)), "Backup failed: disk 3 is full.")
    assert text.count("\nBackup failed: disk 3 is full") == 2


def test_reports_that_say_nothing_leave() -> None:
    text = distilled("heartbeat", "heartbeat", "heartbeat", "Waiting for the build.", "The gate code changes in May.")
    assert "heartbeat" not in text
    assert "Waiting" not in text
    assert "gate code" in text


def test_equal_reports_of_many_days_are_one_line_with_their_days() -> None:
    text = distilled(*(["Nightly import of orders finished."] * 4))
    assert "Nightly import of orders finished (×4, 3 to 6 October 2025)" in text


def test_counts_of_a_whole_have_ranges() -> None:
    text = distilled("tests passed 88/88", "tests passed 88/88", "tests passed 89/89")
    assert "tests passed 88/88 to 89/89 (×3, 3 to 5 October 2025)" in text


def test_every_source_stays_behind_the_line() -> None:
    sources = [Source(f"s{i}", f"Backup completed, {n} GB.", START + i * DAY) for i, n in enumerate((3, 4, 5))]
    made = ExtractiveDistiller().distil(sources, output_tokens=100, count=count)
    assert {i for s in made.statements for i in s.source_ids} == {"s0", "s1", "s2"}


def test_readings_that_seem_to_matter_are_rolled_up_with_their_like() -> None:
    text = distilled(*(f"disk of log-3 at {n} %" for n in (71, 78, 86, 52)))
    assert text.count("disk of log-3") == 1
    assert "disk of log-3 at 52 to 86 % (×4, 3 to 6 October 2025, last 52 %)" in text


def test_things_with_a_number_for_a_name_are_not_rolled_up() -> None:
    text = distilled(*(f"Invoice {n} is due on Friday, pay it by bank transfer." for n in (1001, 1002, 1003)))
    assert all(f"Invoice {n} is due" in text for n in (1001, 1002, 1003))


def test_terse_reports_with_several_figures_become_one_line() -> None:
    text = distilled(*(f"backup db-1 ok {size} GB {minutes} min" for size, minutes in ((42, 18), (42, 19), (43, 21))))
    assert "backup db-1 ok 42 to 43 GB 18 to 21 min (×3, 3 to 5 October 2025)" in text


def test_versions_have_a_range_in_their_order() -> None:
    text = distilled(*(f"deploy shop {version} ok" for version in ("5.2.1", "5.2.10", "5.2.9")))
    assert "deploy shop 5.2.1 to 5.2.10 ok (×3, 3 to 5 October 2025)" in text


def test_figures_of_a_period_are_no_other_value_of_the_same_thing() -> None:
    text = distilled(*(f"Groceries this week: {n} euros" for n in (112, 89, 95)))
    assert "Groceries this week: 89 to 112 euros (×3, 3 to 5 October 2025, last 95 euros)" in text
    text = distilled("Groceries this week: 112 euros", "Groceries this week: 95 euros")
    assert "112" in text
    assert "95" in text


def test_numbers_without_spaces_around_them_have_ranges() -> None:
    text = distilled(*(f"バックアップ完了、所要時間{n}分" for n in (12, 15, 13)), "バックアップ失敗：ディスク不足")
    assert "バックアップ完了、所要時間12 to 15分 (×3, 3 to 5 October 2025" in text


def test_a_failure_is_found_by_the_thing_without_its_preposition() -> None:
    text = distilled(*(f"Backup in {n} Minuten fertig" for n in (14, 15, 19)), "Backup fehlgeschlagen: Platte voll")
    assert "Backup in 14 to 19 Minuten fertig (×3" in text


def test_a_report_that_begins_with_a_name_stays() -> None:
    text = distilled("The customer Tessel wants 25 seats.", "Tessel signed.", "Waiting for the build.")
    assert "Tessel signed" in text
    assert "Waiting" not in text


def test_things_named_by_a_number_are_listed_and_decimal_commas_are_compared() -> None:
    """`Ticket 4711 to 4720 closed` would say that 4715 is closed, too."""

    def rolled(*texts: str) -> str:
        given = [Source(str(n), text, 1_775_000_000_000 + n * 86_400_000) for n, text in enumerate(texts)]
        return ExtractiveDistiller().distil(given, output_tokens=200, count=lambda text: len(text.split())).text

    assert "Ticket 4711, 4712, 4720 closed (×3" in rolled(*(f"Ticket {n} closed" for n in (4711, 4720, 4712)))
    assert "Served 65 to 112 covers" in rolled(*(f"Served {n} covers" for n in (84, 112, 65)))
    assert "Backup in 2,25 to 10,5 s fertig" in rolled(*(f"Backup in {n} s fertig" for n in ("2,25", "10,5", "9,5")))
