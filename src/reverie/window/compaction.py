"""Compaction passes of a window: when one is due, what it sends, and what its answer changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reverie.window.errors import Refusal, classify_error, refuses_trigger
from reverie.window.estimate import estimate
from reverie.window.items import Item, Json, encode, output_items, payload_hash, payloads, prefix_hash
from reverie.window.pairing import boundaries, pair
from reverie.window.prune import adjusted_cut
from reverie.window.replacement import is_ignored_trigger, replacement_items, retained_messages, validate_replacement
from reverie.window.strip import strip_for_compact, unresolved, without_message_ids

if TYPE_CHECKING:
    from reverie.window.state import WindowState

COOLDOWN_MS = 60_000
COOLDOWN_GROWTH = 0.25
OVERDUE = 1.25
MOST_HALVINGS = 3
KINDS = {"standalone": "responses_compact", "trigger": "responses_trigger"}
_COMPACT_FIELDS = ("model", "instructions", "prompt_cache_key", "service_tier")
_TRIGGER_FIELDS = (*_COMPACT_FIELDS, "tools", "parallel_tool_calls", "reasoning", "prompt_cache_retention", "text")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A pass under way: what it may replace, and what it sent."""

    reason: str
    method: str
    epoch: int
    generation: int
    end: int
    """The prefix is `items[:end]`."""
    prefix_hash: str
    prefix_tokens: int
    pressure: int
    body: Json
    path: str
    stream: bool
    covered_first: int
    covered_last: int
    base: Mapping[str, Any]
    """Diagnostics known before the call."""
    halvings: int = 0


def pressure(state: WindowState, extra: list[Item] | None = None) -> tuple[int, bool]:
    """(input tokens the next request takes, whether a part of it is estimated)."""
    more = extra if extra is not None else (state.pending.increment if state.pending else [])
    if state.reported_input_tokens is not None:
        since = [*state.items[state.reported_at_items :], *more]
        guess = estimate(since, payload_tokens=state.payload_tokens)
        return state.reported_input_tokens + guess, guess > 0
    form = state.pending.shape if state.pending else state.shape
    first = state.prune_from or 0
    if not first and state.last is not None and state.last.server_item:  # the chain begins there by now
        first = state.latest_compaction_index or 0
    shown = state.items[first:]
    return estimate(form) + estimate([*shown, *more], payload_tokens=state.payload_tokens), True


def trigger_tokens(state: WindowState) -> int:
    """Input tokens from which on a pass is due."""
    return state.policy.trigger(max_output(state.pending.shape if state.pending else state.shape))


def due(state: WindowState) -> str | None:
    """Why a pass is due now, or None. To be asked at stable boundaries only."""
    limit = trigger_tokens(state)
    if state.reported_input_tokens is not None and state.reported_input_tokens >= limit:
        return "token_budget_pressure"
    return "estimated_window_pressure" if pressure(state)[0] >= limit else None


def overdue(state: WindowState) -> bool:
    """Whether server-side compaction should have come and did not."""
    if state.mode != "server_side":
        return False
    form = state.pending.shape if state.pending else state.shape
    return pressure(state)[0] > OVERDUE * state.policy.server_threshold(max_output(form))


def begin_round(state: WindowState) -> int:
    """A round is one model request and its answer; at most one pass runs in it."""
    state.round += 1
    state.local_ranges = []
    state.remote_compaction = None
    return state.round


def note_local(state: WindowState, first: int, last: int) -> bool:
    """Record that a local projection rewrites items `first` to `last` in this round. False: a remote pass had
    them already, so it has to wait."""
    if state.passed_round == state.round and state.attempt is None and first < state.replaced:
        return False
    if state.attempt is not None and first < state.attempt.end:
        return False
    state.local_ranges.append((first, last))
    return True


def compaction_request(
    state: WindowState,
    reason: str | None = None,
    *,
    now: int = 0,
    limit: int | None = None,
    overdue: bool = False,
    halvings: int = 0,
) -> Json | None:
    """The body of a pass, with `attempt` saying where it goes; None when there is none, and then
    `remote_compaction` says why (None as well: no pass was considered).

    `reason`: why, when the caller knows; else the trigger policy decides. `limit`: only items before it may be
    compacted. `overdue`: a server-side window may be compacted from here after all.
    """
    state.attempt = None
    state.remote_compaction = None
    reason = reason or due(state)
    if reason is None or state.mode == "off":
        return None
    tokens, _ = pressure(state)
    known: dict[str, Any] = {
        "trigger_reason": reason,
        "estimated_input_tokens": tokens,
        "reported_input_tokens": state.reported_input_tokens,
        "trigger_input_tokens": trigger_tokens(state),
        "continuation_generation": state.generation,
        "latest_compaction_index": state.latest_compaction_index,
        "request_shape_hash": state.request_shape_hash,
        "input_items": len(state.items),
    }
    if state.mode == "server_side" and not overdue:
        return _skip(state, known, "skipped_server_side_mode")
    overflowed = reason == "context_window_error"
    if state.round and state.passed_round == state.round and not overflowed:
        return None
    if not halvings and (_cooling(state, tokens, now) or (state.awaiting_usage and not overflowed)):
        return _skip(state, known, "skipped_cooldown")
    usable = state.items if limit is None else state.items[:limit]
    if pair(state.items).orphans:
        return _skip(state, known, "skipped_unpaired_tool_call")
    cuts = [k for k in boundaries(state.items) if k <= len(usable)]
    if halvings and cuts:
        goal = len(usable) // (2**halvings)
        cuts = [k for k in cuts if k <= max(goal, cuts[0])]
    end = cuts[-1] if cuts else 0
    if end <= state.replaced:
        return _skip(state, known, "skipped_no_safe_boundary")
    if any(first < end for first, _ in state.local_ranges):
        return _skip(state, known, "skipped_local_compaction_same_round")
    known |= {"input_items": end, "retained_tail_items": len(state.items) - end}
    method, missing = _method(state)
    if method is None:
        status = "skipped_unsupported_endpoint"
        return _skip(state, known | {"http_status": missing[1], "endpoint_kind": KINDS[missing[0]]}, status)
    known["endpoint_kind"] = KINDS[method]
    prefix = state.items[:end]
    store = bool(state.shape.get("store", state.policy.store)) and state.base.kind != "codex"
    lookup = {item.value["id"]: item for item in state.items if isinstance(item.value.get("id"), str)}
    first = adjusted_cut(state.items, state.prune_from) if state.prune_from is not None else 0
    sent = strip_for_compact(prefix[first:], store, known=lookup)
    if store and state.replaced and not first:
        sent = [*without_message_ids(sent[: state.replaced]), *sent[state.replaced :]]
    if not store and unresolved(sent):
        return _skip(state, known, "invalid_non_persisted_item_id")
    if any(item.type == "configuration_update" for item in prefix):
        return _skip(state, known, "invalid_input")
    names = _COMPACT_FIELDS if method == "standalone" else _TRIGGER_FIELDS
    body: Json = {name: state.shape[name] for name in names if state.shape.get(name) is not None}
    if method == "trigger":
        body["store"] = store
        sent = [*sent, {"type": "compaction_trigger"}]
    body["input"] = sent
    state.attempt = Attempt(
        reason=reason,
        method=method,
        epoch=state.epoch,
        generation=state.generation,
        end=end,
        prefix_hash=prefix_hash(prefix),
        prefix_tokens=estimate(prefix, payload_tokens=state.payload_tokens),
        pressure=tokens,
        body=body,
        path="/responses/compact" if method == "standalone" else "/responses",
        stream=method == "trigger" and state.base.kind == "codex",
        covered_first=state.epoch_position,
        covered_last=state.next_position - (len(state.items) - end) - 1,
        base=known,
        halvings=halvings,
    )
    state.passed_round = state.round
    return body


def accept_compaction(
    state: WindowState,
    answer: str | bytes,
    *,
    http_status: int = 200,
    now: int = 0,
    note: Item | None = None,
    duration_ms: int | None = None,
) -> dict[str, Any]:
    """Take the answer to a pass: its JSON text. The window changes only when everything about it is right.

    Returns the diagnostics; `note` is appended to a window that was compacted.
    """
    attempt = state.attempt
    if attempt is None:
        raise ValueError("There is no pass under way. Call compaction_request first.")
    if http_status >= 300:
        return fail_compaction(state, http_status, answer, now=now, duration_ms=duration_ms)
    report = _report(attempt, http_status, duration_ms)
    if attempt.method == "trigger" and is_ignored_trigger(answer):
        state.negative.add(state.base, "trigger", http_status)
        return _fail(state, report, "unsupported_endpoint", None, now)
    items = replacement_items(answer)
    usage = _usage(answer)
    made = [item for item in items or [] if isinstance(item.value, dict) and item.is_compaction]
    spoken = usage.get("output_tokens") if usage else None
    hashes = [payload_hash(text) for text in payloads(made)]
    tokens = {digest: spoken // len(hashes) for digest in hashes} if isinstance(spoken, int) and hashes else {}
    report |= {"output_items": len(items or []), "compaction_items": len(made)}
    if usage is not None:
        report["usage"] = usage
    rejected = validate_replacement(
        answer, attempt.method, min_reduction=state.policy.min_reduction, payload_tokens=tokens
    )
    if rejected is None and items is not None:
        replacement = items
        if attempt.method == "trigger":
            kept = retained_messages(state.items[: attempt.end], state.policy.retained_message_tokens)
            replacement = [*kept, *made]
        if estimate(replacement, payload_tokens=tokens) > attempt.prefix_tokens * (1 - state.policy.min_reduction):
            rejected = "rejected_no_reduction"
    if rejected is not None:
        return _fail(state, report, rejected, None, now)
    if state.epoch != attempt.epoch or prefix_hash(state.items[: attempt.end]) != attempt.prefix_hash:
        state.attempt = None
        state.remote_compaction = report | {"status": "stale_generation"}
        return state.remote_compaction
    splice(state, replacement, attempt.end, tokens, note)
    report |= {
        "status": "compacted",
        "retained_tail_items": len(state.items) - len(replacement) - (note is not None),
        "latest_compaction_index": state.latest_compaction_index,
        "encrypted_content_hashes": hashes,
        "encrypted_content_bytes": [len(encode(text)) for text in payloads(made)],
        "continuation_generation": state.generation,
    }
    state.attempt = None
    state.remote_compaction = report
    return report


def splice(state: WindowState, made: list[Item], end: int, tokens: Mapping[str, int], note: Item | None) -> None:
    """Put what a pass made in the place of `items[:end]`. What the caller repeats stays the same."""
    made = [*made, note] if note is not None else made
    state.items = [*made, *state.items[end:]]
    state.replaced = len(made)
    state.generation += 1
    state.payload_tokens = dict(tokens)
    state.response_id = state.reported_input_tokens = state.prune_from = state.replay_loss_reason = None
    state.cooldown_until_tokens = state.cooldown_until_ms = None
    state.reported_at_items = state.failures = 0
    state.awaiting_usage = state.compacted_since = True


def fail_compaction(
    state: WindowState,
    http_status: int | None,
    body: Any = None,
    *,
    now: int = 0,
    duration_ms: int | None = None,
) -> dict[str, Any]:
    """Take the refusal of a pass, or (status None) that no answer came. The window stays as it was."""
    attempt = state.attempt
    if attempt is None:
        raise ValueError("There is no pass under way. Call compaction_request first.")
    refusal = classify_error(http_status, body)
    report = _report(attempt, http_status, duration_ms)
    status = refusal.pass_status
    if refusal.negative_cache or (attempt.method == "trigger" and refuses_trigger(refusal, body)):
        state.negative.add(state.base, attempt.method, http_status or 0)
        status = "unsupported_endpoint"
    return _fail(state, report, status, refusal, now)


def abandon(state: WindowState) -> dict[str, Any] | None:
    """The pass ended without anyone knowing how."""
    attempt, state.attempt = state.attempt, None
    if attempt is None:
        return None
    state.remote_compaction = _report(attempt, None, None) | {"status": "abandoned"}
    return state.remote_compaction


def methods_left(state: WindowState) -> bool:
    """Whether any method is still worth trying here."""
    return _method(state)[0] is not None


def _method(state: WindowState) -> tuple[str | None, tuple[str, int]]:
    mode = "standalone" if state.mode == "server_side" else state.mode
    missing: tuple[str, int] = (mode if mode in KINDS else "standalone", 0)
    for number, method in enumerate(state.policy.methods_for(state.base.kind, mode)):
        status = state.negative.status(state.base, method)
        if status is None:
            return method, missing
        if number == 0:
            missing = (method, status)
    return None, missing


def _cooling(state: WindowState, pressure: int, now: int) -> bool:
    if state.cooldown_until_ms is not None:
        if now and now < state.cooldown_until_ms:
            return True
        state.cooldown_until_ms = None
    if state.cooldown_until_tokens is not None:
        if pressure < state.cooldown_until_tokens:
            return True
        state.cooldown_until_tokens = None
    return False


def _skip(state: WindowState, known: Mapping[str, Any], status: str) -> Json | None:
    state.remote_compaction = {"status": status, **_known(known)}
    return None


def _report(attempt: Attempt, http_status: int | None, took: int | None) -> dict[str, Any]:
    return _known({**attempt.base, "http_status": http_status, "duration_ms": took})


def _fail(state: WindowState, report: dict[str, Any], status: str, refusal: Refusal | None, now: int) -> dict[str, Any]:
    attempt, state.attempt = state.attempt, None
    report["status"] = status
    if refusal is not None:
        report["error"] = str(refusal)
        if refusal.code:
            report["provider_code"] = refusal.code
    if status != "unsupported_endpoint" and attempt is not None:
        state.failures += 1
        if refusal is not None and refusal.transient:
            if state.failures >= 2:
                state.cooldown_until_ms = now + COOLDOWN_MS
        elif status in ("rejected_no_reduction", "failed_context_window") or state.failures >= 2:
            growth = int(trigger_tokens(state) * COOLDOWN_GROWTH)
            state.cooldown_until_tokens = attempt.pressure + growth
    state.remote_compaction = report
    return report


def max_output(form: Mapping[str, Any]) -> int | None:
    """The `max_output_tokens` of a request."""
    value = form.get("max_output_tokens")
    return value if isinstance(value, int) else None


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _usage(answer: str | bytes) -> Mapping[str, Any] | None:
    try:
        body, _ = output_items(answer)
    except (ValueError, RecursionError):
        return None
    usage = body.get("usage") if isinstance(body, dict) else None
    return usage if isinstance(usage, dict) else None
