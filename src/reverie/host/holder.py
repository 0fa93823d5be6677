"""Who holds a lease, told apart from processes that died: the machine, the process and when it began."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def holder(suffix: str) -> str:
    """A name for this process and one piece of its work."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_began(pid)}/{suffix}"


def is_dead(name: str) -> bool:
    """Whether the process that took a lease is known to be gone. False when nobody can tell, as from elsewhere."""
    host, _, rest = name.partition("/")
    pid, _, rest = rest.partition("/")
    began = rest.partition("/")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _began(int(pid)) != began


def _began(pid: int) -> str:
    """When a process began, in its system's own unit; a number given again later begins at another time."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "0"
    fields = text.rpartition(")")[2].split()
    # state is the third field of the file and the first after the name; the start is the twenty-second
    return "gone" if fields[0] in ("Z", "X") else fields[19]
