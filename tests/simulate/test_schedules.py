"""Orders that once broke a promise, each with what broke."""

from __future__ import annotations

import pytest
from tests.simulate.runner import replay
from tests.simulate.settle import settle
from tests.simulate.world import Scene

KEPT = {
    "two forgets of one dream: both certified, the text of both readable": ("forget forget", "0:3 1:5 0:3"),
    "two forgets of one dream, begun in the other order": ("forget forget", "1:3 0:5 1:3"),
    "a forget made a dream again that was dreamt away meanwhile": ("dream forget", "1:3 0:6 1:2"),
    "a forget made a dream again that was undone meanwhile": ("undo forget", "1:3 0:4 1:2"),
    "a forget made a dream again that was compacted meanwhile": ("compact forget", "1:3 0:6 1:2"),
    "a forget brought a deleted dream back": ("forget@0 delete@1", "0:3 1:2 0:2"),
    "a source of a dream was restored and readable twice": ("delete restore@1", "1:2"),
    "a dream was restored after its undo, beside its sources": ("undo restore@2", "0:4 1:2"),
    "a conflict waited for a decision about a forgotten unit": ("MERGE forget@0", "1:4"),
    "a remembered answer kept the reason of a MERGE": ("MERGE forget@0", "0:3 1:4"),
    "a change of a memory's metadata brought its forgotten text back": ("mark forget@0", "1:1 0:2 1:3 0:1"),
    "a memory was stored and forgotten, and its caller was refused": ("mem0 forget@0", "1:1 0:2 1:3 0:1"),
    "a look at the store by one caller stopped all others of mem0": ("mem0 mem0", "0:1 1:2"),
    "words of a session were forgotten while a dream made a file of them": ("filedream@1 forget@0", "1:1 0:15 1:3 0:1"),
    "a file was forgotten while a dream copied it": ("filedream@2 forget@0", "0:10 1:4 0:1"),
    "a scan did not know a secret that another process registered": ("secret scan", "0:3 1:9"),
    "a question repeated words of a deleted entry that was forgotten": ("delete@2 ask forget@0", "0:2 1:9 2:9"),
    "an undo took a source out of a newer dream, which kept it": (
        "delete@1 restore@1 dream undo",
        "0:2 1:2 2:6 3:4",
    ),
}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", KEPT)
def test_kept_schedules(request: pytest.FixtureRequest, engine: str, name: str) -> None:
    scene: Scene = request.getfixturevalue(f"{engine}_scene")
    names, schedule = KEPT[name]
    run = replay(scene, names.split(), schedule)
    assert run.broken is None, run.told()


def test_a_schedule_replays(sqlite_scene: Scene) -> None:
    one, other = (replay(sqlite_scene, ["dream", "put"], "0:2 1:2 0:9", epilogue=settle) for _ in range(2))
    assert one.steps == other.steps
    assert one.schedule() == other.schedule() == "0:2 1:2 0:5"
