"""Optional packages: the extras of the distribution, asked for where they are used."""

from __future__ import annotations

from importlib.util import find_spec

from reverie.core.errors import MissingExtra


def require(package: str, *, extra: str, purpose: str) -> None:
    """Raise MissingExtra with the command that installs the extra, unless the package can be imported."""
    if find_spec(package) is None:
        raise MissingExtra(f"{purpose} needs the package {package}: pip install 'reverie[{extra}]'")


def require_release(distribution: str, least: str, *, extra: str, purpose: str) -> str:
    """The installed release of a distribution. Raises MissingExtra when it is missing or older than `least`."""
    from importlib import metadata

    install = f"pip install 'reverie[{extra}]'"
    try:
        found = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise MissingExtra(f"{purpose} needs {distribution} {least} or newer: {install}") from None
    if _numbers(found) < _numbers(least):
        raise MissingExtra(f"{purpose} needs {distribution} {least} or newer, and {found} is installed: {install}")
    return found


def _numbers(release: str) -> list[int]:
    """The leading numbers of a release, enough to compare: `1.2.0rc1` is 1, 2, 0."""
    numbers: list[int] = []
    for part in release.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return numbers
