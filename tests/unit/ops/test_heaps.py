"""The number of heaps of a process, as the C library counts them."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reverie.ops.heaps import bound_heaps

SCRIPT = """
import ctypes, sys, threading
from reverie.ops.heaps import bound_heaps

print(bound_heaps() if sys.argv[1] == "bound" else None)
libc, meet = ctypes.CDLL(None), threading.Barrier(12)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.fopen.restype, libc.fopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.fclose.argtypes = [ctypes.c_void_p]

def use():
    meet.wait()
    libc.malloc(50_000)
    meet.wait()

threads = [threading.Thread(target=use) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
out = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, out)
libc.fclose(out)
"""


@pytest.mark.parametrize("how", ["bound", "free"])
def test_all_threads_share_few_heaps(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    if platform.libc_ver()[0] != "glibc":
        return  # there is nothing to set, and nothing to count with
    file = tmp_path / "info.xml"
    done = subprocess.run([sys.executable, "-c", SCRIPT, how, str(file)], capture_output=True, text=True, check=True)
    heaps = len(re.findall(r"<heap nr=", file.read_text()))
    assert (done.stdout.strip(), heaps <= 2) == (("True", True) if how == "bound" else ("None", False)), heaps


def test_an_operator_s_own_choice_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    assert bound_heaps() is False
