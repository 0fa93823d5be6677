"""Where the work of requests is done: threads of the process, beside the event loop.

Every request goes to a thread twice, to look up its key and to do what it asks: this is the short way there and back.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TypeVar

T = TypeVar("T")

THREADS = 128
"""Host calls at once. Each waits for a read or for the commit it shares with others, so many are cheap."""


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises. It sees the caller's context; once begun it is finished, whoever stops waiting."""
    return await get_running_loop().run_in_executor(_pool(), copy_context().run, work)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="reverie-request")
