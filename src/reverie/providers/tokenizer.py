"""Token counting with the tokenizers of the providers, from ranks inside a package: exact and offline."""

from __future__ import annotations

import threading
from typing import Any, Final

ENCODINGS: Final = ("o200k_base", "cl100k_base")

_tokenizers: dict[str, Any] = {}
_loading = threading.Lock()


class TokenCounter:
    """Counts the tokens of the named encoding.

    Text that spells a special token (`<|im_start|>`) is counted as the ordinary text it is. Lone surrogates, which
    no encoding can represent, count as U+FFFD. The ranks are loaded at the first count and shared by all counters
    of one encoding; a counter may be used from any thread.
    """

    def __init__(self, name: str = ENCODINGS[0]) -> None:
        if name not in ENCODINGS:
            raise ValueError(f"unknown encoding {name!r}; choose one of {', '.join(ENCODINGS)}")
        self._name = name

    @property
    def name(self) -> str:
        """The name of the encoding, as advertised."""
        return self._name

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        return len(self.encode(text))

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`."""
        tokenizer = _tokenizers.get(self._name) or _load(self._name)
        try:
            tokens: list[int] = tokenizer.encode_ordinary(text)
        except UnicodeEncodeError:
            tokens = tokenizer.encode_ordinary(_clean(text))
        return tokens


def _load(name: str) -> Any:
    with _loading:
        if name not in _tokenizers:
            import splintr

            _tokenizers[name] = splintr.Tokenizer.from_pretrained(name)
        return _tokenizers[name]


def _clean(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
