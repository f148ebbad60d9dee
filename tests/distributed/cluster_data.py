"""A small file in shards, and what two runs must have in common, for tests of training on a cluster."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from structpred.distributed import Shards
from structpred.models import ChainLabeler


def small_shards(folder: Path, n: int = 8) -> Shards:
    """Ninety-six sentences whose words say their labels, but for some noise."""
    rng = np.random.default_rng(3)
    sentences = []
    for _ in range(96):
        words = rng.integers(0, 30, rng.integers(2, 7))
        labels = np.where(rng.random(len(words)) < 0.1, rng.integers(0, 3, len(words)), words % 3)
        sentences.append("".join(f"w{word} L{label}\n" for word, label in zip(words, labels, strict=True)))
    path = folder / "train.txt"
    path.write_text("\n".join(sentences))
    return Shards.of_file(path, n)


def labeler(trainer: Any, **settings: Any) -> ChainLabeler:
    """An estimator with hashed templates; a few rounds."""
    return ChainLabeler(trainer, **{"C": 0.1, "template": "pos", "n_bits": 8, "max_iter": 4, "check_every": 1, **settings})


def digest(model: Any) -> str:
    """Of weights, certificate and history; how long it took is left out."""
    rows = [{name: value for name, value in row.items() if "seconds" not in name} for row in model.history_]
    return hashlib.sha256(model.coef_.tobytes() + repr((rows, model.certificate_)).encode()).hexdigest()
