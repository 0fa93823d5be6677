"""Compaction passes of a window: when one is due, its request, and the effect of its answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reverie.window import cost
from reverie.window.errors import WindowRefusal
from reverie.window.estimate import PAYLOAD_TOKENS, estimate
from reverie.window.items import Item, Json, encode, payload_hash, payloads, prefix_hash

if TYPE_CHECKING:
    from reverie.window.state import WindowState

HOSTED_IDS = "hosted_ids"
COOLDOWN_MS = 60_000
COOLDOWN_GROWTH = 0.25
OVERDUE = 1.25
MOST_HALVINGS = 3
RETAINED_TOKENS = 64_000
LEAST_MESSAGES_THRESHOLD = 50_000
_PAYLOAD_PART = 10
"""Divisor for the assumed size of a payload: this part of the trigger, until a pass reports the real size."""
KINDS = {"standalone": "responses_compact", "trigger": "responses_trigger", "on_demand": "messages_compaction"}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A running pass: the prefix it may replace, and its request."""

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


def pressure(state: WindowState, extra: list[Item] | None = None) -> tuple[int, bool]:
    """(input tokens the next request takes, whether a part of it is estimated)."""
    more = extra if extra is not None else (state.pending.increment if state.pending else [])
    figure, covered = state.counted_input_tokens, state.counted_at_items
    if figure is None:
        figure, covered = state.reported_input_tokens, state.reported_at_items
    if figure is not None:
        guess = estimate([*state.items, *more][covered:], payload_tokens=state.payload_tokens, model=_model(state))
        return figure + guess, guess > 0
    form = state.pending.shape if state.pending else state.shape
    first = state.prune_from or 0
    if not first and state.last is not None and state.last.server_item:  # the chain begins there by now
        first = state.latest_compaction_index or 0
    shown = state.items[first:]
    items = estimate([*shown, *more], payload_tokens=state.payload_tokens, model=_model(state))
    return estimate(form) + items, True


def trigger_tokens(state: WindowState) -> int:
    """Input tokens at which a pass is due. A default that instructions and tools alone would reach is raised above
    them. The result stays below every size that was refused for length and, in server-side mode, within the size at
    which the provider's own compaction is overdue."""
    form = state.pending.shape if state.pending else state.shape
    window = context_window(state)
    limit = state.policy.trigger(max_output(form), model=_model(state), window=window)
    if state.policy.trigger_input_tokens is None and window is not None:
        fixed = estimate(form)
        if fixed >= limit:
            limit = fixed + window // 4
    if state.mode == "server_side" and state.policy.server_compact_threshold is not None:
        limit = min(limit, int(OVERDUE * state.policy.server_compact_threshold))
    return limit if state.refused_at_tokens is None else max(1, min(limit, state.refused_at_tokens * 8 // 10))


def sends_hosted_ids(state: WindowState) -> bool:
    """Whether this provider has refused calls of hosted tools without their `id`."""
    return state.negative.status(state.base, HOSTED_IDS) is not None


def context_window(state: WindowState) -> int | None:
    """The tokens the model of the next request takes; None when that is not known."""
    model = _model(state)
    learned = None if state.policy.context_window else state.negative.context_window(state.base, model)
    return learned or state.policy.window_of(model, state.base.kind)


def exceeds_window(state: WindowState) -> bool:
    """Whether a new item alone is longer than the model's window: no pass can help."""
    window = context_window(state)
    new = state.pending.increment if state.pending is not None else []
    counted = state.counted_input_tokens
    if window is None or (counted is not None and counted <= window and state.counted_at_items > len(state.items)):
        return False
    return any(estimate([item]) > window for item in new)


def trigger_below_shape(state: WindowState) -> bool:
    """Whether instructions and tools alone would reach the default trigger, so that it was raised."""
    form = state.pending.shape if state.pending else state.shape
    limit = state.policy.trigger(max_output(form), model=_model(state), window=context_window(state))
    return state.policy.trigger_input_tokens is None and context_window(state) is not None and estimate(form) >= limit


def server_threshold(state: WindowState) -> int:
    """Return the threshold at which the provider compacts by itself, at least the smallest that the API accepts."""
    floor = LEAST_MESSAGES_THRESHOLD if state.base.kind == "messages" else 1000
    return max(floor, state.policy.server_compact_threshold or trigger_tokens(state))


def threshold_raised(state: WindowState) -> bool:
    """Whether the policy wants the provider to compact earlier than the API allows."""
    wanted = state.policy.server_compact_threshold or trigger_tokens(state)
    return state.mode == "server_side" and state.base.kind == "messages" and wanted < server_threshold(state)


def _model(state: WindowState) -> str | None:
    form = state.pending.shape if state.pending else state.shape
    named = form.get("model")
    return named if isinstance(named, str) else state.model


def due(state: WindowState) -> str | None:
    """Return the reason why a pass is due now, or None. Call it at stable boundaries only."""
    limit = trigger_tokens(state)
    if state.reported_input_tokens is not None and state.reported_input_tokens >= limit:
        return "token_budget_pressure"
    tokens = pressure(state)[0]
    if tokens >= limit:
        return "estimated_window_pressure"
    if state.policy.rule == "cost" and state.carried > 0:
        price = cost.of_pass(state, tokens, _method(state)[0] or "standalone")
        return "token_budget_pressure" if state.carried >= price else None
    return None


def overdue(state: WindowState) -> bool:
    """Whether server-side compaction is overdue. New items do not count: the provider has not seen them."""
    if state.mode != "server_side":
        return False
    seen = state.reported_input_tokens or pressure(state, [])[0]
    return seen > OVERDUE * server_threshold(state)


def begin_round(state: WindowState) -> int:
    """A round is one model request and its answer; at most one pass runs in it."""
    state.round += 1
    state.local_ranges = []
    state.remote_compaction = None
    return state.round


def note_local(state: WindowState, first: int, last: int) -> bool:
    """Record that a local projection rewrites items `first` to `last` in this round. Returns False when a pass already
    covers them: the projection has to wait."""
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
    without: Collection[str] = (),
) -> Json | None:
    """The body of a pass, whose `attempt` says where it is sent. None without a pass: `remote_compaction` gives the
    reason, or is None when no pass was considered.

    `reason`: why, when the caller knows (`manual`, `context_window_error`); else the trigger policy decides.
    `limit`: only items before it may be compacted. `overdue`: a server-side window may be compacted after all.
    `halvings`: how often the prefix was halved because it was too long. `without`: methods to be left out. `now`:
    milliseconds, for cooldowns.
    """
    state.attempt = None
    state.remote_compaction = None
    reason = reason or due(state)
    if reason is None or state.mode == "off":
        return None
    tokens, _ = pressure(state)
    known = _facts(state, reason, tokens)
    overflowed = reason == "context_window_error"
    if exceeds_window(state):
        return _skip(state, known, "skipped_item_exceeds_window")
    if state.mode == "server_side" and not (state.dialect.mixes and (overdue or overflowed)):
        return _skip(state, known, "skipped_server_side_mode")
    if state.round and state.passed_round == state.round and not overflowed:
        return None
    if state.dialect.broken(state.items):
        return _skip(state, known, "skipped_unpaired_tool_call")
    end = _end(state, limit, halvings)
    prefix_tokens = estimate(state.items[:end], payload_tokens=state.payload_tokens)
    obstacle = _obstacle(state, reason, end, tokens, prefix_tokens, now)
    if obstacle is not None:
        return _skip(state, known, obstacle)
    known |= {"input_items": end, "retained_tail_items": len(state.items) - end}
    method, missing = _method(state, without)
    if method is None:
        status = "skipped_unsupported_endpoint"
        return _skip(state, known | {"http_status": missing[1], "endpoint_kind": KINDS[missing[0]]}, status)
    known["endpoint_kind"] = KINDS[method]
    body = state.dialect.pass_body(state, method, end)
    if isinstance(body, str):
        return _skip(state, known, body)
    state.attempt = Attempt(
        reason=reason,
        method=method,
        epoch=state.epoch,
        generation=state.generation,
        end=end,
        prefix_hash=prefix_hash(state.items[:end]),
        prefix_tokens=prefix_tokens,
        pressure=tokens,
        body=body,
        path="/responses/compact" if method == "standalone" else state.dialect.create,
        stream=method == "trigger" and state.base.kind == "codex",
        covered_first=state.epoch_position,
        covered_last=state.next_position - (len(state.items) - end) - 1,
        base=known,
    )
    state.passed_round = state.round
    return body


def _facts(state: WindowState, reason: str, tokens: int) -> dict[str, Any]:
    """Return the diagnostics of the window before a pass."""
    return {
        "trigger_reason": reason,
        "estimated_input_tokens": tokens,
        "reported_input_tokens": state.reported_input_tokens,
        "counted_input_tokens": state.counted_input_tokens,
        "trigger_input_tokens": trigger_tokens(state),
        "refused_at_tokens": state.refused_at_tokens,
        "continuation_generation": state.generation,
        "latest_compaction_index": state.latest_compaction_index,
        "request_shape_hash": state.request_shape_hash,
        "input_items": len(state.items),
    }


def _end(state: WindowState, limit: int | None, halvings: int) -> int:
    """Return the end of the prefix for a pass: the last safe boundary within the limits; 0 without one."""
    usable = len(state.items) if limit is None else min(limit, len(state.items))
    cuts = [k for k in state.dialect.boundaries(state.items) if k <= usable]
    if halvings and cuts:
        cuts = [k for k in cuts if k <= max(usable // (2**halvings), cuts[0])]
    return cuts[-1] if cuts else 0


def _obstacle(state: WindowState, reason: str, end: int, tokens: int, prefix_tokens: int, now: int) -> str | None:
    """Return the reason why a prefix is not compacted now, or None."""
    explicit = reason in ("context_window_error", "manual")
    same_model = state.model is None or _model(state) == state.model
    if not explicit and same_model and (_cooling(state, prefix_tokens, now) or not _grown(state, tokens)):
        return "skipped_cooldown"
    if state.awaiting_usage and reason != "context_window_error":
        return "skipped_cooldown"
    if end <= state.replaced:
        return "skipped_no_safe_boundary"
    if (
        not explicit
        and state.pending is not None
        and tokens - _gain(state, end, prefix_tokens) >= trigger_tokens(state)
    ):
        return "skipped_no_gain"
    if any(first < end for first, _ in state.local_ranges):
        return "skipped_local_compaction_same_round"
    return None


def count_request(state: WindowState) -> Json:
    """The body that asks for the exact tokens of the next request. After an answer it holds only the prefix that a pass
    would take, since calls behind it wait for their outputs."""
    return state.dialect.count_body(state, state.items[: _counted_end(state)])


def accept_count(state: WindowState, tokens: int) -> bool:
    """Take the provider's count. Returns whether a pass is still due; otherwise the prepared one is given up."""
    state.counted_input_tokens, state.counted_at_items = tokens, _counted_end(state)
    attempt, state.attempt = state.attempt, None
    known = {**attempt.base, "counted_input_tokens": tokens} if attempt is not None else {}
    if pressure(state)[0] < trigger_tokens(state):
        state.passed_round = None
        _skip(state, known, "skipped_below_counted")
        return False
    state.attempt = replace(attempt, base=known) if attempt is not None else None
    return True


def _counted_end(state: WindowState) -> int:
    if state.pending is not None:
        return len(state.items) + len(state.pending.increment)
    return state.attempt.end if state.attempt is not None else len(state.items)


def accept_compaction(
    state: WindowState,
    answer: str | bytes,
    *,
    http_status: int = 200,
    now: int = 0,
    note: Item | None = None,
    duration_ms: int | None = None,
) -> dict[str, Any]:
    """Take the answer to a pass, as JSON text. The window changes only when the whole answer is valid.

    Returns the diagnostics; `note` is appended to a window that was compacted.
    """
    attempt = state.attempt
    if attempt is None:
        raise ValueError("There is no pass under way. Call compaction_request first.")
    if http_status >= 300:
        return fail_compaction(state, http_status, answer, now=now, duration_ms=duration_ms)
    report = _report(attempt, http_status, duration_ms)
    judged = state.dialect.judge(state, attempt, answer)
    if judged.unsupported:
        state.negative.add(state.base, cached_as(state, attempt.method), http_status)
        return _fail(state, report, "unsupported_endpoint", None, now)
    made, tokens, replacement = judged.made, judged.tokens, judged.replacement
    hashes = [payload_hash(text) for text in payloads(made)]
    report |= {"output_items": judged.items, "compaction_items": len(made)}
    if judged.usage is not None:
        report["usage"] = judged.usage
    if judged.status is not None:
        return _fail(state, report | _present({"provider_code": judged.code}), judged.status, None, now)
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
    """Replace `items[:end]` by the result of a pass. The items that the caller repeats stay the same."""
    made = [*made, note] if note is not None else made
    state.items = [*made, *state.items[end:]]
    state.replaced = len(made)
    state.generation += 1
    state.payload_tokens = dict(tokens)
    state.response_id = state.reported_input_tokens = state.prune_from = state.replay_loss_reason = None
    state.counted_input_tokens, state.counted_at_items, state.carried = None, 0, 0.0
    state.cooldown_until_tokens = state.cooldown_until_ms = None
    state.reported_at_items = state.failures = 0
    state.awaiting_usage = state.compacted_since = True
    state.tokens_after_pass = pressure(state, [])[0]


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
    refusal = state.dialect.refusal(http_status, body)
    report = _report(attempt, http_status, duration_ms)
    status = refusal.pass_status
    if state.dialect.unsupported(attempt.method, refusal, body):
        state.negative.add(state.base, cached_as(state, attempt.method), http_status or 0)
        status = "unsupported_endpoint"
    return _fail(state, report, status, refusal, now)


def methods_left(state: WindowState, without: Collection[str] = ()) -> bool:
    """Whether any method is still worth trying here."""
    return _method(state, without)[0] is not None


def _method(state: WindowState, without: Collection[str] = ()) -> tuple[str | None, tuple[str, int]]:
    if state.mode == "server_side" and not state.dialect.mixes:
        return None, (state.dialect.pass_mode, 0)
    mode = state.dialect.pass_mode if state.mode == "server_side" else state.mode
    missing: tuple[str, int] = (mode if mode in KINDS else state.dialect.pass_mode, 0)
    for number, method in enumerate(state.policy.methods_for(state.base.kind, mode)):
        status = state.negative.status(state.base, cached_as(state, method))
        if status is None and method not in without:
            return method, missing
        if number == 0 and status is not None:
            missing = (method, status)
    return None, missing


def cached_as(state: WindowState, method: str) -> str:
    """The key of a method in the negative cache: some methods exist for some models only."""
    return f"{method} {_model(state)}" if method == "on_demand" else method


def _gain(state: WindowState, end: int, tokens: int) -> int:
    """Estimated tokens that a pass over `items[:end]` frees: the user's messages stay, and a payload is added."""
    kept = state.items[:end] if state.dialect.retains else []
    users = estimate(i for i in kept if i.type == "message" and i.value.get("role") == "user")
    made = max(state.payload_tokens.values(), default=min(PAYLOAD_TOKENS, trigger_tokens(state) // _PAYLOAD_PART))
    return tokens - min(users, RETAINED_TOKENS) - made


def _grown(state: WindowState, tokens: int) -> bool:
    """Whether the window has grown since the last pass, for a provider that reports no usage."""
    if state.tokens_after_pass is None or state.reported_input_tokens is not None or state.awaiting_usage:
        return True
    return tokens >= state.tokens_after_pass + int(trigger_tokens(state) * COOLDOWN_GROWTH)


def _cooling(state: WindowState, prefix_tokens: int, now: int) -> bool:
    if state.cooldown_until_ms is not None:
        if now and now < state.cooldown_until_ms:
            return True
        state.cooldown_until_ms = None
    if state.cooldown_until_tokens is not None:
        if prefix_tokens < state.cooldown_until_tokens:
            return True
        state.cooldown_until_tokens = None
    return False


def _skip(state: WindowState, known: Mapping[str, Any], status: str) -> Json | None:
    state.remote_compaction = {"status": status, **_present(known)}
    return None


def _report(attempt: Attempt, http_status: int | None, took: int | None) -> dict[str, Any]:
    return _present({**attempt.base, "http_status": http_status, "duration_ms": took})


def _fail(
    state: WindowState, report: dict[str, Any], status: str, refusal: WindowRefusal | None, now: int
) -> dict[str, Any]:
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
            state.cooldown_until_tokens = attempt.prefix_tokens + growth
    state.remote_compaction = report
    return report


def max_output(form: Mapping[str, Any]) -> int | None:
    """The `max_output_tokens` of a request."""
    value = form.get("max_output_tokens", form.get("max_tokens"))
    return value if isinstance(value, int) else None


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
