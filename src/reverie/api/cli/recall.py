"""search and context: find entries."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from reverie.api.cli.command import Argument, Option
from reverie.api.cli.entries import ANY, EntryFilter
from reverie.api.cli.session import DEFAULT_REF, HERE, At, Ref
from reverie.api.cli.terminal import many, neutral, note, print_json, print_table, say, shorten_ids

if TYPE_CHECKING:
    from reverie.memory.hits import Hit
    from reverie.search.explain import Explanation, ScoredHit


_LINES = 3
"""Lines that the text of a hit may take on a terminal."""
_EXCERPT = 60
"""Characters of a hit that are seen in a narrow table: a longer text begins with the sentence that answers."""


class Mode(StrEnum):
    """Search mode."""

    hybrid = "hybrid"
    words = "words"
    meaning = "meaning"


class Deep(StrEnum):
    """Whether to search cold storage."""

    auto = "auto"
    never = "never"
    always = "always"


def search(
    query: Annotated[str, Argument(metavar="QUERY")],
    ref: Ref = DEFAULT_REF,
    limit: Annotated[int, Option("--limit", "-n", metavar="N", help="Number of hits, 200 at most.")] = 10,
    mode: Annotated[Mode, Option(help="By words, by meaning, or both.")] = Mode.hybrid,
    explain: Annotated[bool, Option("--explain", help="Explain the rank of each hit.")] = False,
    superseded: Annotated[
        bool, Option("--superseded", help="Also entries that were replaced, after their successors.")
    ] = False,
    zone: Annotated[
        str | None, Option(metavar="NAME", help="Time zone of dates in the query; by default this machine's.")
    ] = None,
    deep: Annotated[
        Deep, Option(help="Search the sources of dreams: only when nothing else answers well, never, or always.")
    ] = Deep.auto,
    where: EntryFilter = ANY,
    at: At = HERE,
) -> None:
    """Find the entries that best answer a query.

    \b
    Examples:
      reverie search "how to reach the customer" --ref support-bot
      reverie search "invoice" --explain
    """
    from reverie.core.clock import local_zone
    from reverie.search.passages import excerpt

    with at.session(ref=ref) as opened:
        found = opened.host.search.search(
            opened.actor,
            ref,
            query,
            where=where.filter(),
            limit=limit,
            mode=mode.value,
            explain=explain,
            include="superseded" if superseded else None,
            zone=zone or local_zone(),
            deep=deep.value,
        )
        if not found.hits:
            opened.check_ref(ref)
    if at.json:
        from reverie.api.views import search_document

        print_json({**search_document(found), "explanation": found.explanation})
        return
    short = shorten_ids([hit.entry.id for hit in found.hits])
    rows = [
        (at, _sure(hit), short[hit.entry.id], neutral(excerpt(hit.text, query, width=_EXCERPT)))
        for at, hit in enumerate(found.hits, 1)
    ]
    print_table(
        ["#", "confidence", "id", "content"],
        rows,
        stretch="content",
        keep=("id", "confidence"),
        lines=_LINES,
        empty=f"Nothing found in the memory {ref}. The memories that have entries: reverie refs",
    )
    if found.hits and all(hit.weak for hit in found.hits):
        note(f"Nothing in the memory {ref} answers this well; these are the closest entries.")
    if found.explanation is not None:
        _print_explanation(found.explanation)
    _note_degraded(found.degraded)


def context(
    purpose: Annotated[str, Argument(metavar="PURPOSE", help="A question, or what the entries are needed for.")],
    ref: Ref = DEFAULT_REF,
    budget: Annotated[
        int, Option("--budget", "-b", metavar="TOKENS", help="Most tokens that the block may take.")
    ] = 2000,
    where: EntryFilter = ANY,
    at: At = HERE,
) -> None:
    """Pack the best entries for a purpose into a token budget.

    The text is ready to paste into a prompt: entries are quoted as data, not as instructions.

    \b
    Example:
      reverie context "answer the customer's complaint" --budget 500 --ref support-bot
    """
    with at.session() as opened:
        packed = opened.host.search.context(opened.actor, ref, purpose, budget=budget, where=where.filter())
        if not packed.included:
            opened.check_ref(ref)
    if at.json:
        print_json(packed)
        return
    if packed.text:
        say(packed.text)
    else:
        over = sum(one.reason == "over budget" for one in packed.left_out)
        note(
            f"{many(over, 'entry', 'entries')} would answer, but {budget} tokens have no room for the shortest. "
            "Raise --budget."
            if over
            else f"Nothing in the memory {ref} answers this well enough. `reverie search` also shows weak hits."
        )
    left = f", {len(packed.left_out)} left out" if packed.left_out else ""
    note(f"{packed.tokens} of {budget} tokens, {many(len(packed.included), 'entry', 'entries')}{left}")
    _note_degraded(packed.degraded)


def _sure(hit: Hit) -> str:
    """The confidence of a hit, with remarks such as `cold` and `weak`."""
    mark = "weak" if hit.weak else "superseded" if hit.superseded_by else "older" if hit.older else ""
    return " ".join(part for part in (f"{hit.confidence:.3f}", "cold" if hit.cold else "", mark) if part)


def _print_explanation(why: Explanation) -> None:
    say("")
    say(f"words looked for: {', '.join(why.terms) or 'none'}; candidates considered: {why.cut.considered}")
    for reading in why.read:
        say(reading)
    shown = (*why.hits, *why.near_misses)
    short = shorten_ids([hit.id for hit in shown])
    for hit in why.hits:
        say(f"{hit.rank}. {short[hit.id]}: {'; '.join(hit.why) or 'nothing speaks for it'}")
    say("")
    signals = sorted({name for hit in shown for name, value in hit.signals.items() if value})
    rows = [_explanation_row(hit, short[hit.id], signals) for hit in why.hits]
    rows += [("-", *_explanation_row(hit, short[hit.id], signals)[1:]) for hit in why.near_misses]
    columns = ["#", "id", "score", *signals, "found by", "words matched"]
    print_table(columns, rows, stretch="words matched", keep=("id", "score"), empty="No candidates.")
    if why.near_misses:
        note("Rows marked - came after the limit.")
    for dropped in why.filtered:
        note(f"left out {dropped.id}: {dropped.reason}")


def _explanation_row(hit: ScoredHit, shown_id: str, signals: list[str]) -> tuple[Any, ...]:
    values = [f"{hit.signals[name]:.3f}" if name in hit.signals else "" for name in signals]
    return hit.rank, shown_id, f"{hit.score:.3f}", *values, ", ".join(hit.found_by), ", ".join(hit.matched_terms)


def _note_degraded(reasons: Any) -> None:
    if reasons:
        note(f"This answer may be worse than usual: {', '.join(reasons)}. See: reverie doctor")
