"""A team of agents on one Field: what one agent records, the others find.

python examples/team_field.py
"""

from __future__ import annotations

from reverie.akashik import Field


def main() -> list[str]:
    with Field() as field:
        scout = field.register(id="scout", role="researcher")
        pilot = field.register(id="pilot", role="planner")
        measured = {"score": 0.9, "reasoning": "measured on site"}
        scout.record("Pier 4 is 120 metres long.", intent="plan the landing", confidence=measured)
        scout.record("The tide turns at 14:20.", intent="plan the landing", confidence=measured)
        found = pilot.attune(max_units=5, context_hint="how long is the pier?")
        return [unit["memory_unit"]["content"] for unit in found["record"]]


if __name__ == "__main__":
    print("\n".join(main()))
