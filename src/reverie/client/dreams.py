"""Dreams, lineage, archives and schedules over REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from reverie.client import documents as doc
from reverie.client.connection import RemoteUseCase, entry_path, segment
from reverie.client.errors import error_of
from reverie.client.sse import messages
from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan, DreamReport, Estimate, Nothing, Selector
from reverie.core.errors import ReverieError
from reverie.distil.archive import index_page
from reverie.dreams.consolidate import Consolidated
from reverie.dreams.engine import Progress
from reverie.dreams.lineage import Diff, Verified, Why
from reverie.jobs.timetable import Due, Outcome, Schedule

_MAY_GO_ON = "The dream continues without a listener: its report appears in the list of dreams when it is done."
_NOBODY = Actor(tenant="", id="")
"""Over HTTP no method looks at the actor it is given."""
EVENT_STREAM = "text/event-stream"


class RemoteDreams(RemoteUseCase):
    """Plans and runs dreams."""

    def plan(self, actor: Actor, plan: DreamPlan) -> Estimate:
        """Estimate a dream."""
        answer = self._http.post(_dreams(plan.ref), {**_plan(plan), "plan": True}, again=True, long=True)
        return doc.to_struct(answer, Estimate)

    def run(self, actor: Actor, plan: DreamPlan, *, progress: Progress | None = None) -> DreamReport | None:
        """Dream, and report each step to `progress`. None: nothing to do."""
        made = self.attempt(actor, plan, progress=progress)
        return None if isinstance(made, Nothing) else made

    def attempt(self, actor: Actor, plan: DreamPlan, *, progress: Progress | None = None) -> DreamReport | Nothing:
        """`run`, with the reason where there is nothing to do."""
        import httpx2

        headers = {"Accept": EVENT_STREAM}
        with self._http.stream("POST", _dreams(plan.ref), body=_plan(plan), headers=headers) as stream:
            try:
                for message in messages(stream.iter_bytes()):
                    if message.name == "step" and progress is not None:
                        step = orjson.loads(message.data)
                        progress(step["step"], step["done"], step["total"])
                    elif message.name == "report":
                        return doc.to_report(orjson.loads(message.data))
                    elif message.name == "nothing":
                        return _nothing(message.data)
                    elif message.name == "error":
                        raise error_of(500, message.data) or ReverieError("The dream failed.")
            except (httpx2.TransportError, httpx2.StreamError) as fault:
                raise self._http.lost(fault, _MAY_GO_ON) from None
        raise self._http.lost(EOFError(), _MAY_GO_ON)


def _nothing(data: str | bytes) -> Nothing:
    """The reason in the message of a host; a host of an earlier release gives none."""
    return Nothing((orjson.loads(data) or {"reason": Nothing.TOO_FEW})["reason"])


class RemoteLineage(RemoteUseCase):
    """Reports, undo, and the sources of dreams."""

    def reports(self, actor: Actor, *, ref: str | None = None, limit: int = 100) -> list[DreamReport]:
        """Reports, newest first."""
        found = self._http.get("/dreams", {"ref": ref, "limit": limit})
        return [doc.to_report(report) for report in found["dreams"]]

    def ids(self, actor: Actor, prefix: str, *, ref: str | None = None, limit: int = 10) -> list[str]:
        """Ids of dreams that begin with `prefix`, among the newest thousand."""
        found = sorted(report.id for report in self.reports(actor, ref=ref, limit=1000))
        return [one for one in found if one.startswith(prefix)][:limit]

    def report(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> DreamReport:
        """The stored report. Raises NotFound."""
        return doc.to_report(self._http.get(_dream(dream_id, ref)))

    def undo(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> DreamReport:
        """Put the sources back."""
        return doc.to_report(self._http.post(f"{_dream(dream_id, ref)}/undo", long=True))

    def diff(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> Diff:
        """Return the fate of every entry."""
        return doc.to_struct(self._http.get(f"{_dream(dream_id, ref)}/diff"), Diff)

    def verify(self, actor: Actor, dream_id: str, *, ref: str | None = None) -> Verified:
        """Dream again and compare bytes."""
        return doc.to_struct(self._http.get(f"{_dream(dream_id, ref)}/verify", long=True), Verified)

    def why(self, actor: Actor, ref: str, entry_id: str) -> Why:
        """The tree down to the original words."""
        return doc.to_why(self._http.get(f"{entry_path(ref, entry_id)}/why"))

    def derived(self, actor: Actor, ref: str, entry_id: str) -> list[str]:
        """Ids of everything made from an entry."""
        return list(self._http.get(f"{entry_path(ref, entry_id)}/derived")["derived"])


class RemoteConsolidator(RemoteUseCase):
    """Merging duplicates."""

    def run(self, actor: Actor, ref: str) -> Consolidated:
        """One pass over one memory."""
        return doc.to_struct(
            self._http.post(f"/memory/{segment(ref)}/consolidate", again=True, long=True), Consolidated
        )


class RemoteArchives(RemoteUseCase):
    """Archives and the index."""

    def get(self, actor: Actor, checksum: str) -> bytes:
        """The bytes of an archive."""
        return self._http.raw("GET", f"/archives/{segment(checksum)}", again=True)

    def index(self, actor: Actor, *, ref: str | None = None) -> dict[str, Any]:
        """MEMORY-INDEX.json."""
        results: dict[str, Any] = self._http.get("/index", {"ref": ref})
        return results

    def index_page(self, actor: Actor, *, ref: str | None = None) -> str:
        """The memory index as a page for people."""
        return index_page(self.index(actor, ref=ref))


class RemoteSchedules(RemoteUseCase):
    """Schedules."""

    def all(self, actor: Actor) -> list[Due]:
        """Every schedule."""
        return [doc.to_due(due) for due in self._http.get("/schedules")["schedules"]]

    def save(self, actor: Actor, fields: Mapping[str, Any], *, existing: bool = False) -> Schedule:
        """Make a schedule, or change one."""
        sent = dict(fields)
        for name in ("older_than", "jitter"):
            if (ms := sent.pop(f"{name}_ms", None)) is not None:
                sent[name] = f"{ms}ms"
        if existing:
            answer = self._http.send("PATCH", f"/schedules/{segment(sent.pop('id'))}", body=sent, again=True)
        else:
            answer = self._http.post("/schedules", sent, again="id" in sent)
        return doc.to_schedule(answer)

    def due(self, schedule: Schedule) -> Due:
        """A schedule as people see it."""
        found = (due for due in self.all(_NOBODY) if due.schedule.id == schedule.id)
        return next(found, Due(schedule, None, None))

    def drop(self, actor: Actor, schedule_id: str) -> None:
        """Remove a schedule."""
        self._http.send("DELETE", f"/schedules/{segment(schedule_id)}")

    def run_now(self, actor: Actor, schedule_id: str, *, progress: Progress | None = None) -> Outcome:
        """Run a schedule now. Its steps are not shown over HTTP."""
        return doc.to_outcome(self._http.post(f"/schedules/{segment(schedule_id)}/run", long=True))


def _dreams(ref: str) -> str:
    return f"/memory/{segment(ref)}/dreams"


def _dream(dream_id: str, ref: str | None) -> str:
    return f"/dreams/{segment(dream_id)}" if ref is None else f"{_dreams(ref)}/{segment(dream_id)}"


def _plan(plan: DreamPlan) -> dict[str, Any]:
    chosen = plan.selector or Selector()
    return {
        "budget": plan.budget,
        "fit": plan.fit,
        "distiller": plan.distiller,
        "after": plan.after.value,
        "older_than": f"{chosen.older_than_ms}ms" if chosen.older_than_ms else None,
        "kinds": None if chosen.kinds is None else list(chosen.kinds),
        "tags": list(chosen.tags),
        "session": chosen.session,
        **({"instructions": plan.instructions} if plan.instructions else {}),
    }
