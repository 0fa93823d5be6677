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
        """A stand-in for the module, which takes over all its attributes on first access."""

        def __getattr__(self, name):
            module = import_module("numpy")
            self.__dict__.update(vars(module))
            return getattr(module, name)

    np = _Lazy()

__all__ = ["np"]
