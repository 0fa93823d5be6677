"""Imported once by the process that others are forked from: what every one of them would spend its first second on."""

from __future__ import annotations

import openai  # noqa: F401
import pytest  # noqa: F401

import reverie
import reverie.akashik
import reverie.api.cli.main
import reverie.responses
import reverie.store.postgres
from reverie.core.dream import DreamPlan

with reverie.open("sqlite:///:memory:") as memory:
    memory.ref("bot").put_many([f"The pump {n} in hall {n % 3} was replaced on day {n}." for n in range(9)])
    memory.host.dreams.run(memory.actor, DreamPlan("bot"))
