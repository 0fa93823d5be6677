"""Which notes does consolidation take for overtaken? Precision and recall, and what is current after a dream.

    python -m bench updates                # short notes in bench/data/updates.txt
    python -m bench.updates --data FILE    # and a file of facts: {facts: [{number, text}], superseded: [[old, new]]}

An overtaken note is found when it is superseded, by whichever later note. A note that nothing overtook and that is
superseded all the same counts against precision. After a dream: of the notes that others overtook, how many have no line
of their own in hot memory any more, and of the notes that stay, how many are still there.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import reverie
from bench.hot import night
from reverie.distil.updates import Utterance, updates

DATA = Path(__file__).parent / "data" / "updates.txt"
_NOTE = re.compile(r"(\w+)(?:>(\w+))?: (.*)")


@dataclass(frozen=True)
class Notes:
    name: str
    said: Sequence[tuple[str, str]]
    overtaken: frozenset[str]


def ours(path: Path) -> list[Notes]:
    out = []
    for block in re.split(r"^@", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        name, *lines = [line for line in block.splitlines() if line]
        found = [match.groups() for line in lines if (match := _NOTE.fullmatch(line))]
        out.append(Notes(name, [(key, text) for key, _, text in found], frozenset(old for _, old, _ in found if old)))
    return out


def facts(path: Path) -> Notes:
    held = json.loads(path.read_text("utf-8"))
    said = [(str(fact["number"]), fact["text"]) for fact in held["facts"]]
    return Notes(path.stem, said, frozenset(str(old) for old, _ in held["superseded"]))


def measure(notes: Notes) -> dict[str, object]:
    found = {update.older for update in updates([Utterance(key, text) for key, text in notes.said])}
    gone, kept = dreamt(notes)
    right = len(found & notes.overtaken)
    return {
        "notes": notes.name,
        "overtaken": len(notes.overtaken),
        "found": len(found),
        "right": right,
        "missed": [text for key, text in notes.said if key in notes.overtaken - found],
        "wrong": [text for key, text in notes.said if key in found - notes.overtaken],
        "left_hot": gone,
        "stayed_hot": kept,
        "staying": len(notes.said) - len(notes.overtaken),
    }


def dreamt(notes: Notes) -> tuple[int, int]:
    """After a night of dreams by default: overtaken notes without a line of their own, and other notes that still have one."""
    with tempfile.TemporaryDirectory() as folder, reverie.open(folder) as memory:
        ref = memory.ref("notes")
        ref.put_many(
            [
                {"id": f"{number:05d}", "content": text, "created_at": 1_700_000_000_000 + 60_000 * number}
                for number, (_, text) in enumerate(notes.said)
            ]
        )
        night(ref)
        outdated = {entry for dream in memory.dreams.list() for entry in memory.dreams.diff(dream.id).outdated}
    lost = {notes.said[int(entry)][0] for entry in outdated}
    return len(lost & notes.overtaken), len(notes.said) - len(notes.overtaken) - len(lost - notes.overtaken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a file of facts that later facts overtake")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args()
    rows = [measure(notes) for notes in ours(DATA)]
    total = {name: sum(int(str(row[name])) for row in rows) for name in ("overtaken", "found", "right", "left_hot")}
    rows.append({"notes": "short notes", **total, "stayed_hot": 0, "staying": 0, "missed": [], "wrong": []})
    if given.data:
        rows.append(measure(facts(given.data)))
    if given.json:
        print(json.dumps(rows, indent=2))
        return 0
    print(f"{'notes':<16} overtaken  precision  recall  outdated in a dream")
    for row in rows:
        right, found, overtaken = (int(str(row[name])) for name in ("right", "found", "overtaken"))
        print(
            f"{row['notes']:<16} {overtaken:>9}  {100 * right / max(found, 1):>9.1f}  {100 * right / overtaken:>6.1f}"
            f"  {row['left_hot']:>8}"
        )
    for row in rows:
        for label in ("missed", "wrong"):
            for text in row[label]:  # type: ignore[attr-defined]
                print(f"  {label}: {row['notes']}: {text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
