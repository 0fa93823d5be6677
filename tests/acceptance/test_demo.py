"""The tour, as a newcomer takes it: a real process, its own folder, and every claim it prints checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import reverie
from reverie.demo.corpus import entries, fakes

FIRST = (
    ("Which database do we use?", "PostgreSQL 16"),  # its words are in several lines that are less of an answer
    ("When must we not deploy?", "Fridays after noon"),  # later lines are about builds that were deployed
    ("How many boats does the free plan allow?", "5 boats"),
    ("What does the paid plan cost?", "35 euros"),
)
"""Questions after the dream, and what the first hit says."""


def run(*arguments: str, seed: str = "0", **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REVERIE_", "OTEL_"))}
    command = [sys.executable, "-m", "reverie.api.cli.main", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**kept, "PYTHONHASHSEED": seed, **more}, check=False
    )


def test_the_tour_holds_what_it_prints_and_the_readme_quotes_it(tmp_path: Path) -> None:
    folder = tmp_path / "tour"
    done = run("demo", "--json", "--keep", str(folder), seed="1")
    assert done.returncode == 0, done.stderr
    tour = json.loads(done.stdout)
    assert tour["before"]["memories"] == len(entries()) > 250
    assert tour["after"]["tokens"] * 10 < tour["before"]["tokens"] * 9
    assert tour["after"]["memories"] == 2  # the dream, and what was pinned
    assert tour["tokens_used"] <= tour["budget"]
    assert sum(tour["redacted"].values()) == tour["secrets_planted"] == len(fakes())
    assert tour["secrets_on_disk"] == 0
    assert tour["must_keep"]["missing"] == 0
    assert tour["answered"] == tour["questions"] == 8
    assert tour["undone"]
    assert tour["repeated"]
    assert tour["audit"]
    assert "(earlier, " in tour["contradiction"]["line"]
    assert len(tour["contradiction"]["sources"]) == 2
    stored = b"".join(path.read_bytes() for path in folder.iterdir())
    assert not any(fake.encode() in stored for fake in fakes().values())
    with reverie.open(folder) as memory:  # the tenant that every command uses
        assert memory.dreams.verify(tour["dream"]).ok
        assert memory.dreams.get(tour["dream"]).checksum == tour["checksum"]
        for question, answer in FIRST:
            assert answer in memory.ref("tidebook").search(question)[0].text, question
    assert "is not an empty folder" in run("demo", "--keep", str(folder)).stderr
    # the same for people, in another process: it leaves nothing behind, and the README shows it
    (tmp_path / "temporary").mkdir()
    shown = run("demo", seed="9", TMPDIR=str(tmp_path / "temporary"))
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    for words in ("before", "after", "secrets", "(earlier, ", "every entry came back exactly", "the same bytes"):
        assert words in shown.stdout
    assert tour["checksum"] in shown.stdout  # the same in every process
    assert list((tmp_path / "temporary").iterdir()) == []
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    quoted = readme.split("$ reverie demo\n", 1)[1].split("...\n```", 1)[0].splitlines()
    assert quoted == [line for line in shown.stdout.splitlines() if not line.startswith("took ")]  # by `make docs`


def test_no_file_of_the_corpus_holds_a_secret() -> None:
    from reverie.redact import load_redactor

    folder = Path(reverie.__file__).parent / "demo"
    redactor = load_redactor()
    for path in folder.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not redactor.text(line).findings, line
    assert all(redactor.text(f"here: {fake}").findings for name, fake in fakes().items() if name != "told-password")
