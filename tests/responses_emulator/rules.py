"""What the emulated provider refuses, in its own words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.responses_emulator.vault import Vault


@dataclass
class Refused(Exception):
    """An error answer."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    kind: str = "invalid_request_error"

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


CREATE = frozenset(
    [
        "access_programs",
        "background",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)
COMPACT = frozenset(
    [
        "model",
        "input",
        "instructions",
        "previous_response_id",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "service_tier",
        "image",
    ]
)
COUNT = frozenset(
    [
        "conversation",
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "personality",
        "previous_response_id",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    ]
)
INCLUDES = frozenset(
    [
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
    ]
)
TYPES: dict[str, Any] = {
    "model": str,
    "instructions": str,
    "previous_response_id": str,
    "prompt_cache_key": str,
    "service_tier": str,
    "store": bool,
    "stream": bool,
    "background": bool,
    "parallel_tool_calls": bool,
    "tools": list,
    "include": list,
    "metadata": dict,
    "reasoning": dict,
    "text": dict,
    "max_output_tokens": int,
    "prompt_cache_options": dict,
}
# Fields of each input item; `!` marks what must be there.
ITEMS: dict[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "message": "type role! content! status id phase",
        "function_call": "type call_id! name! arguments! id status async caller namespace",
        "function_call_output": "type call_id! output! id status caller name namespace",
        "custom_tool_call": "type call_id! name! input! id async caller namespace",
        "custom_tool_call_output": "type call_id! output! id caller",
        "computer_call": "type call_id! action actions pending_safety_checks id status!",
        "computer_call_output": "type call_id! output! acknowledged_safety_checks id status",
        "shell_call": "type call_id! action! id status caller environment",
        "shell_call_output": "type call_id! output! id status caller max_output_length",
        "apply_patch_call": "type call_id! operation! id status! caller",
        "apply_patch_call_output": "type call_id! output status! id caller",
        "local_shell_call": "type call_id! action! id status!",
        "local_shell_call_output": "type id! output! status",
        "tool_search_call": "type call_id arguments execution id status",
        "tool_search_output": "type call_id tools! execution id status",
        "program": "type call_id! code! fingerprint id!",
        "program_output": "type call_id! result! status! id!",
        "mcp_approval_request": "type id! arguments! name! server_label!",
        "mcp_approval_response": "type approval_request_id! approve! id reason",
        "mcp_call": "type id! arguments! name! server_label! approval_request_id error output status",
        "mcp_list_tools": "type id! server_label! tools! error",
        "web_search_call": "type id action status!",
        "file_search_call": "type id queries! results status!",
        "code_interpreter_call": "type id code container_id! outputs status!",
        "image_generation_call": "type id result status! action background error output_format quality revised_prompt size",
        "reasoning": "type id summary! content encrypted_content status",
        "compaction": "type encrypted_content! id created_by",
        "compaction_trigger": "type id",
        "configuration_update": "type id reasoning text",
        "item_reference": "type id!",
        "additional_tools": "type id role tools!",
    }.items()
}
PAIRS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "local_shell_call": "local_shell_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
    "mcp_approval_request": "mcp_approval_response",
}
OUTPUTS = {output: call for call, output in PAIRS.items()}
JOINED_BY_ID = frozenset({"mcp_approval_request", "local_shell_call_output", "program", "program_output"})
"""Here the id is the join, not a name of something stored."""


def check_body(body: Any, allowed: frozenset[str], models: Iterable[str]) -> dict[str, Any]:
    """The parameters themselves."""
    if not isinstance(body, dict):
        raise Refused(400, "We could not parse the JSON body of your request.")
    for name in body:
        if name not in allowed:
            raise Refused(400, f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    body = {name: value for name, value in body.items() if value is not None}
    for name, value in body.items():
        kind = TYPES.get(name)
        if kind and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise Refused(400, f"Invalid type for '{name}'.", name, "invalid_type")
    if "model" not in body:
        raise Refused(400, "Missing required parameter: 'model'.", "model", "missing_required_parameter")
    if body["model"] not in models:
        raise Refused(404, f"The model '{body['model']}' does not exist.", "model", "model_not_found")
    if body.get("max_output_tokens", 16) < 16:
        message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
        raise Refused(400, message, "max_output_tokens", "integer_below_min_value")
    for value in body.get("include", ()):
        if value not in INCLUDES:
            raise Refused(400, f"Invalid value: '{value}'.", "include", "invalid_value")
    for number, tool in enumerate(body.get("tools", ())):
        if not isinstance(tool, dict) or "type" not in tool:
            raise Refused(
                400, f"Missing required parameter: 'tools[{number}].type'.", "tools", "missing_required_parameter"
            )
        if tool["type"] == "function" and not isinstance(tool.get("name"), str):
            raise Refused(
                400, f"Missing required parameter: 'tools[{number}].name'.", "tools", "missing_required_parameter"
            )
    for name in body.get("prompt_cache_options", {}):
        if name not in ("mode", "ttl", "comparison_response_id"):
            where = f"prompt_cache_options.{name}"
            raise Refused(400, f"Unknown parameter: '{where}'.", where, "unknown_parameter")
    _check_management(body)
    return body


def _check_management(body: dict[str, Any]) -> None:
    if "context_management" not in body:
        return
    managed = body["context_management"]
    if not isinstance(managed, list):
        message = "Invalid type for 'context_management': expected an array of objects."
        raise Refused(400, message, "context_management", "invalid_type")
    for number, entry in enumerate(managed):
        where = f"context_management[{number}]"
        if not isinstance(entry, dict) or entry.get("type") != "compaction":
            raise Refused(400, f"Invalid value for '{where}.type'.", f"{where}.type", "invalid_value")
        for name in entry:
            if name not in ("type", "compact_threshold"):
                raise Refused(400, f"Unknown parameter: '{where}.{name}'.", f"{where}.{name}", "unknown_parameter")
        least = entry.get("compact_threshold", 1000)
        if not isinstance(least, int) or least < 1000:
            message = f"Invalid '{where}.compact_threshold': integer below minimum value. Expected a value >= 1000."
            raise Refused(400, message, f"{where}.compact_threshold", "integer_below_min_value")


def read_input(body: dict[str, Any]) -> list[dict[str, Any]]:
    """`input` as items; a string is one user message."""
    given = body.get("input", [])
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list):
        raise Refused(400, "Invalid type for 'input': expected a string or an array.", "input", "invalid_type")
    return [_item(number, item) for number, item in enumerate(given)]


def _item(number: int, item: Any) -> dict[str, Any]:
    where = f"input[{number}]"
    if not isinstance(item, dict):
        raise Refused(400, f"Invalid type for '{where}': expected an object.", where, "invalid_type")
    if "type" not in item and "role" in item:
        item = {"type": "message", **item}
    kind = item.get("type")
    if kind not in ITEMS:
        raise Refused(400, f"Invalid value: '{kind}'.", where, "invalid_value")
    fields = ITEMS[kind]
    for name in item:
        if name not in fields and f"{name}!" not in fields:
            raise Refused(400, f"Unknown parameter: '{where}.{name}'.", f"{where}.{name}", "unknown_parameter")
    for name in fields:
        if name.endswith("!") and item.get(name[:-1]) is None:
            place = f"{where}.{name[:-1]}"
            raise Refused(400, f"Missing required parameter: '{place}'.", place, "missing_required_parameter")
    call_id = item.get("call_id")
    if call_id is not None and not isinstance(call_id, str):
        raise Refused(400, f"Invalid type for '{where}.call_id'.", f"{where}.call_id", "invalid_type")
    if call_id is not None and len(call_id) > 64:
        message = f"Invalid '{where}.call_id': string too long. Expected a string with maximum length 64, but got a string with length {len(call_id)} instead."
        raise Refused(400, message, f"{where}.call_id", "string_above_max_length")
    for name in ("arguments", "input"):
        if kind in ("function_call", "custom_tool_call") and name in item and not isinstance(item[name], str):
            raise Refused(400, f"Invalid type for '{where}.{name}'.", f"{where}.{name}", "invalid_type")
    if kind == "message":
        _message(where, item)
    if kind == "reasoning" and not isinstance(item["summary"], list):
        raise Refused(400, f"Invalid type for '{where}.summary'.", f"{where}.summary", "invalid_type")
    return item


def _message(where: str, item: dict[str, Any]) -> None:
    role = item["role"]
    if role not in ("user", "assistant", "system", "developer"):
        raise Refused(400, f"Invalid value: '{role}'.", f"{where}.role", "invalid_value")
    content = item["content"]
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refused(400, f"Invalid type for '{where}.content'.", f"{where}.content", "invalid_type")
    allowed = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image", "input_file")
    for number, part in enumerate(content):
        place = f"{where}.content[{number}]"
        if not isinstance(part, dict) or part.get("type") not in allowed:
            kind = part.get("type") if isinstance(part, dict) else part
            named = " and ".join(f"'{name}'" for name in allowed)
            message = f"Invalid value: '{kind}'. Supported values are: {named}."
            raise Refused(400, message, f"{place}.type", "invalid_value")
        if part["type"] in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            raise Refused(
                400, f"Missing required parameter: '{place}.text'.", f"{place}.text", "missing_required_parameter"
            )


def check_items(items: list[dict[str, Any]], vault: Vault, *, org: str, base: str, lenient_ids: bool) -> None:
    """Ids, payloads and the places of items. `items` are the new ones of this request."""
    seen: set[str] = set()
    for number, item in enumerate(items):
        kind, name = item["type"], item.get("id")
        if name is not None and kind not in JOINED_BY_ID:
            if name in seen:
                message = f"Duplicate item found with id {name}. Remove duplicate items from your input and try again."
                raise Refused(400, message, "input")
            seen.add(name)
        if kind == "compaction":
            if vault.open(item["encrypted_content"], org=org, base=base, kind="compaction") is None:
                raise _unreadable(name)
            continue
        if kind == "compaction_trigger":
            if number != len(items) - 1:
                raise Refused(400, "The 'compaction_trigger' item must be the final input item.", "input")
            continue
        payload = item.get("encrypted_content")
        if kind == "reasoning" and payload is not None:
            if vault.open(payload, org=org, base=base, kind="reasoning") is None:
                raise _unreadable(name)
        elif kind == "reasoning" and (org, name) not in vault.items:
            raise _unknown_item(name)
        if name is None or kind in JOINED_BY_ID:
            continue
        if (org, name) in vault.items:
            _check_group(items, number, vault, org)
        elif not lenient_ids and (org, name) not in vault.minted:
            raise _unknown_item(name)


def _unreadable(name: Any) -> Refused:
    message = f"The encrypted content for item {name or 'in your input'} could not be verified."
    return Refused(400, message, None, "invalid_encrypted_content")


def _unknown_item(name: Any) -> Refused:
    return Refused(
        404,
        f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input.",
        "input",
    )


def _check_group(items: list[dict[str, Any]], number: int, vault: Vault, org: str) -> None:
    """Stored ids come as they were made: an item behind its reasoning, a reasoning before what followed it."""
    item = items[number]
    name, kind = item["id"], item["type"]
    needed = vault.needs.get((org, name))
    if needed and not any(other.get("id") == needed for other in items[:number]):
        raise Refused(
            400,
            f"Item '{name}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'.",
            "input",
        )
    if kind == "reasoning" and (number + 1 == len(items) or items[number + 1].get("type") == "compaction_trigger"):
        message = f"Item '{name}' of type 'reasoning' was provided without its required following item."
        raise Refused(400, message, "input")


def check_pairs(items: list[dict[str, Any]]) -> None:
    """Every call has its output behind it, every output its call before it, kinds unmixed."""
    open_calls: dict[tuple[str, Any], dict[str, Any]] = {}
    answered: set[tuple[str, Any]] = set()
    for item in items:
        kind = item["type"]
        if kind in PAIRS:
            if kind == "tool_search_call" and item.get("execution") == "server":
                continue
            key = item.get("id") if kind == "mcp_approval_request" else item.get("call_id")
            open_calls[kind, key] = item
        elif kind in OUTPUTS:
            if kind == "tool_search_output" and (item.get("execution") == "server" or item.get("call_id") is None):
                continue
            field = {"local_shell_call_output": "id", "mcp_approval_response": "approval_request_id"}.get(
                kind, "call_id"
            )
            key = item.get(field)
            call = (OUTPUTS[kind], key)
            if call not in open_calls and call not in answered:
                word = OUTPUTS[kind].replace("_", " ")
                raise Refused(400, f"No tool call found for {word} output with call_id {key}.", "input")
            open_calls.pop(call, None)
            answered.add(call)
    for (kind, key), item in open_calls.items():
        if kind == "tool_search_call" and item.get("call_id") is None:
            continue
        raise Refused(400, f"No tool output found for {kind.replace('_', ' ')} {key}.", "input")
