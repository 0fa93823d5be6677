"""The emulated provider without its socket: what it answers, what it bills, what it remembers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tests.responses_emulator import rules
from tests.responses_emulator.model import Model, Output, Turn, known, segments, talker, text_of, weigh
from tests.responses_emulator.rules import Refused
from tests.responses_emulator.vault import Sealed, Vault, count

MODEL = "gpt-5.6-sol"
MODELS = (MODEL, "gpt-5.4", "gpt-5.3-codex-spark", "gpt-4.1")


@dataclass
class Reading:
    """A request understood: the whole context, the new items, and their weight."""

    body: dict[str, Any]
    org: str
    base: str
    items: list[dict[str, Any]]
    new: list[dict[str, Any]]
    pieces: list[tuple[str, int]]
    trigger: bool = False

    @property
    def tokens(self) -> int:
        return sum(tokens for _, tokens in self.pieces)


class Provider:
    """Behaviour is a matter of attributes: set them, or hand in another model."""

    def __init__(self, *, context: int = 128_000, model: Model = talker) -> None:
        self.vault = Vault()
        self.context = context
        self.model = model
        self.models: tuple[str, ...] = MODELS
        self.compaction_tokens = 400
        """What a compaction payload weighs in the prompt, at most a tenth of what it stands for."""
        self.retained_tokens = 64_000
        self.keeps_assistant_ids = False
        """Compact outputs hold assistant messages with their ids and without their reasoning."""
        self.trigger = "supported"
        """supported, refused (as an invalid value) or ignored (answered with a message)."""
        self.server_place = "before"
        """Where server-side compaction puts its item: before or after the rest."""
        self.server_passes = 1
        self.server_skips_tool_turns = False
        self.lenient_ids = False
        """Accept ids that are not stored on items that are complete in themselves."""
        self.cache_least = 1024
        self.turns = 0
        self.conversations: dict[str, list[dict[str, Any]]] = {}
        """What is kept at the provider, by the id that a caller gave it."""
        self.polls = 1
        """How often an answer in the background is asked for before it is there."""
        self.waiting: dict[str, int] = {}
        self.known: dict[str, tuple[dict[str, Any], list[tuple[str, int]], set[str]]] = {}

    # -- reading a request ---------------------------------------------------------------------------------------

    def read(self, body: Any, allowed: frozenset[str], *, org: str, base: str) -> Reading:
        """Check a request as far as it can be checked without answering it."""
        if base == "codex" and isinstance(body, dict):
            self._check_codex(body)
        body = rules.check_body(body, allowed, self.models)
        chain = self._chain(body, org)
        if "input" not in body and "previous_response_id" not in body and "prompt" not in body:
            raise Refused(400, "Missing required parameter: 'input'.", "input", "missing_required_parameter")
        new = [self._expand(item, org) for item in rules.read_input(body)]
        if any(item["type"] == "compaction_trigger" for item in new) and self.trigger == "refused":
            raise Refused(400, "Invalid value: 'compaction_trigger'.", "input", "invalid_value")
        rules.check_items(new, self.vault, org=org, base=base, lenient_ids=self.lenient_ids)
        trigger = bool(new) and new[-1]["type"] == "compaction_trigger"
        items = chain + (new[:-1] if trigger else new)
        rules.check_pairs(items)
        updates = any(item["type"] == "configuration_update" for item in items)
        if updates and (allowed is rules.COMPACT or "context_management" in body or trigger):
            raise Refused(400, "Compaction is not supported with 'configuration_update' items.", "input")
        if not items and "prompt" not in body:
            raise Refused(400, "Invalid 'input': the conversation is empty.", "input", "invalid_value")
        return Reading(body, org, base, items, new, segments(body, items, self.vault), trigger)

    def _check_codex(self, body: dict[str, Any]) -> None:
        if body.get("stream") is not True:
            raise Refused(400, "Stream must be set to true")
        if body.get("store") is not False:
            raise Refused(400, "Store must be set to false")
        if not body.get("instructions"):
            raise Refused(400, "Instructions are required")
        for name in ("previous_response_id", "max_output_tokens"):
            if name in body:
                raise Refused(400, f"Unsupported parameter: {name}")

    def _chain(self, body: dict[str, Any], org: str) -> list[dict[str, Any]]:
        """The context a chained request goes on from. Only what was stored by the same account can be gone on from."""
        name = body.get("previous_response_id")
        if body.get("conversation") is not None:
            return list(self.conversations.get(str(body["conversation"]), []))
        if name is None:
            return []
        found = self.vault.stored.get(name)
        if found is None or found.org != org or body.get("store") is False:
            message = f"Previous response with id '{name}' not found."
            raise Refused(400, message, "previous_response_id", "previous_response_not_found")
        return list(found.context)

    def _expand(self, item: dict[str, Any], org: str) -> dict[str, Any]:
        if item["type"] != "item_reference":
            return item
        if (org, item["id"]) not in self.vault.items:
            raise rules._unknown_item(item["id"])
        return self.vault.items[org, item["id"]]

    def fits(self, reading: Reading) -> None:
        if reading.tokens + int(reading.body.get("max_output_tokens", 0)) > self.context:
            raise Refused(
                400,
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "input",
                "context_length_exceeded",
            )

    # -- answers -------------------------------------------------------------------------------------------------

    def create(self, reading: Reading) -> dict[str, Any]:
        """A response; stored when asked to be."""
        self.fits(reading)
        body, org = reading.body, reading.org
        facts, outputs = known(reading.items, self.vault)
        with self.vault.lock:
            self.turns += 1
            turn = Turn(self.turns, reading.items, body, facts, outputs)
        if reading.trigger and self.trigger == "supported":
            output = [self._compaction(reading, server=False)]
        else:
            output = [self._made(item, reading) for item in self.model(turn)]
            output = self._managed(reading, output)
        response = self._response(reading, output)
        context = self._after(reading.items, output)
        if body.get("store", True):
            self.vault.keep(org, context, response)
        if body.get("conversation") is not None:
            self.conversations[str(body["conversation"])] = context
        self.vault.warm(self._cache_key(reading), segments(body, reading.items + output, self.vault))
        with self.vault.lock:
            payloads = {item["encrypted_content"] for item in reading.items if item["type"] == "compaction"}
            self.known[response["id"]] = (body, reading.pieces, payloads)
        return response

    def compact(self, reading: Reading) -> dict[str, Any]:
        """The whole next window: retained messages and one compaction item. Nothing is stored."""
        self.fits(reading)
        kept: list[dict[str, Any]] = []
        left = self.retained_tokens
        for item in reversed(reading.items):
            wanted = item.get("role") == "user" or (self.keeps_assistant_ids and item.get("role") == "assistant")
            if item["type"] != "message" or not wanted:
                continue
            left -= weigh(item, self.vault)
            if left < 0:
                break
            kept.append(self._retained(item, reading.org))
        compaction = self._compaction(reading, server=False)
        usage = self._usage(reading, self.vault.sealed[compaction["encrypted_content"]].tokens)
        return {
            "id": self.vault.new_id("resp"),
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*reversed(kept), compaction],
            "usage": usage,
        }

    def _retained(self, item: dict[str, Any], org: str) -> dict[str, Any]:
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        content = item["content"]
        if isinstance(content, str):
            content = [{"type": kind, "text": content}]
        name = item.get("id") if item["role"] == "assistant" else None
        name = name or self.vault.new_id("msg")
        self.vault.minted.add((org, name))
        return {"id": name, "type": "message", "status": "completed", "role": item["role"], "content": content}

    def _compaction(self, reading: Reading, *, server: bool) -> dict[str, Any]:
        facts, outputs = known(reading.items, self.vault)
        tokens = max(8, min(self.compaction_tokens, reading.tokens // 10))
        what = Sealed(reading.org, reading.base, "compaction", tokens, tuple(facts), outputs, server)
        return {"id": self.vault.new_id("cmp"), "type": "compaction", "encrypted_content": self.vault.seal(what)}

    def _managed(self, reading: Reading, output: Output) -> Output:
        """Server-side compaction, when asked for and due."""
        managed = reading.body.get("context_management")
        least = min((entry.get("compact_threshold", 200_000) for entry in managed), default=None) if managed else None
        only_calls = all(item["type"] in ("function_call", "reasoning") for item in output)
        if least is None or reading.tokens <= least or (only_calls and self.server_skips_tool_turns):
            return output
        made = [self._compaction(reading, server=True) for _ in range(self.server_passes)]
        return made + output if self.server_place == "before" else output + made

    def _after(self, items: list[dict[str, Any]], output: Output) -> list[dict[str, Any]]:
        """What a chain goes on from: everything since the newest compaction by the server itself."""
        whole = [*items, *output]
        for place in range(len(whole) - 1, -1, -1):
            if whole[place]["type"] == "compaction" and self.vault.sealed[whole[place]["encrypted_content"]].server:
                moved = [item for item in whole[:place] if item in output and item["type"] != "compaction"]
                return [whole[place], *moved, *whole[place + 1 :]]
        return whole

    def _made(self, item: dict[str, Any], reading: Reading) -> dict[str, Any]:
        """An output item with its id, status and payload."""
        kind = item["type"]
        if kind == "message" and "text" in item:
            part = {"type": "output_text", "text": item["text"], "annotations": [], "logprobs": []}
            more = {name: value for name, value in item.items() if name not in ("type", "text")}
            return {
                "id": self.vault.new_id("msg"),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [part],
                **more,
            }
        if kind == "reasoning" and "tokens" in item:
            what = Sealed(reading.org, reading.base, "reasoning", item["tokens"])
            payload = self.vault.seal(what)
            return {"id": self.vault.new_id("rs"), "type": kind, "summary": [], "encrypted_content": payload}
        if kind == "function_call":
            return {
                "id": self.vault.new_id("fc"),
                "type": kind,
                "status": "completed",
                "call_id": self.vault.new_id("call"),
                **{name: value for name, value in item.items() if name != "type"},
            }
        return {"id": self.vault.new_id("item"), **item}

    def _cache_key(self, reading: Reading) -> str:
        return f"{reading.org}/{reading.base}/{reading.body.get('prompt_cache_key', '')}"

    def _usage(self, reading: Reading, written: int, thought: int = 0) -> dict[str, Any]:
        cached = self.vault.cached(self._cache_key(reading), reading.pieces, least=self.cache_least)
        return {
            "input_tokens": reading.tokens,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": reading.tokens - cached},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": reading.tokens + written,
        }

    def _response(self, reading: Reading, output: Output) -> dict[str, Any]:
        body = reading.body
        written = sum(weigh(item, self.vault) for item in output)
        thought = sum(weigh(item, self.vault) for item in output if item["type"] == "reasoning")
        usage = self._usage(reading, written, thought)
        cut = "max_output_tokens" in body and written > body["max_output_tokens"]
        answer: dict[str, Any] = {
            "id": self.vault.new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "status": "incomplete" if cut else "completed",
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "model": body["model"],
            "output": output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": body.get("previous_response_id"),
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": {"effort": None, "summary": None},
            "service_tier": "default",
            "store": body.get("store", True),
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": body.get("tools", []),
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": usage,
            "metadata": {},
        }
        compared = body.get("prompt_cache_options", {}).get("comparison_response_id")
        if compared is not None:
            answer["prompt_cache_diagnostics"] = self._diagnose(reading, compared, usage)
        return answer

    def _diagnose(self, reading: Reading, compared: str, usage: dict[str, Any]) -> dict[str, Any]:
        if compared not in self.known:
            return {"type": "comparison_response_not_found"}
        body, pieces, payloads = self.known[compared]
        if usage["input_tokens_details"]["cached_tokens"] * 2 >= sum(tokens for _, tokens in pieces):
            return {"type": "cache_hit"}
        reason = "input_changed"
        for name, word in (("model", "model"), ("prompt_cache_key", "prompt_cache_key"), ("tools", "tools")):
            if body.get(name) != reading.body.get(name):
                reason = f"{word}_changed"
                break
        else:
            if {i["encrypted_content"] for i in reading.items if i["type"] == "compaction"} - payloads:
                reason = "context_compacted"
        missed = reading.tokens - usage["input_tokens_details"]["cached_tokens"]
        return {"type": "cache_miss", "reason": reason, "cache_missed_tokens": missed}


__all__ = ["MODEL", "MODELS", "Provider", "Reading", "count", "text_of"]
