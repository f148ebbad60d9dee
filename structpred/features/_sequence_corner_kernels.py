# mypy: ignore-errors
"""Visits of blocks of corners over label sequences: those of task/fast/_corner_visit_kernels.py with the features of sequences.

corpus: (feature indices, values, indptr of tokens, offsets of sequences, start_row, width, n_labels).
"""

import numpy as np

from structpred.features._feature_kernels import pairs_of_sequence
from structpred.runtime.jit import family, njit
from structpred.task.fast._corner_kernels import corner_of
from structpred.task.fast._corner_visit_kernels import VISITS


@njit(cache=True, nogil=True)
def lift(w, i, parts, counts, corpus):
    """The joint features of part counts of sequence i, as pairs in any order."""
    indices, values, indptr, offsets, start_row, width, n_labels = corpus
    return pairs_of_sequence(parts, counts, indices, values, indptr, offsets[i], offsets[i + 1], start_row, width, n_labels)


@njit(cache=True, nogil=True)
def dots(w, i, arena, first_slot, n, corpus):
    """The inner products of w with the joint features of corners first_slot..first_slot + n - 1, which are of sequence i."""
    indices, values, indptr, offsets, start_row, width, n_labels = corpus
    first = offsets[i]
    last = offsets[i + 1]
    n_emissions = (last - first) * n_labels
    out = np.zeros(n)
    for k in range(n):
        parts, counts = corner_of(arena, first_slot + k)
        for m in range(parts.shape[0]):
            score = 0.0
            if parts[m] < n_emissions:
                t = first + parts[m] // n_labels
                label = parts[m] % n_labels
                for f in range(indptr[t], indptr[t + 1]):
                    score += np.float64(values[f]) * np.float64(w[np.int64(indices[f]) * width + label])
                if start_row >= 0 and t == first:
                    score += np.float64(w[start_row * width + label])
                if start_row >= 0 and t == last - 1:
                    score += np.float64(w[(start_row + 1) * width + label])
            else:
                pair = parts[m] - n_emissions
                score = np.float64(w[(start_row + 2 + pair // n_labels) * width + pair % n_labels])
            out[k] += score * counts[m]
    return out


@njit(cache=True, nogil=True)
def size_of(i, corpus):
    """The number of parts of sequence i."""
    _, _, _, offsets, start_row, _, n_labels = corpus
    return (offsets[i + 1] - offsets[i] + (n_labels if start_row >= 0 else 0)) * n_labels


*_, visit, cached_pass = family(__name__, VISITS, lift, dots, size_of)
