"""reverie policy ...: the operator's settings for a tenant."""

from __future__ import annotations

from typing import Annotated, Any

from reverie.api.cli.command import Argument, Group, near
from reverie.api.cli.session import HERE, At
from reverie.api.cli.terminal import print_fields, print_json, say

app = Group("Limits, retention and quotas of a tenant.")


@app.command("show")
def show(at: At = HERE) -> None:
    """Show a tenant's policy.

    \b
    Example:
      reverie policy show --tenant acme
    """
    with at.session(text=False) as opened:
        found = opened.host.rules.policy(opened.actor).document()
    _print(found, at.json)


@app.command("set")
def set_policy(
    changes: Annotated[list[str], Argument(metavar="NAME=VALUE...", help="`none` clears a value that may be empty.")],
    at: At = HERE,
) -> None:
    """Change a tenant's policy, and show what changed.

    Names ending in _ms take milliseconds or a duration (14d), names ending in _bytes a number or a size (64KiB).

    \b
    Example:
      reverie policy set max_entries=500000 undo_window_ms=14d --tenant acme
    """
    parsed = dict(_change(change) for change in changes)
    with at.session(create=True, text=False) as opened:
        before = opened.host.rules.policy(opened.actor).document()
        found = opened.host.rules.set_policy(opened.actor, parsed).document()
    if at.json:
        print_json(found)
        return
    changed = {name: value for name, value in found.items() if value != before[name]}
    if not changed:
        say("Nothing changed: the policy has these values already.")
    print_fields(
        {name: f"{_with_unit(name, before[name])} -> {_with_unit(name, value)}" for name, value in changed.items()}
    )


def _change(text: str) -> tuple[str, Any]:
    from reverie.core.clock import parse_duration
    from reverie.core.errors import Invalid
    from reverie.core.policy import TenantPolicy

    name, equals, value = (part.strip() for part in text.partition("="))
    known = TenantPolicy().document()
    if not equals:
        example = f": {name}=VALUE" if name in known else ""
        raise Invalid(f"Write changes as NAME=VALUE{example}. `reverie policy show` lists the names.")
    if name not in known:
        raise Invalid(f"There is no policy {name[:64]}{near(name, known) or '.'} `reverie policy show` lists them.")
    if value == "none":
        return name, None
    if isinstance(known[name], str):
        return name, value
    number = _number(value, _unit(name))
    if number is not None:
        return name, number
    if not name.endswith("_ms"):
        raise Invalid(f"{name} is a whole number{_EXAMPLES.get(_unit(name), f', such as {known[name]}')}.")
    try:
        return name, parse_duration(value)
    except Invalid as fault:
        raise Invalid(f"{name}: {fault.message}" + (" `none` is without end." if known[name] is None else "")) from None


def _unit(name: str) -> str:
    return _UNITS.get(name) or ("ms" if name.endswith("_ms") else "bytes" if name.endswith("_bytes") else "")


def _number(text: str, unit: str) -> int | None:
    """A value with or without its unit, as `policy show` prints it: 8000, `8,000 tokens`, `64 KiB`; None: neither."""
    digits = len(text) - len(text.lstrip("0123456789,"))
    number, named = text[:digits].replace(",", ""), text[digits:].strip()
    if not number or len(number) > 18:
        return None
    times = _TIMES | {f"{time}s": size for time, size in _TIMES.items()}
    scale = 1 if named in ("", unit) else {"ms": times, "bytes": _SIZES | _DECIMAL}.get(unit, {}).get(named)
    return None if scale is None else int(number) * scale


def _print(found: dict[str, Any], json: bool) -> None:
    if json:
        print_json(found)
    else:
        print_fields({name: _with_unit(name, value) for name, value in found.items()})


def _with_unit(name: str, value: Any) -> str:
    """A value of the policy with its unit."""
    if value is None:
        return "none"
    if not isinstance(value, int):
        return str(value)
    if name.endswith("_ms"):
        return _in_unit(value, _TIMES, "ms")
    if name.endswith("_bytes"):
        return _in_unit(value, _SIZES, "bytes")
    return f"{value:,} {_UNITS[name]}" if name in _UNITS else f"{value:,}"


def _in_unit(value: int, units: dict[str, int], least: str) -> str:
    """A value in the largest unit that leaves no remainder."""
    for unit, size in units.items():
        if value and value % size == 0:
            return f"{value // size} {unit}" + ("s" if units is _TIMES and value != size else "")
    return f"{value:,} {least}"


_TIMES = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000, "second": 1000}
_SIZES = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
_DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_EXAMPLES = {"bytes": " of bytes, or a size such as 64KiB or 2MB", "tokens": " of tokens, such as 8000"}
_UNITS = {
    "dream_budget": "tokens",
    "model_tokens_per_day": "tokens",
    "model_calls_per_day": "calls",
    "model_cents_per_day": "cents",
    "model_seconds_per_dream": "seconds",
    "max_entries": "entries",
    "max_tags": "tags",
}
