"""Bodies that do not fit the documented shape: the first faults, at most ten, with a pointer to each field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError, ValidatorFunctionWrapHandler

from reverie.core.errors import Invalid

MOST_SHOWN = 10
_SLICE = 128


def invalid(fault: ValidationError) -> Invalid:
    """The error for a body that pydantic refused."""
    found = _errors(fault)
    return refusal([{**one, "loc": ("body", *one["loc"])} for one in found[:MOST_SHOWN]], total=fault.error_count())


def refusal(found: Sequence[Any], *, total: int) -> Invalid:
    """The first fault as message and pointer; the first ten, and how many more there are, in the details."""
    shown = [_shown(one) for one in found[:MOST_SHOWN]]
    first = shown[0]
    details: dict[str, Any] = {}
    if total > 1:
        details["faults"] = shown
    if total > len(shown):
        details["more"] = total - len(shown)
    pointer = first["pointer"]
    return Invalid(f"{pointer or 'The body'}: {first['message']}", pointer=pointer, details=details)


def _shown(fault: Any) -> dict[str, str]:
    steps = [str(step) for step in fault["loc"][1:] if step not in ("one", "many")]
    pointer = "".join("/" + step[:64].replace("~", "~0").replace("/", "~1") for step in steps)
    return {"pointer": pointer, "message": str(fault["msg"]).removeprefix("Value error, ") + "."}


def in_slices(value: Any, check: ValidatorFunctionWrapHandler, name: str) -> Any:
    """The list `name` of a body, validated piece by piece, so that other threads get their turn.

    One call for 10,000 items would hold the interpreter for as long as it takes, and keep every fault in memory.
    """
    if not isinstance(value, list) or len(value) <= _SLICE:
        return check(value)
    checked: list[Any] = []
    found: list[Any] = []
    total = 0
    for start in range(0, len(value), _SLICE):
        try:
            checked += check(value[start : start + _SLICE])
        except ValidationError as fault:
            checked = []
            total += fault.error_count()
            if len(found) < MOST_SHOWN:
                found += [_moved(one, name, start) for one in _errors(fault)]
    if total:
        raise refusal(found, total=total)
    return checked


def _errors(fault: ValidationError) -> Sequence[Any]:
    return fault.errors(include_url=False, include_context=False, include_input=False)


def _moved(one: Any, name: str, start: int) -> dict[str, Any]:
    place, *rest = one["loc"]
    return {**one, "loc": ("body", name, start + place, *rest)}
