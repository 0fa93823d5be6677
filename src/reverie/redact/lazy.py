"""Regular expressions of the standard library that are compiled when first used.

The rules have some 150, and an ordinary text needs a dozen: compiling all of them takes a tenth of the processor time
of `reverie put`.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Lazy:
    def __init__(self, source: Any, flags: int) -> None:
        self._source: Any = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, value)
        return value


def lazy(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that behaves as the compiled one does. The functions of `re` do not accept it."""
    return cast("re.Pattern[AnyStr]", _Lazy(source, flags))
