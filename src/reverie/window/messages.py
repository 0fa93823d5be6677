"""The Messages API, as a window talks to it: stateless, with a compaction block that can be read and is no memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from reverie.window import blocks
from reverie.window import compaction as passes
from reverie.window.continuation import ExpectedItem, item_id
from reverie.window.dialect import Dialect, PassVerdict, Read
from reverie.window.errors import WindowRefusal, error_of, parse_error, word_of
from reverie.window.estimate import estimate
from reverie.window.items import Item, Json, compaction_blocks, encode, input_items, json_object
from reverie.window.message_stream import MessageStream
from reverie.window.shape import digest

if TYPE_CHECKING:
    from reverie.window.compaction import Attempt
    from reverie.window.state import WindowState

ON_DEMAND = "compact-2026-09-04"
THRESHOLD = "compact-2026-01-12"
EDITING = "context-management-2025-06-27"
_PASS_FIELDS = ("model", "system", "tools", "mcp_servers", "service_tier")
_PASS_TOKENS = 8_192
"""Room for thinking and summary."""
_COUNT_FIELDS = ("model", "system", "tools", "tool_choice", "thinking", "mcp_servers", "context_management")
_FINISHED = frozenset({"end_turn", "stop_sequence", "tool_use", "refusal"})
_UNUSABLE = frozenset(
    {"compaction_signature_invalid", "compaction_content_mismatch", "compaction_tool_changes_mismatch"}
)
_LIMIT = re.compile(r">\s*(\d{4,9})")
_TOO_LONG = ("prompt is too long", "exceed context limit", "exceeds the context window", "context window of")
_UNKNOWN = ("extra inputs are not permitted", "does not match any of the expected tags", "unexpected value")


class _Envelope(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"[]")


class Messages(Dialect):
    """Whole messages in, one message out; nothing is kept at the provider."""

    create = "/messages"
    count = "/messages/count_tokens"
    server_kind = "messages_context_management"
    pass_mode = "on_demand"
    mixes = False
    retains = False

    def items(self, given: Any) -> list[Item]:
        return input_items(given) if not isinstance(given, str) else [Item.of({"role": "user", "content": given})]

    def forms(self, items: Iterable[Item]) -> list[Any]:
        return blocks.match_form(items)

    def matches(self, items: Iterable[Item], *, returned: bool) -> list[ExpectedItem]:  # noqa: ARG002
        return [
            ExpectedItem(digest(form), "message", item_id(form), "required", form) for form in blocks.match_form(items)
        ]

    def boundaries(self, items: Sequence[Item]) -> list[int]:
        return blocks.boundaries(items)

    def broken(self, items: Sequence[Item]) -> bool:
        return blocks.orphans(items)

    def foreign(self, items: Sequence[Item], params: Mapping[str, Any]) -> str | None:
        if params.get("thread") is not None:
            return "client_managed_chain"
        own = any(str(edit.get("type", "")).startswith("compact_") for edit in _edits(params))
        signed = any(part.get("signature") for item in items for part in compaction_blocks(item.value))
        return "client_compaction" if own or signed or params.get("compaction") is not None else None

    def body(self, state: WindowState, params: Mapping[str, Any]) -> Json:
        pending = state.answerable()
        body = {key: value for key, value in params.items() if key not in ("messages", "context_management")}
        body["messages"] = [item.value for item in [*_remaining_items(state), *pending.increment]]
        edits = sorted(
            self._context_edits(state), key=lambda edit: not str(edit.get("type")).startswith("clear_thinking")
        )
        if state.mode == "server_side":
            trigger = {"type": "input_tokens", "value": passes.server_threshold(state)}
            edits.append({"type": "compact_20260112", "trigger": trigger})
        if edits:
            given = pending.shape.get("context_management")
            body["context_management"] = {**(given if isinstance(given, Mapping) else {}), "edits": edits}
        return body

    def _context_edits(self, state: WindowState) -> list[Json]:
        """The edits of context editing: the caller's, else the policy's, which spare the results of the memory tool."""
        form = state.pending.shape if state.pending is not None else state.shape
        given = _edits(form)
        if given:
            return given
        tools = form.get("tools")
        remembers = any(
            isinstance(tool, Mapping) and tool.get("name") == "memory"
            for tool in (tools if isinstance(tools, list | tuple) else ())
        )
        made: list[Json] = []
        for edit in state.policy.edits or ():
            kept = list(edit.get("exclude_tools") or ())
            spares = remembers and str(edit["type"]).startswith("clear_tool_uses") and "memory" not in kept
            made.append({**edit, "exclude_tools": [*kept, "memory"]} if spares else dict(edit))
        return made

    def betas(self, state: WindowState, *, is_pass: bool = False) -> tuple[str, ...]:
        results: list[str] = []
        signed = any(part.get("signature") for item in state.items for part in compaction_blocks(item.value))
        if is_pass or signed:
            results.append(ON_DEMAND)
        if not is_pass and state.mode == "server_side":
            results.append(THRESHOLD)
        if not is_pass and self._context_edits(state):
            results.append(EDITING)
        return tuple(results)

    def read(self, text: str | bytes, items: Sequence[Item] | None = None) -> Read | None:  # noqa: ARG002
        data = encode(text) if isinstance(text, str) else text
        body = json.loads(data)
        if not isinstance(body, dict) or body.get("type") != "message" or not isinstance(body.get("content"), list):
            return None
        stopped = body.get("stop_reason")
        if not isinstance(stopped, str):
            return None
        written = bytes(msgspec.json.decode(data, type=_Envelope).content).decode()
        output = [Item(f'{{"role":"assistant","content":{written}}}')] if body["content"] else []
        usage, again = _usage(body)
        return Read(
            stopped in _FINISHED,
            output,
            id=body.get("id") if isinstance(body.get("id"), str) else None,
            usage=usage,
            reported=usage["input_tokens"] + usage["output_tokens"] if usage else None,
            reports_output=True,
            after_compaction=again,
        )

    def paused(self, text: str) -> bool:
        return json_object(text).get("stop_reason") == "compaction"

    def reading(self) -> MessageStream:
        return MessageStream()

    def count_body(self, state: WindowState, items: Sequence[Item]) -> Json:
        form = state.pending.body if state.pending else state.shape
        body = {name: form[name] for name in _COUNT_FIELDS if form.get(name) is not None}
        sent = form["messages"] if state.pending else [item.value for item in items[state.prune_from or 0 :]]
        return body | {"messages": sent}

    def pass_body(self, state: WindowState, method: str, end: int) -> Json | str:  # noqa: ARG002
        form = state.shape
        body = {name: form[name] for name in _PASS_FIELDS if form.get(name) is not None}
        sent = [item.value for item in state.items[:end]]
        return body | {"max_tokens": _PASS_TOKENS, "messages": sent, "compaction": {"type": "summarize"}}

    def judge(self, state: WindowState, attempt: Attempt, answer: str | bytes) -> PassVerdict:
        try:
            body = json.loads(answer)
            found = self.read(answer) if isinstance(body, dict) else None
        except (ValueError, RecursionError, msgspec.MsgspecError):
            return PassVerdict("rejected_invalid_output")
        if found is None:
            return PassVerdict("rejected_invalid_output")
        content, stopped = body["content"], word_of(body.get("stop_reason"))
        usage = _pass_usage(body)
        if not content:
            return PassVerdict("rejected_empty_output", usage=usage, code=stopped)
        made = [part for part in content if isinstance(part, dict) and part.get("type") == "compaction"]
        if not made:
            return PassVerdict("rejected_missing_compaction_item", items=len(content), usage=usage, code=stopped)
        block = made[0]
        sound = all(isinstance(block.get(name), str) and block[name].strip() for name in ("content", "signature"))
        if len(content) != 1 or stopped != "compaction" or not sound:
            return PassVerdict("rejected_invalid_output", items=len(content), usage=usage, code=stopped)
        replacement = found.output
        if estimate(replacement) > attempt.prefix_tokens * (1 - state.policy.min_reduction):
            return PassVerdict("rejected_no_reduction", items=1, usage=usage)
        return PassVerdict(None, replacement, replacement, 1, usage)

    def refusal(self, status: int | None, body: Any) -> WindowRefusal:
        parsed, is_json = parse_error(body)
        error = error_of(parsed)
        details = error.get("details")
        code = word_of(details.get("error_code")) if isinstance(details, Mapping) else None
        message = str(error.get("message") or "").casefold()
        kind = _kind(status, code, message, is_json)
        limit = _LIMIT.search(message) if kind == "context_window" else None
        return WindowRefusal(kind, status, code or word_of(error.get("type")), limit=int(limit[1]) if limit else None)

    def unsupported(self, method: str, refusal: WindowRefusal, body: Any) -> bool:  # noqa: ARG002
        return refusal.negative_cache

    def note(self, text: str) -> Item:
        return blocks.user_note(text)

    def readable(self, items: Sequence[Item]) -> list[Item]:
        return [part for item in items for part in blocks.readable(item)]

    def restored(self, items: Sequence[Item]) -> list[Item]:
        return blocks.restored(items)


def is_mixed(state: WindowState) -> bool:
    """Whether a window holds compaction blocks of another mode: those of a pass are signed, others are not."""
    made = [part for item in state.items for part in compaction_blocks(item.value)]
    return any(bool(part.get("signature")) == (state.mode == "server_side") for part in made)


def _remaining_items(state: WindowState) -> list[Item]:
    """Return the window without the items that the provider compacted away itself."""
    return state.items[state.prune_from or 0 :]


def _edits(params: Mapping[str, Any]) -> list[Json]:
    given = params.get("context_management")
    edits = given.get("edits") if isinstance(given, Mapping) else None
    return [dict(edit) for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list | tuple) else []


def _usage(body: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """(usage of the last message of an answer, whether a compaction preceded it)."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None, False
    given = usage.get("iterations")
    rounds = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    spoken = [one for one in rounds if one.get("type") == "message"]
    last = spoken[-1] if spoken else usage
    cached = _figure(last, "cache_read_input_tokens")
    read = _figure(last, "input_tokens") + cached + _figure(last, "cache_creation_input_tokens")
    if not read:
        return None, False
    details = {"cached_tokens": cached}
    results = {"input_tokens": read, "output_tokens": _figure(last, "output_tokens"), "input_tokens_details": details}
    return results, bool(spoken) and any(one.get("type") == "compaction" for one in rounds)


def _pass_usage(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the billed usage of a pass: the sum over its iterations."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None
    given = usage.get("iterations")
    rounds = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) and given else [usage]
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {name: sum(_figure(one, name) for one in rounds) for name in names}


def _figure(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _kind(status: int | None, code: str | None, message: str, is_json: bool) -> str:
    if status is None:
        return "transient"
    if status in (405, 410, 501) or (status == 404 and not is_json):
        return "endpoint_missing"
    if status == 404:
        return "invalid_model" if "model" in message else "other"
    if status in (401, 403):
        return "credentials"
    if status in (408, 409, 429) or status >= 500 or status < 300:
        return "transient"
    if code in _UNUSABLE:
        return "encrypted_content"
    if code == "compaction_incomplete_turn":
        return "incomplete_turn"
    if code is not None and code.startswith("compaction_"):
        return "malformed"
    if status == 413 or any(words in message for words in _TOO_LONG):
        return "context_window"
    if "compact" in message and any(words in message for words in _UNKNOWN):
        return "endpoint_missing"
    return "malformed"
