"""reverie dream ...: distil many entries into one, inspect the result, and undo it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from reverie.api.cli.command import Argument, Exit, Group, Option
from reverie.api.cli.report import say_estimate, say_report, steps, tree_lines
from reverie.api.cli.session import DEFAULT_REF, HERE, AnyRef, At, Options, Ref, Tags, age
from reverie.api.cli.terminal import note, one_line, print_json, print_table, say, shorten_ids

if TYPE_CHECKING:
    from reverie.core.dream import DreamPlan

app = Group("Distil many entries into few, under a token budget; trace and undo it.")

_SHOWN = 20
Id = Annotated[str, Argument(metavar="DREAM", help="The id of a dream, a unique beginning of it, or `last`.")]
Budget = Annotated[
    int | None,
    Option("--budget", "-b", metavar="TOKENS", help="Most tokens, input plus output; the policy is default and limit."),
]
Fit = Annotated[
    bool,
    Option("--fit", help="Begin with the oldest part that fits; run again for the rest. Default without --budget."),
]
OlderThan = Annotated[
    str | None, Option("--older-than", metavar="AGE", help="Only entries older than this: 7d, 12h, a date.")
]
Kinds = Annotated[list[str], Option("--kind", metavar="KIND", help="Only entries of this kind; may be repeated.")]
InSession = Annotated[str | None, Option("--session", metavar="ID", help="Only entries of this session.")]
After = Annotated[
    str,
    Option(
        "--after",
        metavar="cold|archive|purge",
        help="Move the sources to cold storage, archive them, or destroy them now.",
    ),
]
Distiller = Annotated[
    str | None,
    Option(
        "--distiller",
        metavar="NAME",
        help="extractive, llm, or none (only archive or purge); default: the policy's.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class PlanOptions(Options):
    """The options that describe a dream."""

    ref: Ref = DEFAULT_REF
    budget: Budget = None
    fit: Fit = False
    older_than: OlderThan = None
    kind: Kinds = field(default_factory=list)
    tag: Tags = field(default_factory=list)
    in_session: InSession = None
    after: After = "cold"
    distiller: Distiller = None

    def plan(self) -> DreamPlan:
        """The plan that the options describe."""
        from reverie.core.dream import After as Fate
        from reverie.core.dream import DreamPlan, Selector
        from reverie.core.errors import Invalid

        if self.after not in list(Fate):
            raise Invalid(f"--after is one of {', '.join(Fate)}.")
        if any(not tag.strip() for tag in self.tag):
            raise Invalid("--tag is empty: give it a value, or leave the option out.")
        return DreamPlan(
            ref=self.ref,
            selector=Selector(
                kinds=tuple(self.kind) or None,
                tags=tuple(self.tag),
                session=self.in_session,
                older_than_ms=age(self.older_than, "--older-than"),
            ),
            budget=self.budget,
            distiller=self.distiller,
            after=Fate(self.after),
            fit=self.fit or self.budget is None,
        )


DEFAULTS = PlanOptions()


@app.command("plan")
def plan(options: PlanOptions = DEFAULTS, at: At = HERE) -> None:
    """Show what a dream would do, and change nothing.

    \b
    Example:
      reverie dream plan --ref support-bot --budget 4000
    """
    from reverie.api.views import estimate_document

    wanted = options.plan()
    with at.session() as opened:
        estimate = opened.host.dreams.plan(opened.actor, wanted)
        if not estimate.sources:
            opened.check_ref(options.ref)
    if at.json:
        print_json(estimate_document(estimate))
    else:
        say_estimate(estimate, _command(wanted, options.older_than, at), asked=options.budget)


@app.command("run")
def run(options: PlanOptions = DEFAULTS, at: At = HERE) -> None:
    """Run a dream, all or nothing, and show its report.

    Pinned and held entries stay as they are. When there is nothing to do, it says so and exits 0.

    \b
    Examples:
      reverie dream run --ref support-bot --budget 8000
      reverie dream run --ref support-bot --fit --older-than 7d
    """
    from reverie.api.views import nothing_document, report_document
    from reverie.core.dream import Nothing

    wanted = options.plan()
    with at.session() as opened, steps() as progress:
        made = opened.host.dreams.attempt(opened.actor, wanted, progress=progress)
        if isinstance(made, Nothing):
            opened.check_ref(options.ref)
    if at.json:
        print_json(nothing_document(made) if isinstance(made, Nothing) else report_document(made))
    elif isinstance(made, Nothing):
        say(f"{made.sentence} Why: reverie dream plan --ref {options.ref}")
    else:
        say_report(made)


@app.command("list")
def list_dreams(
    ref: AnyRef = None,
    limit: Annotated[int, Option("--limit", "-n", metavar="N", least=1, most=10_000, help="Number of dreams.")] = 20,
    at: At = HERE,
) -> None:
    """List dreams, newest first.

    \b
    Example:
      reverie dream list --ref support-bot
    """
    from reverie.api.views import report_document
    from reverie.core.clock import to_iso

    with at.session(text=False) as opened:
        found = opened.host.lineage.reports(opened.actor, ref=ref, limit=limit)
    if at.json:
        print_json({"items": [report_document(report) for report in found]})
        return
    short = shorten_ids([report.id for report in found])
    rows = [
        (
            short[report.id],
            to_iso(report.created_at)[:16].replace("T", " "),
            report.ref,
            len(report.sources),
            report.taken_tokens,
            report.output_tokens,
            report.state,
        )
        for report in found
    ]
    columns = ["id", "when", "ref", "entries", "tokens", "to", "state"]
    print_table(columns, rows, stretch="ref", keep=("state",), empty="No dreams yet: reverie dream plan")


@app.command("show")
def show(dream_id: Id, ref: AnyRef = None, at: At = HERE) -> None:
    """Show the report of a dream, and its text while it is readable.

    \b
    Example:
      reverie dream show 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    from reverie.api.views import report_document
    from reverie.core.errors import NotFound

    with at.session(text=False) as opened:
        report = opened.host.lineage.report(opened.actor, opened.dream_id(dream_id, ref), ref=ref)
        text = None
        if report.output_id is not None:
            try:
                text = opened.host.reader.get(opened.actor, report.ref, report.output_id).content
            except NotFound:
                text = None
    if at.json:
        print_json(report_document(report))
        return
    say_report(report)
    if text is not None:
        say("")
        say(text)


@app.command("diff")
def diff(dream_id: Id, ref: AnyRef = None, at: At = HERE) -> None:
    """Show what became of every entry a dream took, and what was cut of those it shortened.

    \b
    Example:
      reverie dream diff 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    with at.session(text=False) as opened:
        found = opened.host.lineage.diff(opened.actor, opened.dream_id(dream_id, ref), ref=ref)
    if at.json:
        print_json(found)
        return
    marks = {
        "kept": "=",
        "shortened": "~",
        "merged": "+",
        "rolled": "#",
        "outdated": "<",
        "chatter": ".",
        "retired": "-",
    }
    short = shorten_ids([entry_id for fate in marks for entry_id in getattr(found, fate)])
    for fate, mark in marks.items():
        for entry_id in getattr(found, fate):
            text = found.texts.get(entry_id)
            say(f"{mark} {short[entry_id]}  {'(its text was destroyed)' if text is None else one_line(text)}")
            for part in found.statements.get(entry_id, ()) if fate == "shortened" else ():
                cut = f"   cut: {', '.join(part.cut)}" if part.cut else ""
                say(f"    {marks.get(part.fate, ' ')} {one_line(part.text)}{cut}")
    note("= kept word for word   ~ shortened   + merged with others   # rolled up   < outdated, behind its successor")
    note(". chatter   - retired to cold storage, still found by search")


@app.command("undo")
def undo(dream_id: Id, ref: AnyRef = None, at: At = HERE) -> None:
    """Undo a dream: its sources are readable again, exactly as they were.

    Possible while the sources are in cold storage.

    \b
    Example:
      reverie dream undo 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    from reverie.api.views import report_document

    with at.session() as opened:
        report = opened.host.lineage.undo(opened.actor, opened.dream_id(dream_id, ref), ref=ref)
    at.answer(report_document(report), f"undone: {len(report.sources)} entries of {report.ref} are back")


@app.command("why")
def why(
    dream_id: Id,
    ref: AnyRef = None,
    everything: Annotated[bool, Option("--all", help=f"Every source, not only the first {_SHOWN}.")] = False,
    at: At = HERE,
) -> None:
    """Show what a dream was made from, down to the original words.

    \b
    Example:
      reverie dream why last --ref support-bot
    """
    from reverie.api.views import why_document
    from reverie.core.errors import NotFound

    with at.session(text=False) as opened:
        report = opened.host.lineage.report(opened.actor, opened.dream_id(dream_id, ref), ref=ref)
        if report.output_id is None:
            raise NotFound("This dream wrote nothing: its sources were only archived or destroyed.")
        tree = opened.host.lineage.why(opened.actor, report.ref, report.output_id)
    if at.json:
        print_json(why_document(tree))
        return
    for line in tree_lines(tree, most=None if everything else _SHOWN):
        say(line)


@app.command("verify")
def verify(dream_id: Id, ref: AnyRef = None, at: At = HERE) -> None:
    """Dream again from the same sources and compare bytes. Changes nothing; exits 1 when they differ.

    \b
    Example:
      reverie dream verify 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    with at.session() as opened:
        found = opened.host.lineage.verify(opened.actor, opened.dream_id(dream_id, ref), ref=ref)
    if at.json:
        print_json(found)
    else:
        say(f"{'ok' if found.ok else 'NOT PROVED'}: {found.reason}")
        if found.checksum:
            say(f"stored      sha256 {found.checksum}")
        if found.recomputed:
            say(f"recomputed  sha256 {found.recomputed}")
    if not found.ok:
        raise Exit(1)


@app.command("index")
def index(ref: AnyRef = None, at: At = HERE) -> None:
    """Show the memory index: what the next session loads at its start.

    \b
    Example:
      reverie dream index --ref support-bot --json > MEMORY-INDEX.json
    """
    with at.session(text=False) as opened:
        if at.json:
            print_json(opened.host.archives.index(opened.actor, ref=ref))
        else:
            say(opened.host.archives.index_page(opened.actor, ref=ref).rstrip("\n"))


@app.command("archive")
def archive(
    checksum: Annotated[str, Argument(metavar="SHA256", help="The checksum, as the report shows it.")], at: At = HERE
) -> None:
    """Write the archive of a dream to stdout, byte for byte: `| sha256sum` gives its name.

    \b
    Example:
      reverie dream archive 8f43...c1 | sha256sum
    """
    with at.session(text=False) as opened:
        sys.stdout.buffer.write(opened.host.archives.get(opened.actor, checksum))


def _command(plan: DreamPlan, older_than: str | None, at: At) -> str:
    """The command line that runs a plan."""
    import shlex

    from reverie.core.dream import Selector

    selector = plan.selector or Selector()
    words = ["reverie", "dream", "run", "--ref", plan.ref]
    given = {"--budget": plan.budget, "--older-than": older_than, "--session": selector.session}
    given |= {"--distiller": plan.distiller, "--after": None if plan.after == "cold" else plan.after.value}
    given |= {"--tenant": at.tenant, "--data": at.data, "--url": at.url}
    for option, value in given.items():
        words += [option, str(value)] if value is not None else []
    for kind in selector.kinds or ():
        words += ["--kind", kind]
    for tag in selector.tags:
        words += ["--tag", tag]
    return shlex.join([*words, *(["--fit"] if plan.fit and plan.budget is not None else [])])
