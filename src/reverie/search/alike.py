"""Likeness word by word: the share of a question that a passage says, in the same words or in words of like meaning.

The vector of a whole passage is an average: a note about three things is close to none of them. So the best passages
are read again, word by word. For each word of the question, the closest word of the passage counts; words of the
question are weighted by their informativeness and by how few passages have them. "Who doesn't eat meat?" finds
"vegetarian" that way, wherever it occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain, takewhile
from math import log
from typing import Any

from msgspec.structs import replace

from reverie.core.lazy import np
from reverie.search.analysis import MAX_TERM_LENGTH, Word, written
from reverie.search.languages import ENGLISH, detect
from reverie.search.rank import WEIGHTS, Candidate, Question, Weights, best_first

Embed = Callable[[Sequence[str]], list[bytes]]
"""Maps texts to int8 vectors, all of length 127."""
READ = 6000
"""Characters of the best passages that are read word by word."""
_UNLIKE, _LIKE = 0.15, 0.6
"""The cosine of two unrelated English words, and that of two words of one meaning. In other languages unrelated words
share pieces, so there only a cosine of 1 means the same."""
_SAME = 0.9
"""The cosine from which two words count as forms of one word."""
_MANY = 60
"""Number of passages without the word that are added when its rarity is computed."""
_FEW, _LONGER, _SURER = 8, 0.06, 0.2
"""Words of a passage up to which `_UNLIKE` and `_LIKE` hold, and by how much each rises with every doubling: among many
words, one is always somewhat close."""
_BLOCK = 512
"""Number of word vectors that are multiplied at once."""
_REMEMBERED = 1 << 14


class WordVectors:
    """Vectors of words, and the likeness of passages to a question word by word. Shared between threads."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._seen: dict[str, dict[str, bytes]] = {}
        """By language and piece between white space: the vectors of its content words."""

    def read(self, question: Question, candidates: Sequence[Candidate], weights: Weights = WEIGHTS) -> list[Candidate]:
        """The candidates; for the best of them, `alike` is set."""
        order = best_first(question, candidates, weights=weights)
        sizes = accumulate(len(candidates[at].content) for at in order)
        best = [at for at, _ in zip(order, takewhile(READ.__ge__, sizes), strict=False)]
        texts = [f"{candidates[at].speaker or ''} {candidates[at].content}" for at in best]
        read = list(candidates)
        for at, share in zip(best, self.alike(question.words, texts, detect(question.text)), strict=True):
            if share:
                read[at] = replace(candidates[at], alike=share)
        return read

    def closeness(self, texts: Sequence[str]) -> list[list[float]]:
        """The cosines of all pairs of texts, by the vectors of whole texts."""
        table = _rows(self._embed(texts))  # the products are whole numbers below 2^24: exact in any order
        cosines: list[list[float]] = np.round((table @ table.T).astype(np.float64) / 127**2, 6).tolist()
        return cosines

    def alike(self, question: Sequence[Word], texts: Sequence[str], language: str) -> list[float]:
        """The share of the question that each text says, 0 to 1. `language`: of the question."""
        if not question or not texts:
            return [0.0] * len(texts)
        asked = _rows(self._of([word.text for word in question], ""))
        said = self._of(texts, language)
        sizes = np.array([len(vectors) for vectors in said]) // asked.shape[1]
        starts = np.cumsum(sizes) - sizes
        there = np.flatnonzero(sizes)
        shares = np.zeros(len(texts))
        if len(there):
            # integers below 2^24: exact in any order. One product a word and block: larger ones would start threads
            data = np.frombuffer(b"".join(said), dtype=np.int8).reshape(-1, asked.shape[1])
            cosines = np.empty((len(asked), len(data)), dtype=np.float32)
            for at in range(0, len(data), _BLOCK):
                block = data[at : at + _BLOCK].astype(np.float32)
                for word, own in zip(asked, cosines, strict=True):
                    np.dot(block, word, out=own[at : at + _BLOCK])
            closest = np.maximum.reduceat(cosines, starts[there], axis=1).astype(np.float64) / 127**2
            doublings = np.log2(np.maximum(sizes[there], _FEW) / _FEW)
            unlike = _UNLIKE + _LONGER * doublings
            like = np.minimum(_LIKE + _SURER * doublings, 1.0) if language == ENGLISH else 1.0
            near = np.clip((closest - unlike) / (like - unlike), 0.0, 1.0)
            having = np.count_nonzero(closest >= _SAME, axis=1)
            rarity = [log(1 + _MANY / (often + 0.5)) for often in having.tolist()]
            weights = [word.weight * rare for word, rare in zip(question, rarity, strict=True)]
            shares[there] = sum(weight * one for weight, one in zip(weights, near, strict=True)) / sum(weights)
        return [round(share, 6) for share in shares.tolist()]

    def _of(self, texts: Sequence[str], language: str) -> list[bytes]:
        """The concatenated vectors of the content words of each text. Without a language, a text is one word."""
        pieces = self._seen.setdefault(language, {})
        split = [text.split() if language else [text] for text in texts]
        try:
            return [b"".join(map(pieces.__getitem__, own)) for own in split]
        except KeyError:
            there = dict.fromkeys(chain.from_iterable(split))
        own = {piece: data for piece in there if (data := pieces.get(piece)) is not None}
        # those not seen before are embedded together, at a third of the cost
        new = {piece: list(written(piece, language)) if language else [piece] for piece in there if piece not in own}
        words = list(dict.fromkeys(chain.from_iterable(new.values())))
        vectors = dict(zip(words, self._embed(words), strict=True))
        made = {piece: b"".join([vectors[word] for word in said]) for piece, said in new.items()}
        if len(pieces) + len(made) > _REMEMBERED:
            pieces.clear()
        pieces.update((piece, data) for piece, data in made.items() if len(piece) <= MAX_TERM_LENGTH)
        own |= made
        return [b"".join(map(own.__getitem__, one)) for one in split]


def _rows(vectors: Sequence[bytes]) -> Any:
    """Vectors as numbers, one to a row."""
    return np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(len(vectors), -1).astype(np.float32)


def vectors_know(query: str) -> float:
    """Return how well the built-in vectors know the language of a question, 0 to 1."""
    letters = () if query.isascii() else [character for character in query if character.isalpha()]
    if sum([character < "\u0250" for character in letters]) * 2 < len(letters):
        return 0.0
    return 1.0 if detect(query) == ENGLISH else 0.5
