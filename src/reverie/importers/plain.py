"""Text files, by paragraph and size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reverie.importers.pages import files, other_files
from reverie.importers.record import Item, Record, Skipped, pieces, text_of, whole

_ENDINGS = (".txt", ".text", ".log", ".rst", ".org")


def fits(path: Path, head: bytes) -> bool:
    """A text file, or a folder that has some."""
    if path.is_dir():
        return bool(files(path, *_ENDINGS))
    return path.suffix.lower() in _ENDINGS and b"\0" not in head


def read(path: Path) -> Iterator[Item]:
    """One record per piece, with its order."""
    root = path if path.is_dir() else path.parent
    for one in files(path, *_ENDINGS):
        name = one.relative_to(root).as_posix()
        found = pieces(text_of(one))
        if not found:
            yield Skipped(name, "a file without text")
        for number, piece in enumerate(found, 1):
            about = {"file": name, "piece": number, "of": len(found)}
            place = f"{name}, piece {number}"
            yield Record(f"{name}\0{number}", piece, place, attributes=about, file=whole(one))
    yield from other_files(path, *_ENDINGS)
