"""Report the dreams of the night to a webhook: one POST per dream, also after a restart.

A crash may send a report again, under the same idempotency key.

    python examples/nightly_dream.py ./memory https://chat.example/hook

Run it from cron or a systemd timer in the morning. A report holds figures and ids, never the text of a memory. The
position of the last event that was reported is kept in a file in the data folder.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import reverie

MADE = ("memory.compacted",)
Send = Callable[[dict[str, Any]], None]


def post(url: str) -> Send:
    """Send a report as JSON. An answer other than 2xx raises, and the next call of `main` sends the report again."""

    def send(report: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "Idempotency-Key": report["dream"]}
        request = urllib.request.Request(url, json.dumps(report).encode(), headers)
        with urllib.request.urlopen(request, timeout=30):
            pass

    return send


def reports(memory: reverie.Memory, *, after: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The dreams after a log position, each with the position of its event, but for those undone or forgotten since."""
    for event in memory.events(after=after, types=MADE):
        report = memory.dreams.get(str(event.data["dream"]))
        if report.state != "done":
            continue
        yield (
            event.seq,
            {
                "dream": report.id,
                "memory": report.ref,
                "text": f"{report.ref}: {len(report.sources)} memories became one, "
                f"{report.tokens_before} tokens became {report.output_tokens}",
                "undo": f"reverie dream undo {report.id}",
            },
        )


def main(folder: str, send: Send) -> int:
    """Report what was dreamt since the last call; return the number of reports sent."""
    place = Path(folder) / "webhook.position"
    fresh = place.with_suffix(".new")
    sent = 0
    with reverie.open(folder) as memory:
        after = int(place.read_text()) if place.exists() else 0
        for seq, report in reports(memory, after=after):
            send(report)
            fresh.write_text(str(seq))  # after the answer: a crash in between sends the report again, with the same key
            fresh.replace(place)
            sent += 1
    return sent


if __name__ == "__main__":
    print(f"{main(sys.argv[1], post(sys.argv[2]))} reports sent")
