"""Imported once by the process that others are forked from: what every one of them would spend its first second on."""

from __future__ import annotations

import gc

import pytest  # noqa: F401
from tests.crash import converser
from tests.responses_emulator import Emulator, message

import reverie
import reverie.akashik
import reverie.api.cli.main
import reverie.http.run
import reverie.jobs.procrastinate
import reverie.protocols.openwop.runs
import reverie.store.postgres
from reverie.app import build_app
from reverie.core.dream import DreamPlan
from reverie.settings import Settings

with (
    reverie.open("sqlite:///:memory:") as memory,
    Emulator(context=8000, model=lambda _: [message("Yes.")]) as provider,
):
    memory.ref("bot").put_many([f"The pump {n} in hall {n % 3} was replaced on day {n}." for n in range(9)])
    memory.host.dreams.run(memory.actor, DreamPlan("bot"))
    build_app(Settings.load({}), memory.host)
    window = converser.open_window(memory, provider.url, provider.key)
    for _ in range(2):
        window.create(model="gpt-5.6-sol", input="fact:first " + "word " * 800)
del memory, provider, window
gc.collect()
gc.freeze()  # a collection in a child would write to, and so copy, every page of this process
