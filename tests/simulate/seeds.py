"""A run that one number decides: who acts, in which order, and what goes wrong."""

from __future__ import annotations

import random
from pathlib import Path

import psycopg
from tests.simulate.actors import NAMES
from tests.simulate.faults import Disk, Fault, plan_faults
from tests.simulate.model import Model
from tests.simulate.runner import Crash, Run, play
from tests.simulate.settle import settle
from tests.simulate.world import Scene, World, open_file

_LATEST_FAULT = 30


def run_seed(scene: Scene, seed: int) -> Run:
    """Three to six actors in a random order, with up to two faults. The same number is the same run."""
    rng = random.Random(seed)
    names = [f"{rng.choice(NAMES)}@{rng.randrange(3)}" for _ in range(rng.randint(3, 6))]
    faults = plan_faults(rng, engine=scene.engine, steps=_LATEST_FAULT)
    disk = Disk(f"simulated-{seed}") if scene.engine == "sqlite" and faults else None

    def choose(number: int, able: list[int], last: int | None) -> int:
        return last if last in able and rng.random() < 0.4 else rng.choice(able)

    with scene.world(bodies=True, disk=disk) as world:
        trouble = Trouble(world, faults, disk, rng)
        run = play(world, names, choose, before=trouble.before, reopen=trouble.reopen, epilogue=trouble.settle)
    run.names = [*names, *(f"[{fault}]" for fault in faults)]
    return run


class Trouble:
    """Lets the planned faults happen."""

    def __init__(self, world: World, faults: list[Fault], disk: Disk | None, rng: random.Random) -> None:
        self._world = world
        self._faults = faults
        self._disk = disk
        self._rng = rng
        self._room_at: int | None = None
        """The step at which a full disk has room again."""

    def before(self, number: int, model: Model) -> None:
        """Called before each step."""
        if self._disk is not None and self._room_at is not None and number >= self._room_at:
            self._disk.full = False
        for fault in self._faults:
            if fault.at == number:
                model.faulty = True
                self._happen(fault, number, model)

    def _happen(self, fault: Fault, number: int, model: Model) -> None:
        disk = self._disk
        if fault.what == "crash":
            raise Crash
        if fault.what in ("clock jump", "lease ends"):
            model.sweeps = True
            self._world.clock.advance(fault.amount)
        elif fault.what == "connection lost":
            _terminate(self._world.url)
        elif disk is not None and fault.what == "write fails":
            disk.fail_write = fault.amount
        elif disk is not None and fault.what == "sync fails":
            disk.fail_sync = fault.amount
        elif disk is not None:
            disk.full, self._room_at = True, number + fault.amount

    def reopen(self) -> None:
        """A new process on what the disk kept."""
        world = self._world
        if self._disk is None:
            world.baton.kill()
            world.store.close()
            world.reopen(Scene._open_url(world.url, world.clock))
            return
        old = Path(world.store.path)  # type: ignore[attr-defined]
        fresh = old.with_name("reopened.db")
        kept = {ending: self._disk.survive(f"{old}{ending}", self._rng) for ending in ("", "-wal")}
        self._mend()
        world.baton.kill()
        world.store.close()
        for ending, held in kept.items():
            if held:
                Path(f"{fresh}{ending}").write_bytes(held)
        for left in old.parent.glob(f"{old.name}*"):
            left.unlink()
        world.reopen(open_file(fresh, world.clock, self._disk))

    def settle(self, world: World, model: Model) -> None:
        """Check the memory when nothing is wrong any more."""
        self._mend()
        settle(world, model)

    def _mend(self) -> None:
        if self._disk is not None:
            self._disk.full = False
            self._disk.fail_write = self._disk.fail_sync = 0


def _terminate(url: str) -> None:
    """End every connection to a database but this one."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
