"""Skip chains: a sequence whose equal words are linked too. Exact by elimination; sparse features shared by all places."""

from typing import Any

import numpy as np
from scipy import sparse

from structpred.oracles.mrf import graph_shape

N_LABELS, N_WORDS = 2, 3


def skip_shape(words: list[int]) -> Any:
    """A chain over the words, and an edge between equal words that are not neighbours."""
    n = len(words)
    skips = [(i, j) for i in range(n) for j in range(i + 2, n) if words[i] == words[j]]
    return graph_shape(n, N_LABELS, [(i, i + 1) for i in range(n - 1)] + skips)


def skip_features(words: list[int]) -> Any:
    """Word and label; pairs of neighbouring labels; whether equal words have equal labels."""
    n, shape = len(words), skip_shape(words)
    n_edges = (len(shape) - 2) // 2
    d = N_WORDS * N_LABELS + N_LABELS**2 + 1
    rows = sparse.lil_array((n * N_LABELS + n_edges * N_LABELS**2, d))
    for i, word in enumerate(words):
        for label in range(N_LABELS):
            rows[i * N_LABELS + label, word * N_LABELS + label] = 1.0
    for e in range(n_edges):
        for pair in range(N_LABELS**2):
            at = n * N_LABELS + e * N_LABELS**2 + pair
            if e < n - 1:
                rows[at, N_WORDS * N_LABELS + pair] = 1.0
            elif pair // N_LABELS == pair % N_LABELS:
                rows[at, d - 1] = 1.0
    return rows.tocsr()


def skip_words(rng: np.random.Generator, n: int) -> list[int]:
    """A random sentence of word numbers."""
    return rng.integers(0, N_WORDS, n).tolist()
