"""Dreams printed for people: the estimate, the report, and the tree of sources."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reverie.api.cli.terminal import cut, many, one_line, print_fields, say, shorten_ids, steps_bar, table_width

if TYPE_CHECKING:
    from reverie.core.dream import DreamReport, Estimate, Replay
    from reverie.dreams.lineage import Why

STEPS = {
    "snapshot": "taking a snapshot",
    "distil": "distilling",
    "verify": "checking",
    "commit": "committing",
    "done": "done",
}
_EXCERPT = 100
_MOST_LEAVING = 20
FATES = ("kept", "shortened", "merged", "rolled", "outdated", "chatter", "retired")


@contextmanager
def steps() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the step of a dream on stderr, when that is a terminal; nothing otherwise."""
    with steps_bar() as bar:
        yield lambda step, done, total: bar(STEPS.get(step, step), done, total)


def say_estimate(estimate: Estimate, command: str, *, asked: int | None) -> None:
    """Print the estimate of a dream; `asked` is the budget of the command, which the policy may have lowered."""
    capped = f" (the policy dream_budget; {asked} were asked for)" if asked and asked > estimate.budget else ""
    fields: dict[str, object] = {
        "memory": estimate.ref,
        "takes": f"{many(estimate.sources, 'entry', 'entries')}, {estimate.collapsed} of them duplicates",
        "input": f"{estimate.input_tokens} tokens",
        "output": f"at most {estimate.output_tokens} tokens" if estimate.output_tokens else "no room for any",
        "budget": f"{estimate.budget} tokens{capped}; at least {estimate.minimum_required} are needed",
        "distiller": estimate.distiller,
    }
    if estimate.fates:
        fields["sources"] = ", ".join(f"{estimate.fates[fate]} {fate}" for fate in FATES if fate in estimate.fates)
        fields["hot"] = f"{estimate.hot_before} tokens now, {estimate.hot_after} then"
    if estimate.left_out:
        from reverie.core.dream import LEFT_OUT

        fields["stay out"] = ", ".join(
            f"{count} {LEFT_OUT.get(reason, reason)}" for reason, count in sorted(estimate.left_out.items())
        )
    if estimate.left_for_later:
        fields["later"] = f"{estimate.left_for_later} entries are left to the next run"
    print_fields(fields)
    if estimate.leaving:
        say("")
        say("would leave hot memory (cold storage keeps it, search finds it):")
        leaving = Counter((one_line(part.text), part.reason) for part in estimate.leaving)
        for (text, reason), count in list(leaving.items())[:_MOST_LEAVING]:
            times = f" (×{count})" if count > 1 else ""
            say(f"  - {text}{times}   ({reason})")
        if len(leaving) > _MOST_LEAVING:
            say(f"  and {len(leaving) - _MOST_LEAVING} more (--json shows them)")
    say("")
    say(
        f"Ready. Run: {command}"
        if estimate.feasible
        else _obstacle(estimate, command, capped=asked is None or bool(capped))
    )


def _obstacle(estimate: Estimate, command: str, *, capped: bool) -> str:
    from reverie.core.dream import Nothing

    if estimate.sources < 2:
        return Nothing.TOO_FEW.sentence
    if estimate.minimum_required > estimate.budget:
        raised = (
            f"reverie policy set dream_budget={estimate.minimum_required}"
            if capped
            else f"give it --budget {estimate.minimum_required} (raise the policy dream_budget where that is lower)"
        )
        return f"It does not fit: {raised}, or begin with the oldest part that fits: {command} --fit"
    return Nothing.CANNOT_BE_SMALLER.sentence


def say_report(report: DreamReport, *, undo: bool = True) -> None:
    """Print the report of a dream."""
    from reverie.core.clock import to_iso

    fates = fate_counts(report)
    fields: dict[str, object] = {
        "dream": f"{report.id} ({report.state})",
        "memory": report.ref,
        "when": f"{to_iso(report.created_at)}, log position {report.seq}",
    }
    if report.outputs:
        fields["files"] = f"{len(report.outputs)} written"
        fields["sources"] = ", ".join(f"{count} {fate}" for fate, count in fates.items()) or "none"
        print_fields(fields)
        return
    if report.output_id is None:
        fields["sources"] = f"{len(report.sources)} entries {'purged' if report.after == 'purge' else 'archived'}"
        print_fields(fields)
        return
    if report.instructions_applied is False:
        fields["instructions"] = "not used: no model wrote this text"
    fields |= {
        "took": f"{len(report.sources)} entries, {report.taken_tokens} tokens",
        "made": f"1 entry, {report.output_tokens} tokens",
        "sources": ", ".join(f"{count} {fate}" for fate, count in fates.items()),
        "lines": f"{len(report.statements)}, each traced to its sources",
        "budget": f"{report.input_tokens} in + {report.output_tokens} out = {report.tokens_used} of {report.budget}",
        "must keep": must_keep(report),
        "gates": "passed" if report.gates.get("passed") else "not recorded",
        "distiller": report.distiller + (f" (the model was not used: {report.fell_back})" if report.fell_back else ""),
        "entry": report.output_id,
        "archive": f"sha256 {report.checksum}" + (" (an identical dream's, used again)" if report.reused else ""),
    }
    print_fields(fields | _effects(report))
    if report.replay is not None and (moved := list(changed_answers(report.replay))):
        say("")
        say("questions whose answer moved")
        for line in moved:
            say(line)
    if undo and report.state == "done" and report.after != "purge":
        say("")
        say(f"the fate of each entry       reverie dream diff {report.id}")
        say(f"the source of its words      reverie dream why {report.id}")
        say(f"undo it                      reverie dream undo {report.id}")


def _effects(report: DreamReport) -> dict[str, object]:
    """The lines of a report that not every dream has."""
    fields: dict[str, object] = {}
    if report.stayed:
        fields["stayed"] = (
            f"{len(report.stayed)} entries as they were: a text would not make them smaller, or has no room for them"
        )
    if report.hot_before:
        from reverie.core.dream import ABOVE_TARGET

        fields["hot"] = f"{report.hot_before} tokens before, {report.hot_after} after ({_share(report)})"
        if report.hot_target:
            above = f"; above it because {ABOVE_TARGET[report.above_target]}" if report.above_target else ""
            fields["target"] = f"{report.hot_target} tokens{above}"
        fields["disk"] = f"{report.bytes_before + report.byte_size} bytes: the sources are kept, and the text"
    if report.probes:
        fields["answers"] = ", ".join(f"{kept} of {total} {name}" for name, (kept, total) in report.probes.items())
    if report.replay is not None:
        fields["replayed"] = _replay_line(report.replay)
    if report.spend:
        fields["cost"] = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in report.spend.items())
    if report.superseded:
        fields["replaces"] = f"{len(report.superseded)} earlier dreams"
    if report.changed_meanwhile:
        fields["left alone"] = f"{report.changed_meanwhile} entries changed meanwhile"
    if report.left_for_later:
        fields["later"] = f"{report.left_for_later} entries are left to the next run"
    return fields


_OUTCOMES = {
    "kept": "answered as before",
    "cold": "answered from cold storage",
    "deep": "found only with --deep always",
    "updated": "answered by a newer statement",
    "lost": "no longer among the first answers",
    "answered": "answered now",
    "unanswered": "without an answer, as before",
}


def _replay_line(replay: Replay) -> str:
    counts = ", ".join(f"{count} {_OUTCOMES[name]}" for name, count in replay.outcomes.items())
    number = len(replay.questions)
    skipped = f"; {replay.skipped} left out for time" if replay.skipped else ""
    return f"{number} recorded {'search' if number == 1 else 'searches'}: {counts} ({replay.milliseconds} ms{skipped})"


def changed_answers(replay: Replay) -> Iterator[str]:
    """The questions whose first answer changed its place."""
    for one in replay.questions:
        if one.outcome not in ("kept", "unanswered") or one.place not in (None, 1):
            moved = f"in place {one.place}" if one.outcome == "kept" else _OUTCOMES[one.outcome]
            yield f"  {one_line(one.question)[:_EXCERPT]}: {moved}"


def fate_counts(report: DreamReport) -> dict[str, int]:
    """Count the sources by fate; in order, without zeros."""
    fates = [source.fate for source in report.sources]
    return {fate: fates.count(fate) for fate in FATES if fate in fates}


def must_keep(report: DreamReport) -> str:
    """Summarise the outcome of the must-keep items of a dream."""
    found = report.gates.get("must_keep") or {}
    names = {"quoted": "word for word", "kept": "in other words", "missing": "left in place"}
    return ", ".join(f"{found[state]} {name}" for state, name in names.items() if found.get(state)) or "nothing"


def _share(report: DreamReport) -> str:
    return f"{report.hot_after * 100 / max(report.hot_before, 1):.0f} %"


def tree_lines(tree: Why, *, most: int | None = None, width: int = _EXCERPT) -> Iterator[str]:
    """Render an entry and, indented below it, its sources down to the original words."""
    short = shorten_ids(list(_ids(tree)))
    yield _fit(_node(tree, width, short))
    yield from _below(tree.sources, "", most, width, short)


def _ids(tree: Why) -> Iterator[str]:
    yield tree.id
    for source in tree.sources:
        yield from _ids(source)


def _below(
    sources: Sequence[Why], indent: str, most: int | None, width: int, short: Mapping[str, str]
) -> Iterator[str]:
    shown = sources if most is None else sources[:most]
    hidden = len(sources) - len(shown)
    for at, source in enumerate(shown):
        last = at == len(shown) - 1 and not hidden
        yield _fit(f"{indent}{'└─ ' if last else '├─ '}{_node(source, width, short)}")
        yield from _below(source.sources, indent + ("   " if last else "│  "), most, width, short)
    if hidden:
        yield f"{indent}└─ and {hidden} more (--all shows them)"


def _fit(line: str) -> str:
    """Cut a line to the width of the terminal; leave it whole in a pipe."""
    return cut(line, table_width()) if sys.stdout.isatty() else line


def _node(tree: Why, width: int, short: Mapping[str, str]) -> str:
    from reverie.core.clock import to_iso

    text = "(its text was destroyed)" if tree.content is None else one_line(tree.content)
    if len(text) > width:
        text = text[: width - 1] + "…"
    speaker = f"{tree.actor}: " if tree.actor and tree.kind != "dream" else ""
    mark = f"[{tree.kind}] " if tree.kind == "dream" else ""
    return f"{to_iso(tree.created_at)[:10]}  {short[tree.id]}  {mark}{speaker}{text}"
