"""Tags that name a dream or its archive differ from host to host: they are no part of what is searched."""

from __future__ import annotations

from reverie.search.text import searchable


def test_marks_of_dreams_and_programs_are_not_searched() -> None:
    tags = ("compacted-from:01M7GQ6TT3E74AKMPTCKFYVMPY", "archive:549e6268", "~profile", "boats")
    assert searchable("The pier is closed.", tags=tags) == "The pier is closed. (boats)"
