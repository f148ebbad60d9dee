# mypy: ignore-errors
"""Compiled sums over the tokens inside segments, and their adjoint; parts are those of the semi-Markov oracle.

Label 0 is outside of all phrases. Tokens have labels of their own: 0 under label 0, whose segments are one token long; under
another label l 4 l - 3 where a token is a segment alone, 4 l - 2 where it starts one, 4 l - 1 inside, 4 l where it ends one.

space: how many weights tokens have, n_labels, longest, the row of starts, the offsets of sequences, and of tokens and of segments
indices, values, indptr and the width of their tables of weights.
"""

import numpy as np

from structpred.core._sparse_kernels import in_order
from structpred.features._feature_kernels import add_bounds, pairs_of_sequence, score_rows
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
def inside_of(mu, length, longest, n_labels):
    """The adjoint: how often tokens have their labels, (length, 4 * n_labels - 3), where segments are counted by mu."""
    tokens, longer = np.zeros((length, 4 * n_labels - 3)), np.empty(n_labels)
    for t in range(length):
        row = t * longest * n_labels
        tokens[t, 0] = mu[row]
        longer[:] = 0.0
        for m in range(min(longest, length - t), 1, -1):
            for label in range(1, n_labels):
                x = mu[row + (m - 1) * n_labels + label]
                longer[label] += x
                tokens[t + m - 1, 4 * label] += x
                if m > 2:
                    tokens[t + m - 2, 4 * label - 1] += longer[label]
        for label in range(1, n_labels):
            tokens[t, 4 * label - 3] = mu[row + label]
            tokens[t, 4 * label - 2] = longer[label]
    return tokens


@njit(cache=True, nogil=True)
def score_segments(w, scale, forbidden, start, space, places, flat):
    """The part scores of sequences from `start` on at scale * w, with `forbidden` added to longer segments of label 0."""
    n_token_weights, n_labels, longest, start_row, offsets, (indices, values, indptr, width), whole = space
    of_tokens, table = w[:n_token_weights].reshape((-1, width)), w[n_token_weights:].reshape((-1, whole[3]))
    for k in range(places.shape[0] - 1):
        first, length, out = offsets[start + k], offsets[start + k + 1] - offsets[start + k], flat[places[k] : places[k + 1]]
        n = length * longest
        tokens, segments = np.empty((length, width)), np.empty((n, whole[3]))
        score_rows(of_tokens, indices, values, indptr, first, length, tokens)
        score_rows(table, whole[0], whole[1], whole[2], first * longest, n, segments)
        add_bounds(table, start_row, 0, n, 0, n, segments)
        for row in range(n + n_labels):
            for label in range(n_labels):
                out[row * n_labels + label] = segments[row, label] if row < n else table[start_row + 2 + row - n, label]
        add_inside(tokens, longest, n_labels, out)
        for row in range(n + n_labels):
            for label in range(n_labels):
                out[row * n_labels + label] *= scale
            out[row * n_labels] += forbidden if row < n and row % longest > 0 else 0.0


@njit(cache=True, nogil=True)
def combine_segments(i, parts, counts, space):
    """The joint features of sparse part counts of sequence i, as sorted unique pairs."""
    n_token_weights, n_labels, longest, start_row, offsets, (indices, values, indptr, width), whole = space
    first, last = offsets[i], offsets[i + 1]
    mu = np.zeros(((last - first) * longest + n_labels) * n_labels)
    for j in range(parts.shape[0]):
        mu[parts[j]] += counts[j]
    some = inside_of(mu, last - first, longest, n_labels).reshape(-1)
    on = np.flatnonzero(some)
    idx, val = pairs_of_sequence(on, some[on], indices, values, indptr, first, last, -1, width, 4 * n_labels - 3)
    idx, val = in_order(idx, val, n_token_weights)
    begin, end = first * longest, last * longest
    more = pairs_of_sequence(parts, counts, whole[0], whole[1], whole[2], begin, end, start_row, whole[3], n_labels)
    idx2, val2 = in_order(more[0], more[1], (start_row + 2 + n_labels) * whole[3])
    return np.concatenate((idx, idx2 + n_token_weights)), np.concatenate((val, val2))
