"""Spending of a distiller that calls a model."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

MICRO = 1_000_000


class Spend(Protocol):
    """Reserved before every call to a model, settled after it. One per dream."""

    def reserve(self, *, input_tokens: int, output_tokens: int, microcents: int) -> None:
        """Reserve the maximum cost of a call. Raises SpendExceeded; then the call must not be made."""

    def settle(self, *, input_tokens: int, output_tokens: int, microcents: int) -> None:
        """Replace the last reservation by the actual usage. A reservation that is never settled stays spent."""

    def seconds_left(self) -> float:
        """Return the seconds that the dream may still wait for models; 0 or less means none."""

    def retried(self) -> None:
        """Count a call that repeats a failed one."""

    def note(self, **facts: str | int) -> None:
        """Add facts to the report: the model, the number of windows."""


class Tally:
    """Counts spending; limits nothing but, if given, the seconds."""

    def __init__(self, seconds: float = float("inf"), *, time: Callable[[], float] = monotonic) -> None:
        self._time = time
        self._started = time()
        self._seconds = seconds
        self._open = (0, 0, 0)
        self._facts: dict[str, str | int] = {}
        self.calls = self.retries = self.input_tokens = self.output_tokens = self.microcents = 0

    def reserve(self, *, input_tokens: int, output_tokens: int, microcents: int) -> None:
        self.calls += 1
        self._open = (input_tokens, output_tokens, microcents)
        self._add(self._open, 1)

    def settle(self, *, input_tokens: int, output_tokens: int, microcents: int) -> None:
        self._add(self._open, -1)
        self._open = (0, 0, 0)
        self._add((input_tokens, output_tokens, microcents), 1)

    def _add(self, amounts: tuple[int, int, int], sign: int) -> None:
        self.input_tokens += sign * amounts[0]
        self.output_tokens += sign * amounts[1]
        self.microcents += sign * amounts[2]

    def seconds_left(self) -> float:
        return self._seconds - (self._time() - self._started)

    def retried(self) -> None:
        self.retries += 1

    def note(self, **facts: str | int) -> None:
        self._facts.update(facts)

    def document(self) -> dict[str, Any]:
        """Return the figures for the report; empty when no model was called."""
        if not self.calls:
            return {}
        return {
            "calls": self.calls,
            "retries": self.retries,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cents": self.microcents / MICRO,
            "seconds": round(self._time() - self._started, 3),
            **self._facts,
        }
