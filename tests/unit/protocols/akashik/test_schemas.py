"""The payload schemas of the tools: sound, complete, and true of what the operations accept."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from reverie.protocols.akashik.envelope import OPERATIONS
from reverie.protocols.akashik.mcp import TOOLS
from reverie.protocols.akashik.schemas import PAYLOADS
from reverie.protocols.akashik.units import TYPES


def test_every_operation_has_a_typed_payload() -> None:
    assert set(PAYLOADS) == set(OPERATIONS)
    for tool in TOOLS:
        schema = tool.properties["payload"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["properties"], tool.name
        assert set(schema["required"]) <= set(schema["properties"])
        assert "{" not in tool.description


@pytest.mark.parametrize(
    ("operation", "payload"),
    [
        ("REGISTER", {"role": "r"}),
        ("RECORD", {"type": "finding", "content": "x", "intent": {}}),
        ("RECORD", {"type": "rumour", "content": "x", "intent": {"purpose": "p"}}),
        ("ATTUNE", {"scope": {"role": "r", "max_units": 0}}),
        ("COMPACT", {"strategy": "delete"}),
        ("MERGE", {"conflict_id": "c", "strategy": "vote", "resolution": {}}),
    ],
)
def test_a_wrong_payload_does_not_fit(operation: str, payload: dict[str, Any]) -> None:
    assert not jsonschema.Draft202012Validator(PAYLOADS[operation]).is_valid(payload)


def test_the_types_are_those_of_the_field() -> None:
    assert PAYLOADS["RECORD"]["properties"]["type"]["enum"] == list(TYPES)
