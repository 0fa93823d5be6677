"""Long sessions with a model, against the strict emulator of tests/responses_emulator.

    python -m bench.window                three ways to keep a session small, then the bill of every trigger policy
    python -m bench.window --quick        shorter sessions
    python -m bench.window --part bills   one part: sessions or bills
    python -m bench.window --json         the figures

The emulator bills every token, keeps a prompt cache, refuses what the real provider refuses, and its model knows exactly
what is in its prompt or in a compaction payload that is.
"""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import asdict

from agents import set_tracing_disabled

from bench.window import curve, sessions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter sessions")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--part", choices=["sessions", "bills", "all"], default="all")
    parser.add_argument("--only", default=",".join(sessions.WAYS), help="ways, separated by commas")
    given = parser.parse_args()
    set_tracing_disabled(True)
    logging.disable(logging.ERROR)
    shown = sessions.measured(quick=given.quick, only=given.only) if given.part != "bills" else {}
    turns = 60 if given.quick else 200
    made = curve.bills(turns) if given.part != "sessions" else []
    if given.json:
        figures = {name: {way: vars(f) for way, f in ways.items()} for name, (_, ways) in shown.items()}
        bills = [asdict(bill) | {"billed": bill.billed} for bill in made]
        print(json.dumps({"sessions": figures, "bills": bills}, indent=1))
        return
    if shown:
        print(f"A context of {sessions.CONTEXT:,} tokens; the window compacts from {sessions.TRIGGER:,}.")
    for title, ways in shown.values():
        print(f"\n{title}:\n\n{sessions.table(ways)}")
    if made:
        print(f"\n{turns} turns with a tool call each, a context of {curve.CONTEXT:,} tokens:\n\n{curve.table(made)}")


if __name__ == "__main__":
    main()
