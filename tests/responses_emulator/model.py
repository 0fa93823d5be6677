"""The emulated model: what it sees in a turn, what it can say, and a few that play a part."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.responses_emulator.vault import Sealed, Vault, count, mark

FACT = re.compile(r"\bfact:[a-z0-9-]+")


@dataclass
class Turn:
    """What the model sees: the whole context, opened, and the request."""

    number: int
    items: list[dict[str, Any]]
    body: dict[str, Any]
    facts: list[str] = field(default_factory=list)
    """Every `fact:name` that stands in the context or in what a payload stands for, each once, in order."""
    outputs: int = 0
    """Tool outputs in the context and in what was compacted."""

    @property
    def last(self) -> dict[str, Any]:
        return self.items[-1] if self.items else {}

    @property
    def asked(self) -> str:
        """The newest words of the user."""
        for item in reversed(self.items):
            if item.get("role") == "user":
                return text_of(item)
        return ""


Output = list[dict[str, Any]]
Model = Callable[[Turn], Output]


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "text": text, **more}


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"type": "function_call", "name": name, "arguments": given, **more}


def thought(tokens: int = 40) -> dict[str, Any]:
    """A reasoning item whose payload weighs `tokens`."""
    return {"type": "reasoning", "tokens": tokens}


def talker(turn: Turn) -> Output:
    """Thinks, then answers what was asked, naming how many facts it knows."""
    return [thought(), message(f"Answer {turn.number}: I know {len(turn.facts)} facts. You said: {turn.asked[:60]}")]


def worker(steps: int, *, tool: str = "step", parallel: int = 1, words: int = 12) -> Model:
    """Calls `tool` until it has seen `steps` outputs, then says it is done. What was compacted counts as seen."""

    def play(turn: Turn) -> Output:
        if turn.outputs >= steps:
            return [thought(), message(f"Done after {turn.outputs} steps, with {len(turn.facts)} facts.")]
        many = min(parallel, steps - turn.outputs)
        why = " ".join(f"because{n}" for n in range(words))
        calls = [call(tool, {"number": turn.outputs + n + 1, "why": why}) for n in range(many)]
        return [thought(), *calls]

    return play


def text_of(item: dict[str, Any]) -> str:
    """All the words of an item."""
    words: list[str] = []
    for name in ("content", "output", "arguments", "input", "summary", "result", "code", "text"):
        value = item.get(name)
        if isinstance(value, str):
            words.append(value)
        elif isinstance(value, list):
            words.extend(part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))
        elif value is not None:
            words.append(json.dumps(value))
    return " ".join(words)


def weigh(item: dict[str, Any], vault: Vault) -> int:
    """Tokens of one item as the model reads it."""
    payload = item.get("encrypted_content")
    if payload is not None:
        found = vault.sealed.get(payload)
        return (found.tokens if found else 0) + 4
    return count(f"{item.get('role', '')}{item.get('name', '')}{text_of(item)}") + 4


def segments(body: dict[str, Any], items: list[dict[str, Any]], vault: Vault) -> list[tuple[str, int]]:
    """The prompt as the cache sees it: (mark, tokens) of each piece, request-level pieces first."""
    head = [
        (mark(body["model"]), 0),
        (mark(body.get("tools", [])), count(json.dumps(body["tools"])) if body.get("tools") else 0),
        (mark(body.get("instructions", "")), count(body.get("instructions", ""))),
    ]
    bare = [{name: value for name, value in item.items() if name not in ("id", "status", "phase")} for item in items]
    return head + [(mark(_parts(plain)), weigh(item, vault)) for plain, item in zip(bare, items, strict=True)]


def _parts(item: dict[str, Any]) -> dict[str, Any]:
    """A string and one text part are the same words to the model."""
    if item.get("type") != "message":
        return item
    return {"type": "message", "role": item["role"], "text": text_of(item)}


def known(items: list[dict[str, Any]], vault: Vault) -> tuple[list[str], int]:
    """(facts, tool outputs) of a context, with what its payloads stand for."""
    facts: dict[str, None] = {}
    outputs = 0
    for item in items:
        payload = item.get("encrypted_content")
        sealed: Sealed | None = vault.sealed.get(payload) if payload is not None else None
        if sealed is not None:
            facts.update(dict.fromkeys(sealed.facts))
            outputs += sealed.outputs
            continue
        facts.update(dict.fromkeys(FACT.findall(text_of(item))))
        outputs += item["type"].endswith("_output")
    return list(facts), outputs
