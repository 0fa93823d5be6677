"""Files and folders that only their owner may read, from the instant they exist.

The mode is given to the call that makes the file, so there is no moment at which it is wider; the umask can only take
bits away. `narrow` closes what an earlier release, or a copy by hand, left open.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077


def make_folder(path: Path) -> None:
    """Make a folder and every missing one above it, each 0700. An existing folder stays as it is."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=FOLDER_MODE)
        except FileExistsError:
            if not folder.is_dir():
                raise
    if not path.is_dir():
        raise NotADirectoryError(str(path))


def open_new(path: Path, *, append: bool = False) -> int:
    """Open a new file, 0600, for reading and writing. FileExistsError when the name is taken.

    `append`: the file may exist; writes go to its end.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags | (os.O_APPEND if append else os.O_EXCL), FILE_MODE)


def make_file(path: Path) -> bool:
    """Make an empty file, 0600. False when there is a file of that name."""
    try:
        os.close(open_new(path))
    except FileExistsError:
        return False
    return True


def others_may(path: Path) -> int | None:
    """The mode of a file or folder if users other than its owner have rights on it, else None."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if mode & _OTHERS and os.name == "posix" else None


def narrow(path: Path) -> bool:
    """Take all rights on a file or folder from other users. False when it is missing, not ours, or narrow already."""
    try:
        found = path.stat()
        if os.name != "posix" or not found.st_mode & _OTHERS or found.st_uid != os.geteuid():
            return False
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    except OSError:
        return False
    return True
