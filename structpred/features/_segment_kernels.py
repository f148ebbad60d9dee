# mypy: ignore-errors
"""Compiled sums over the tokens inside segments, and their adjoint; parts are those of the semi-Markov oracle.

Label 0 is outside of all phrases. Tokens have labels of their own: 0 under label 0, whose segments are one token long; under
another label l 4 l - 3 where a token is a segment alone, 4 l - 2 where it starts one, 4 l - 1 inside, 4 l where it ends one.
"""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def add_inside(tokens, longest, n_labels, out):
    """Add to each segment what its tokens have with their labels, (length, 4 * n_labels - 3); O(length * longest * n_labels)."""
    length = tokens.shape[0]
    inside = np.empty(n_labels)
    for t in range(length):
        inside[:] = 0.0
        row = t * longest * n_labels
        out[row] += tokens[t, 0]
        for label in range(1, n_labels):
            out[row + label] += tokens[t, 4 * label - 3]
        for m in range(2, min(longest, length - t) + 1):
            row += n_labels
            for label in range(1, n_labels):
                if m > 2:
                    inside[label] += tokens[t + m - 2, 4 * label - 1]
                out[row + label] += tokens[t, 4 * label - 2] + inside[label] + tokens[t + m - 1, 4 * label]


@njit(cache=True, nogil=True)
def spread_inside(parts, counts, longest, n_labels, tokens):
    """The adjoint: add what segments count to the labels of their tokens; parts that are no segments are passed over."""
    for j in range(parts.shape[0]):
        row, label = parts[j] // n_labels, parts[j] % n_labels
        t, m = row // longest, row % longest + 1
        if m == 1 and t < tokens.shape[0]:
            tokens[t, max(4 * label - 3, 0)] += counts[j]
        elif label > 0 and t + m <= tokens.shape[0]:
            tokens[t, 4 * label - 2] += counts[j]
            for u in range(t + 1, t + m - 1):
                tokens[u, 4 * label - 1] += counts[j]
            tokens[t + m - 1, 4 * label] += counts[j]
