"""What a chain model should say, by listing all label sequences: for sentences of a few tokens and a few labels."""

from itertools import pairwise, product
from typing import Any

import numpy as np

LABELS = ["B-X", "I-X", "B-Y", "I-Y", "O"]
IOBES = ["B-X", "I-X", "E-X", "S-X", "O"]


def random_corpus(seed: int, n: int, labels: list[str], rule: Any, longest: int = 5) -> tuple[list[np.ndarray], list[list[str]]]:
    """n sentences with five random features a token and labels that depend on them and keep to `rule`."""
    rng = np.random.default_rng(seed)
    weights = np.random.default_rng(99).normal(size=(5, len(labels)))
    X, y = [], []
    while len(X) < n:
        x = rng.normal(size=(int(rng.integers(1, longest + 1)), 5))
        feasible = [s for s in product(labels, repeat=len(x)) if rule(s)]
        scores = x @ weights
        X.append(x)
        y.append(list(max(feasible, key=lambda s: sum(scores[t, labels.index(name)] for t, name in enumerate(s)))))
    return X, y


def iob2_valid(tags: tuple[str, ...]) -> bool:
    """I-X stands only after B-X or I-X."""
    before = "O"
    for tag in tags:
        if tag[0] == "I" and before[1:] != tag[1:]:
            return False
        before = tag
    return True


def iobes_valid(tags: tuple[str, ...]) -> bool:
    """Every B is closed by an E of its type with only I between, S stands alone, nothing else is inside."""
    inside = None
    for tag in tags:
        prefix, _, kind = tag.partition("-")
        if prefix in "IE":
            if inside != kind:
                return False
        elif inside is not None:
            return False
        inside = kind if prefix in "BI" else None
    return inside is None


class Listing:
    """All label sequences of one sentence with their scores under a fitted model, read off its weights."""

    def __init__(self, model: Any, x: np.ndarray) -> None:
        names = model.classes_.tolist()
        width = -(-len(names) // 8) * 8
        table = model.coef_.reshape(-1, width)[:, : len(names)].astype(np.float64)
        d = table.shape[0] - 2 - len(names)
        rows = np.hstack((x, np.ones((len(x), d - x.shape[1]))))  # the intercept, where there is one
        node = rows.astype(np.float32).astype(np.float64) @ table[:d]
        node[0] += table[d]
        node[-1] += table[d + 1]
        codes = list(product(range(len(names)), repeat=len(x)))
        edge = table[d + 2 :]
        self.names = names
        self.sequences = [tuple(names[c] for c in code) for code in codes]
        self.scores = np.array(
            [sum(node[t, c] for t, c in enumerate(code)) + sum(edge[a, b] for a, b in pairwise(code)) for code in codes]
        )

    def keep(self, rule: Any) -> "Listing":
        """Only the sequences that keep to `rule`."""
        kept = [k for k, s in enumerate(self.sequences) if rule(s)]
        self.sequences, self.scores = [self.sequences[k] for k in kept], self.scores[kept]
        return self

    def best(self) -> tuple[str, ...]:
        """The best sequence."""
        return self.sequences[int(self.scores.argmax())]

    def marginals(self) -> np.ndarray:
        """(T, n labels) probabilities."""
        shares = np.exp(self.scores - self.scores.max())
        out = np.zeros((len(self.sequences[0]), len(self.names)))
        for share, sequence in zip(shares / shares.sum(), self.sequences, strict=True):
            for t, name in enumerate(sequence):
                out[t, self.names.index(name)] += share
        return out

    def gaps(self) -> np.ndarray:
        """By position: the best score less that of the best sequence with another label there."""
        best, top = self.best(), self.scores.max()
        others = [[v for s, v in zip(self.sequences, self.scores, strict=True) if s[t] != best[t]] for t in range(len(best))]
        return np.array([top - max(values) if values else np.inf for values in others])
