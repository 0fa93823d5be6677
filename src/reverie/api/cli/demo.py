"""reverie demo: the two-minute tour."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from reverie.api.cli.command import Exit, Option
from reverie.api.cli.report import steps
from reverie.api.cli.session import Json
from reverie.api.cli.terminal import counts, many, print_json, say

if TYPE_CHECKING:
    from reverie.demo.tour import Amount, Tour

_SHOWN = 8


def demo(
    keep: Annotated[Path | None, Option("--keep", metavar="DIR", help="Keep the data in this new folder.")] = None,
    json: Json = False,
) -> None:
    """Take the tour: five weeks of a made-up team's memory, dreamt, traced and undone.

    Needs nothing and changes nothing outside its folder, which is temporary unless you keep it. A folder that is kept
    also gets weekly dreams, a schedule, a conversation and agents, so that every page of the console has something to
    show: reverie serve --data DIR.

    \b
    Example:
      reverie demo --keep ./tour
    """
    from reverie.core.errors import Invalid
    from reverie.demo.fill import fill
    from reverie.demo.tour import TENANT, take

    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise Invalid(f"{keep} is not an empty folder. Name a new one.")
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reverie-demo-"))) / "data"
        with steps() as progress:
            if keep is not None:
                fill(folder, tenant=TENANT, progress=progress)
            tour = take(folder, progress=progress)
        if json:
            print_json(tour)
        else:
            _show(tour, keep)
    if not (tour.undone and tour.repeated and tour.audit and tour.secrets_on_disk == 0):
        raise Exit(1)


def _show(tour: Tour, keep: Path | None) -> None:
    say("A made-up team builds a booking tool. Its agent kept notes for five weeks.")
    say("")
    say(f"before   {_amount(tour.before)}")
    say(f"after    {_amount(tour.after)}")
    say(f"budget   {tour.tokens_used} of {tour.budget} tokens, input and output together")
    say(f"sources  {', '.join(f'{count} {fate}' for fate, count in tour.sources.items())}")
    kept, wanted = tour.must_keep["kept"] + tour.must_keep["quoted"], sum(tour.must_keep.values())
    say(f"kept     {kept} of {wanted} decisions, rules and promises, and every one that was marked as such")
    say(f"asked    {tour.answered} of {tour.questions} questions that the notes answered are still answered")
    say(f"secrets  {counts(tour.redacted)}")
    say(f"         {tour.secrets_planted} were planted; {tour.secrets_on_disk} are in the files on the disk")
    say("")
    say("how the dream begins")
    for line in tour.text.split("\n")[:_SHOWN]:
        say(f"  {line}")
    say("")
    say("what changed is shown next to the earlier statement")
    say(f"  {tour.contradiction.line}")
    say("and the words it was made from (reverie why)")
    for source in tour.contradiction.sources:
        say(f"  {source}")
    say("")
    say(f"undo     {'every entry came back exactly' if tour.undone else 'NOT THE SAME'}")
    say(f"again    {'the same bytes' if tour.repeated else 'OTHER BYTES'}, sha256 {tour.checksum}")
    say(f"audit    {'proved' if tour.audit else 'BROKEN'}, {many(tour.events, 'event')} without a word of text")
    say(f"took     {tour.seconds:.3f} s, of which {tour.dream_seconds:.3f} s for the dream")
    if keep is not None:
        say("")
        say(f"look around: reverie serve --data {keep}, and follow the link that it prints")


def _amount(amount: Amount) -> str:
    return f"{many(amount.memories, 'entry', 'entries')}, {amount.tokens} tokens, {amount.bytes} bytes"
