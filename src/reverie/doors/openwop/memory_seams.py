"""Test seams over memory; they exist only behind their switches."""

from __future__ import annotations

from fastapi import APIRouter

from reverie.doors.openwop.call import api
from reverie.doors.openwop.seams import Seams

compaction = api()
others = api()
memory = api()


def routers(seams: Seams) -> list[APIRouter]:
    """The routes of what is switched on."""
    chosen = ((seams.memory, memory), (seams.compaction, compaction), (seams.others, others))
    return [router for on, router in chosen if on]
