"""numpy, imported on first use.

Its import costs a third of the processor time of a short command, and a command that stores or lists needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
else:
    from importlib import import_module

    class _Lazy:
        """A module in name; an attribute is looked up once and then found like any other."""

        def __getattr__(self, name):
            value = self.__dict__[name] = getattr(import_module("numpy"), name)
            return value

    np = _Lazy()

__all__ = ["np"]
