"""One dream: the fate of each statement, side by side, with undo, verify and the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup, escape
from msgspec import Struct
from starlette.responses import Response

from reverie.api.console import access, diff, replay
from reverie.api.console.drawing import shares, strands
from reverie.api.console.page import Document, Look, Page, See
from reverie.api.console.running import Running
from reverie.api.console.text import segment, visible
from reverie.api.views import report_document
from reverie.core.dream import ABOVE_TARGET, DreamReport, StatementTrace
from reverie.core.errors import Invalid, NotFound
from reverie.dreams.lineage import Diff, StatementDiff

_LINES = 60
"""Lines compared on one page."""
_STATEMENTS = 50
_MUST_KEEP = 100
_UNANSWERED = 50
FATES = {
    "kept": ("Kept", "word for word in the dream"),
    "shortened": ("Shortened", "in the dream, with words left out"),
    "merged": ("Merged", "said more than once; in the dream once"),
    "rolled": ("Rolled up", "summed up in one line with similar statements"),
    "outdated": ("Outdated", "replaced by a newer statement"),
    "chatter": ("Chatter", "small talk; moved to cold storage"),
    "retired": ("Retired", "least useful; moved to cold storage"),
    "stayed": ("Stayed", "must be kept, so its entry was left as it was"),
}
_LEFT_OUT = ("outdated", "chatter", "retired")
CHECKS = {
    "within_budget": "Within its token budget",
    "smaller": "Smaller than its sources",
    "invented": "Nothing invented: every number, name and link is in a source",
    "negations_flipped": "No statement says the opposite of its source",
}


class _Statement(Struct, frozen=True):
    """A statement of a source: its place, fate and class. A source without known statements counts as one."""

    source: str
    number: int | None
    fate: str
    why: str = ""


def show(look: Look) -> Document | Response:
    """Show the report; while the dream runs, its progress.

    A watching page is reloaded when the dream is over, so that the report starts like every page: focus, title and
    scroll position.
    """
    running: Running = look.state.console_running
    run = running.of(look.actor.tenant, look.path["id"])
    if look.text("watching") and (run is None or run.over):
        # `Refresh` is for a browser that opens this address itself, such as after signing in again.
        report = f"0; url=/dreams/{segment(look.path['id'])}"
        return Response(headers={**access.HEADERS, "HX-Refresh": "true", "Refresh": report})
    if run is not None and (not run.over or run.error):
        return {"running": msgspec.to_builtins(run), "id": run.id, "report": None}
    return _finish(look) | {"awaited": run is not None}


def _finish(look: Look) -> Document:
    report = look.host.lineage.report(look.actor, look.path["id"])
    options = {"verified": None, "confirm": look.text("undo") == "1", "awaited": False}
    return {"running": None, "id": report.id, **options, **_describe(look, report)}


def _describe(look: Look, report: DreamReport) -> Document:
    """Everything about a report that the page shows. Only the sources shown are read."""
    output = _output(look, report)
    changed = look.text("lines") == "changed"
    lines = _Lines(report, output, only_changed=changed)
    first = lines.page_of(look.number("line", 0, least=0), look.number("from", 0, least=0))
    fate = look.text("fate")
    if fate and fate not in FATES:
        raise Invalid("There is no such fate of a statement.", pointer="/fate")
    every = list(_statements(report))
    chosen = [one for one in every if not fate or one.fate == fate]
    at = look.number("at", 0, least=0)
    statements = chosen[at : at + _STATEMENTS]
    items = [dict(item) for item in report.gates.get("items", ())][:_MUST_KEEP]
    wanted = {one.source for one in statements} | {str(item["source"]) for item in items} | lines.sources(first)
    wanted |= replay.answering(report) | {source for source, _, _ in report.unanswered[:_UNANSWERED]}
    found = look.host.lineage.diff(look.actor, report.id, only=wanted)
    sections = lines.sections(first, found)
    counts = Counter(one.fate for one in every)
    document = report_document(report)
    for name in ("about", "statements", "collapsed", "replay", "unanswered"):
        document.pop(name, None)
    document["sources"] = len(report.sources)
    taken = report.taken_tokens
    return {
        "report": document,
        "above_target": ABOVE_TARGET.get(report.above_target or ""),
        "taken": taken,
        "saved": max(0, taken - report.output_tokens),
        "fates": [
            {"name": name, "title": title, "meaning": meaning, "count": counts[name]}
            for name, (title, meaning) in FATES.items()
            if counts[name]
        ],
        "shares": shares({name: counts[name] for name in FATES if counts[name]}),
        "fate": fate,
        "statements": [_statement(one, found, lines) for one in statements],
        "statement_count": len(chosen),
        "all_statements": len(every),
        "next_statement": at + _STATEMENTS if at + _STATEMENTS < len(chosen) else None,
        "sections": sections,
        "lines": lines.count,
        "changed_lines": lines.changed,
        "only_changed": changed,
        "first_line": first,
        "next_line": first + _LINES if first + _LINES < lines.shown else None,
        "probes": [{"name": name, "kept": kept, "of": of} for name, (kept, of) in report.probes.items()],
        "unanswered": [one for given in report.unanswered[:_UNANSWERED] if (one := _unanswered(*given, found))],
        "replay": replay.replay_document(look, report, output, found.texts),
        "recorded": replay.recorded(look),
        "checks": _checks(report.gates),
        "must_keep": [
            {**item, "text": found.texts.get(item["source"]), "line": lines.of(item["source"])} for item in items
        ],
        "must_keep_count": len(report.gates.get("items", ())),
        "drawing": strands([line for section in sections for line in section["lines"]], ref=report.ref),
    }


def _output(look: Look, report: DreamReport) -> str:
    """The dream's text, as long as it exists."""
    if report.output_id is None:
        return ""
    try:
        return look.host.reader.get(look.actor, report.ref, report.output_id, cold=True).content
    except NotFound:
        return ""


def _statements(report: DreamReport) -> Iterator[_Statement]:
    """Every statement of the sources in their order, then the entries that stayed as they were."""
    for source in report.sources:
        if not source.statements:
            yield _Statement(source.id, None, source.fate)
        for number, (fate, why) in enumerate(source.statements):
            yield _Statement(source.id, number, fate, why)
    for entry_id in report.stayed:
        yield _Statement(entry_id, None, "stayed")


class _Lines:
    """The lines of a dream under its headings, and where each source is in them."""

    def __init__(self, report: DreamReport, output: str, *, only_changed: bool = False) -> None:
        self._by_line: dict[int, list[StatementTrace]] = {}
        for statement in report.statements:
            self._by_line.setdefault(statement.line, []).append(statement)
        self._merged = {group[0]: tuple(group[1:]) for group in report.collapsed if group}
        self._rows: list[tuple[int, str, str]] = []
        """(Number of the line in the text, its heading, the line)."""
        title = ""
        for number, line in enumerate(output.split("\n")):
            if line.startswith("[") and line.endswith("]") and number not in self._by_line:
                title = line[1:-1]
            elif line.strip():
                self._rows.append((number, title, line))
        self._of: dict[str, int] = {}
        for number, _, _ in self._rows:
            for entry_id in self._ids(number):
                self._of.setdefault(entry_id, number)
        self.count = len(self._rows)
        """Number of lines that are not empty."""
        differ = [row for row in self._rows if self._differs(row[0])]
        self.changed = len(differ)
        """Number of lines that are not one source word for word."""
        if only_changed:
            self._rows = differ
        self.shown = len(self._rows)

    def _differs(self, number: int) -> bool:
        traces = self._by_line.get(number, ())
        return len(self._ids(number)) != 1 or any(trace.how != "quoted" or trace.count > 1 for trace in traces)

    def of(self, source: str) -> int | None:
        """The first line that a source is in."""
        return self._of.get(source)

    def page_of(self, number: int, first: int) -> int:
        """Return the start of the page that holds a line of the text; `first` when no line is requested."""
        place = next((at for at, row in enumerate(self._rows) if number and row[0] == number), None)
        return min(first, max(0, self.shown - 1)) if place is None else place // _LINES * _LINES

    def sources(self, first: int) -> set[str]:
        """The sources of the lines of a page."""
        return {one for number, _, _ in self._rows[first : first + _LINES] for one in self._ids(number)}

    def sections(self, first: int, found: Diff) -> list[dict[str, Any]]:
        """The lines of a page under their headings, each with the words it was made from."""
        sections: list[dict[str, Any]] = []
        for number, title, line in self._rows[first : first + _LINES]:
            if not sections or sections[-1]["title"] != title:
                sections.append({"title": title, "lines": []})
            sections[-1]["lines"].append(self._line(number, line, found))
        return sections

    def _ids(self, number: int) -> list[str]:
        named = dict.fromkeys(source for trace in self._by_line.get(number, ()) for source in trace.sources)
        return list(dict.fromkeys(one for source in named for one in (source, *self._merged.get(source, ()))))

    def _line(self, number: int, line: str, found: Diff) -> dict[str, Any]:
        traces, ids = self._by_line.get(number, ()), self._ids(number)
        texts = [found.texts[one] for one in ids if one in found.texts]
        return {
            "number": number,
            "text": line,
            "after": diff.after(line, texts) if texts else None,
            "how": sorted({trace.how for trace in traces}),
            "times": max((trace.count for trace in traces), default=1),
            "sources": [{"id": one, "text": found.texts.get(one), "before": _before(one, line, found)} for one in ids],
        }


def _before(source: str, line: str, found: Diff) -> Markup | None:
    """Mark the parts of a source that the dream left out: by statement where their fates are known, else by word."""
    if source not in found.texts:
        return None
    known = found.statements.get(source)
    if not known:
        return diff.before(found.texts[source], [line])
    return Markup(" ").join(_mark(one, line) for one in known)


def _mark(statement: StatementDiff, line: str) -> Markup:
    if statement.fate in _LEFT_OUT:
        return Markup('<del title="{}">{}</del>').format(FATES[statement.fate][0], visible(statement.text))
    if statement.fate == "shortened":
        return diff.without(statement.text, statement.cut)
    if statement.fate in ("merged", "rolled"):
        return diff.before(statement.text, [line])
    return escape(visible(statement.text))


def _statement(one: _Statement, found: Diff, lines: _Lines) -> dict[str, Any]:
    """A row of the list of statements."""
    text = found.texts.get(one.source)
    marked: Markup | None = None if text is None else escape(visible(text))
    known = found.statements.get(one.source, ())
    if one.number is not None and one.number < len(known):
        statement = known[one.number]
        text = statement.text
        marked = diff.without(text, statement.cut) if statement.fate == "shortened" else escape(visible(text))
    return {
        "source": one.source,
        "text": text,
        "marked": marked,
        "fate": one.fate,
        "title": FATES.get(one.fate, (one.fate, ""))[0],
        "why": one.why,
        "line": lines.of(one.source) if one.fate not in (*_LEFT_OUT, "stayed") else None,
    }


def _unanswered(source: str, number: int, kind: str, found: Diff) -> dict[str, Any] | None:
    """A statement that no line answers, while its words exist."""
    known = found.statements.get(source, ())
    text = known[number].text if number < len(known) else found.texts.get(source)
    return None if text is None else {"source": source, "text": text, "kind": kind}


def _checks(gates: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """The gates as a checklist. A count passes when it is 0."""
    results = []
    for name, title in CHECKS.items():
        if name in gates:
            value = gates[name]
            results.append({"title": title, "passed": value is True or (value == 0 and value is not False)})
    return results


def undo(look: Look) -> See:
    """Put the sources back."""
    look.host.lineage.undo(look.actor, look.path["id"])
    return See(f"/dreams/{segment(look.path['id'])}", "Undone: every source is readable again, exactly as it was.")


def verify(look: Look) -> Document:
    """Dream again from the same sources and compare bytes."""
    found = look.host.lineage.verify(look.actor, look.path["id"])
    return _finish(look) | {"verified": msgspec.to_builtins(found)}


PAGE = Page(
    "dreams", "/dreams/{id}", "dream.html", show, {"undo": undo, "verify": verify}, heavy=frozenset({"undo", "verify"})
)
