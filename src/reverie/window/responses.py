"""The Responses API, as a window talks to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reverie.window import compaction as passes
from reverie.window.cache import options_of, provider_word, supports_comparison
from reverie.window.continuation import ExpectedItem, match_form, matches
from reverie.window.dialect import Dialect, PassVerdict, Read
from reverie.window.errors import WindowRefusal, classify_error, refuses_trigger
from reverie.window.estimate import estimate
from reverie.window.items import Item, Json, by_id, developer_note, input_items, output_items, payload_hash, payloads
from reverie.window.pairing import adjusted_cut, boundaries, pair
from reverie.window.replacement import is_ignored_trigger, replacement_items, retained_messages, validate_replacement
from reverie.window.streaming import Streaming
from reverie.window.strip import has_references, strip_for_compact, without_message_ids

if TYPE_CHECKING:
    from reverie.window.compaction import Attempt
    from reverie.window.state import WindowState
    from reverie.window.turn import Pending

_COMPACT_FIELDS = ("model", "instructions", "prompt_cache_key", "service_tier")
_COUNT_FIELDS = (
    "model",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
)
_TRIGGER_FIELDS = (*_COMPACT_FIELDS, "tools", "parallel_tool_calls", "reasoning", "prompt_cache_retention", "text")


class Responses(Dialect):
    """Items in, items out; chains, and two methods of compaction."""

    create = "/responses"
    count = "/responses/input_tokens"
    server_kind = "responses_context_management"
    pass_mode = "standalone"
    mixes = True
    retains = True

    def items(self, given: Any) -> list[Item]:
        return input_items(given)

    def forms(self, items: Iterable[Item]) -> list[Any]:
        return match_form(items)

    def matches(self, items: Iterable[Item], *, returned: bool) -> list[ExpectedItem]:
        return matches(items, returned=returned)

    def boundaries(self, items: Sequence[Item]) -> list[int]:
        return boundaries(items)

    def broken(self, items: Sequence[Item]) -> bool:
        return bool(pair(items).orphans)

    def foreign(self, items: Sequence[Item], params: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        chained = params.get("previous_response_id") is not None or params.get("conversation") is not None
        return "client_managed_chain" if chained else None

    def body(self, state: WindowState, params: Mapping[str, Any]) -> Json:
        pending = state.answerable()
        added = {"input", "previous_response_id", "context_management", "prompt_cache_options"} - pending.shape.keys()
        body = {key: value for key, value in params.items() if key not in added}
        body["store"] = pending.store
        if pending.chained:
            body["previous_response_id"] = state.response_id
            body["input"] = state.sendable(pending.increment, pending.store)
        else:
            known = pending.store and state.all_stored
            body["input"] = state.sendable([*state.items, *pending.increment], known, cut=True)
        plain = all(item.type != "configuration_update" for item in [*state.items, *pending.increment])
        if state.mode == "server_side" and "context_management" not in pending.shape and plain:
            threshold = passes.server_threshold(state)
            body["context_management"] = [{"type": "compaction", "compact_threshold": threshold}]
        compared = _comparison(state, pending)
        readable = options_of(pending.shape) or not pending.shape.get("prompt_cache_options")
        if compared is not None and readable and supports_comparison(body.get("model")):
            body["prompt_cache_options"] = {"comparison_response_id": compared, **options_of(pending.shape)}
        return body

    def betas(self, state: WindowState, *, is_pass: bool = False) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def read(self, text: str | bytes, items: Sequence[Item] | None = None) -> Read | None:
        body, output = output_items(text)
        given, named = list(items or ()), output or []
        output = given if len(given) >= len(named) else named  # a stream that is resumed brings only the later ones
        status = body.get("status", "completed") if isinstance(body, dict) else "failed"
        if not isinstance(body, dict) or status not in ("completed", "incomplete") or body.get("error"):
            return None
        completed = status == "completed"
        usage = body.get("usage") if isinstance(body.get("usage"), dict) else None
        reported = usage.get("input_tokens") if usage else None
        return Read(
            completed,
            output if completed else _presentable(output),
            id=body.get("id") if isinstance(body.get("id"), str) else None,
            usage=usage,
            reported=reported if isinstance(reported, int) else None,
            word=provider_word(body),
        )

    def paused(self, text: str) -> bool:  # noqa: ARG002
        return False

    def reading(self) -> Streaming:
        return Streaming()

    def count_body(self, state: WindowState, items: Sequence[Item]) -> Json:
        form = state.pending.shape if state.pending else state.shape
        body = {name: form[name] for name in _COUNT_FIELDS if form.get(name) is not None}
        if state.pending is not None:
            sent = state.pending.body
            return body | {name: sent[name] for name in ("input", "previous_response_id") if name in sent}
        return body | {"input": state.sendable(items, _sends_ids(state, form), cut=True)}

    def pass_body(self, state: WindowState, method: str, end: int) -> Json | str:
        prefix = state.items[:end]
        store = _sends_ids(state, state.shape)
        begin = state.prune_from
        latest = state.latest_compaction_index
        if begin is None and state.mode == "server_side" and latest is not None and latest >= state.replaced:
            begin = latest  # a chain begins there
        first = adjusted_cut(state.items, begin) if begin is not None and begin < end else 0
        sent = strip_for_compact(
            prefix[first:], store, known=by_id(state.items), hosted_ids=passes.sends_hosted_ids(state)
        )
        if store and state.replaced and not first:
            sent = [*without_message_ids(sent[: state.replaced]), *sent[state.replaced :]]
        if not store and has_references(sent):
            return "invalid_non_persisted_item_id"
        if any(item.type == "configuration_update" for item in prefix):
            return "invalid_input"
        names = _COMPACT_FIELDS if method == "standalone" else _TRIGGER_FIELDS
        body: Json = {name: state.shape[name] for name in names if state.shape.get(name) is not None}
        if method == "trigger":
            body["store"] = store
            sent = [*sent, {"type": "compaction_trigger"}]
        body["input"] = sent
        return body

    def judge(self, state: WindowState, attempt: Attempt, answer: str | bytes) -> PassVerdict:
        if attempt.method == "trigger" and is_ignored_trigger(answer):
            return PassVerdict("unsupported_endpoint", unsupported=True)
        items = replacement_items(answer)
        usage = _usage(answer)
        made = [item for item in items or [] if isinstance(item.value, dict) and item.is_compaction]
        spoken = usage.get("output_tokens") if usage else None
        hashes = [payload_hash(text) for text in payloads(made)]
        tokens = {digest: spoken // len(hashes) for digest in hashes} if isinstance(spoken, int) and hashes else {}
        rejected = validate_replacement(
            answer, attempt.method, min_reduction=state.policy.min_reduction, payload_tokens=tokens
        )
        replacement = items or []
        if rejected is None and attempt.method == "trigger":
            kept = retained_messages(state.items[: attempt.end], state.policy.retained_message_tokens)
            replacement = [*kept, *made]
        if rejected is None and estimate(replacement, payload_tokens=tokens) > attempt.prefix_tokens * (
            1 - state.policy.min_reduction
        ):
            rejected = "rejected_no_reduction"
        return PassVerdict(rejected, replacement, made, len(items or []), usage, tokens)

    def refusal(self, status: int | None, body: Any) -> WindowRefusal:
        return classify_error(status, body)

    def unsupported(self, method: str, refusal: WindowRefusal, body: Any) -> bool:
        return refusal.negative_cache or (method == "trigger" and refuses_trigger(refusal, body))

    def note(self, text: str) -> Item:
        return developer_note(text)

    def readable(self, items: Sequence[Item]) -> list[Item]:
        return list(items)

    def restored(self, items: Sequence[Item]) -> list[Item]:
        return list(items)


def _comparison(state: WindowState, pending: Pending) -> str | None:
    """The response that the provider is asked to compare this request with: the last one, when this request is known
    to lose the cache; else the one before a loss that was seen afterwards."""
    if state.last is None or state.negative.status(state.base, "comparison") is not None:
        return None
    sent = [item.hash for item in state.items]
    lost = state.compacted_since or state.reset_since or state.last.server_item or pending.changed_keys
    if lost or sent[: len(state.last.sent)] != state.last.sent:
        return state.last_response_id
    return state.compare_with


def _sends_ids(state: WindowState, form: Mapping[str, Any]) -> bool:
    """Whether items are sent with the ids that the provider gave them."""
    wanted = bool(form.get("store", state.policy.store)) and state.base.kind != "codex"
    return wanted and state.all_stored


def _usage(answer: str | bytes) -> Mapping[str, Any] | None:
    try:
        body, _ = output_items(answer)
    except (ValueError, RecursionError):
        return None
    usage = body.get("usage") if isinstance(body, dict) else None
    return usage if isinstance(usage, dict) else None


def _presentable(output: Sequence[Item]) -> list[Item]:
    """Return the part of an incomplete answer that may be sent back: no half-written call, no reasoning at its end."""
    kept = [
        item
        for item in output
        if not (item.type.endswith("_call") and item.value.get("status") in ("incomplete", "in_progress"))
    ]
    while kept and kept[-1].type == "reasoning":
        kept.pop()
    return kept
