"""The shadow checkpoint: a readable record of the state of the work, made without a model.

Same ledger, same words. What is not known is empty, never invented.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from reverie.window.blocks import lost_in
from reverie.window.items import Item, item_type

_QUOTE = 600
_MOST = 12
_LINE = 200
NOTE_BYTES = 1_600
"""400 tokens at four bytes each: the most a note to the model may take."""
_LISTS = ("plan", "risks", "files", "artifacts", "verification", "decisions", "constraints", "source_refs")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of the work."""

    objective: str = ""
    acceptance_boundary: str = ""
    work_item: Mapping[str, Any] = field(default_factory=lambda: {"id": "", "state": "", "revision": ""})
    plan: Sequence[Any] = ()
    next_action: str = ""
    risks: Sequence[Any] = ()
    files: Sequence[Any] = ()
    artifacts: Sequence[Any] = ()
    verification: Sequence[Any] = ()
    decisions: Sequence[Any] = ()
    constraints: Sequence[Any] = ()
    source_refs: Sequence[Any] = ()
    covered_range: Sequence[int] = ()
    reason: str = ""
    created_at: str = ""

    def document(self) -> dict[str, Any]:
        """The checkpoint as plain JSON, with every field."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def text(self) -> str:
        """The checkpoint as readable text."""
        first, last = (*self.covered_range, 0, 0)[:2]
        lines = [f"Checkpoint ({self.reason}), items {first} to {last} of the conversation."]
        for title, value in (
            ("Objective", self.objective),
            ("Done when", self.acceptance_boundary),
            ("Next action", self.next_action),
        ):
            if value:
                lines.append(f"{title}: {value}")
        if any(self.work_item.values()):
            shown = ", ".join(f"{name} {value}" for name, value in self.work_item.items() if value)
            lines.append(f"Work item: {shown}")
        for title, values in (
            ("Plan", self.plan),
            ("Decisions", self.decisions),
            ("Constraints", self.constraints),
            ("Risks", self.risks),
            ("Files", self.files),
            ("Artifacts", self.artifacts),
            ("Verification", self.verification),
        ):
            lines += [f"{title}:", *(f"- {_line(value)}" for value in values)] if values else []
        return "\n".join(lines)

    def brief(self) -> str:
        """For the model: objective, next action, constraints and refs in at most 400 tokens."""
        lines = ["Where this work stands, from the readable record:"]
        if self.objective:
            lines.append(f"Objective: {self.objective}")
        if self.next_action:
            lines.append(f"Next action: {self.next_action}")
        lines += [f"Constraint: {_line(value)}" for value in self.constraints]
        if self.source_refs:
            lines.append("Refs: " + ", ".join(str(ref) for ref in self.source_refs[-4:]))
        return "\n".join(lines).encode()[:NOTE_BYTES].decode("utf-8", "ignore")


def build_checkpoint(
    items: Iterable[Item],
    *,
    reason: str,
    created_at: str,
    covered: tuple[int, int],
    work: Mapping[str, Any] | None = None,
    source_refs: Sequence[str] = (),
    found: Mapping[str, Sequence[str]] | None = None,
) -> Checkpoint:
    """A checkpoint of `items`.

    `work`: the runtime's description of the work, which takes precedence. `found`: statements of the memory by field.
    Without either the objective is the first message of the user; files and verification come from the items.
    """
    known = {name: value for name, value in (work or {}).items() if name in Checkpoint.__dataclass_fields__}
    values = [item.value for item in items if isinstance(item.value, dict)]
    fields: dict[str, Any] = {
        "objective": _objective(values),
        "files": _files(values),
        "verification": _verification(values),
        "source_refs": tuple(source_refs),
    }
    for name, statements in (found or {}).items():
        if name in _LISTS:
            fields[name] = tuple(_short(text) for text in statements[:_MOST])
        elif statements and name in Checkpoint.__dataclass_fields__:
            fields[name] = _short(statements[0])
    for name, value in known.items():
        if name in _LISTS:
            values_given = value[:_MOST] if isinstance(value, list | tuple) else (value,)
            fields[name] = tuple(_short(part) if isinstance(part, str) else part for part in values_given)
        elif name == "work_item":
            fields[name] = dict(value) if isinstance(value, Mapping) else {"id": str(value)}
        elif isinstance(value, str):
            fields[name] = _short(value, _QUOTE)
    lost = tuple(_short(name) for name in lost_in(values)[-_MOST:])
    if lost:  # no summary holds them
        fields["artifacts"] = (*fields.get("artifacts", ()), *lost)
    return Checkpoint(**fields | {"covered_range": covered, "reason": reason, "created_at": created_at})


def message_text(value: Mapping[str, Any]) -> str:
    """The text of a message."""
    content = value.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def _objective(values: Sequence[Mapping[str, Any]]) -> str:
    for value in values:
        if item_type(value) == "message" and value.get("role") == "user":
            text = message_text(value).strip()
            if text:
                return _short(text, _QUOTE)
    return ""


def _files(values: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    paths: dict[str, None] = {}
    for value in values:
        operation = value.get("operation")
        if item_type(value) == "apply_patch_call" and isinstance(operation, dict):
            path = operation.get("path")
            if isinstance(path, str) and path:
                paths[_short(path)] = None
    return tuple(paths)[-_MOST:]


def _verification(values: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """List the commands that were run, with their outcome where it is known; without a time, which is not known."""
    commands: dict[str, str] = {}
    done: list[dict[str, Any]] = []
    for value in values:
        kind, call_id = item_type(value), value.get("call_id")
        action = value.get("action")
        if kind == "shell_call" and isinstance(call_id, str) and isinstance(action, dict):
            given = action.get("commands")
            commands[call_id] = "; ".join(map(str, given)) if isinstance(given, list) else ""
        elif kind == "shell_call_output" and isinstance(call_id, str) and commands.get(call_id):
            output = value.get("output")
            outcomes = (
                [part.get("outcome") for part in output if isinstance(part, dict)] if isinstance(output, list) else []
            )
            codes = [outcome.get("exit_code") for outcome in outcomes if isinstance(outcome, dict)]
            known = [code for code in codes if isinstance(code, int)]
            outcome = f"exit {max(known, key=abs)}" if known else ""
            done.append({"command": _short(commands[call_id]), "outcome": outcome, "when": ""})
    return tuple(done[-_MOST:])


def _short(text: str, most: int = _LINE) -> str:
    clean = " ".join(text.encode("utf-8", "replace").decode().replace("\x00", "").split())
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def _line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {part}" for name, part in value.items() if part not in ("", None))
    return str(value)
