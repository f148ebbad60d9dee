"""Brown clustering: word classes of text without labels, the leaves of a tree in which the path to each is a string of bits."""

import itertools
from array import array
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_array

from structpred.errors import DataError
from structpred.runtime.standard_error import can_rewrite, rewrite


def brown_clusters(sentences: Iterable[Iterable[str]], n_classes: int, *, min_count: int = 1) -> list[tuple[str, str, int]]:
    """Sort words into classes by their neighbours: path, word and count of each, by paths, then the most frequent first.

    Words, the most frequent first, become classes. Where there are more than n_classes, the two merge with which the mutual
    information of neighbours' classes falls least (Brown et al. 1992; Liang 2005); so do those that are left, to a tree. A prefix
    of a path is a larger class. min_count: rarer words are left out. Needs 40 n_classes^2 bytes.

    Raises DataError where there are fewer words than classes, or fewer than two.

    >>> text = [["a", "cat", "ran"], ["a", "dog", "ran"], ["the", "dog", "sat"], ["the", "cat", "sat"]]
    >>> [(path, word) for path, word, _ in brown_clusters(text, 3)]
    [('00', 'a'), ('00', 'the'), ('01', 'cat'), ('01', 'dog'), ('1', 'ran'), ('1', 'sat')]
    """
    from structpred.data import _cluster_kernels as kernels

    numbers: defaultdict[str, int] = defaultdict(itertools.count(1).__next__)
    text = array("i", [0])  # 0: around a sentence
    for sentence in sentences:
        text.extend([*map(numbers.__getitem__, sentence), 0])
    found, names = np.frombuffer(text, np.int32), ["", *numbers]
    counts = np.bincount(found, minlength=len(names))
    kept = sorted((np.flatnonzero(counts[1:] >= min_count) + 1).tolist(), key=lambda k: (-counts[k], names[k]))
    n, size = len(kept) + 1, n_classes + 2
    if not 2 <= n_classes < n:
        least = f"as many words that occur {min_count} times or more"
        raise DataError(f"expected at least 2 classes, and {least}, got {n_classes:,} classes and {n - 1:,} words")
    ranks = np.zeros(len(names), np.int64)
    ranks[kept] = np.arange(1, n)
    before, after = ranks[found[:-1]], ranks[found[1:]]
    pairs = csr_array((np.ones(len(after), np.int64), (before, after)), shape=(n, n))
    neighbours = tuple((side.indptr, side.indices, side.data) for side in (pairs, pairs.tocsc()))
    x, entries = np.arange(len(found)), np.zeros((3, size, size), np.int64)
    table = np.rint(x * np.log(np.maximum(x, 1)) * kernels.UNIT).astype(np.int64)
    totals, groups, merges = np.zeros(size, np.int64), np.zeros(n, np.int64), np.zeros((n + n_classes - 1, 3), np.int64)
    totals[0] = entries[:2, 0, 0] = len(after)
    state = entries[:2], totals, entries[2], np.full((size, size), kernels.FREE), np.zeros(size, np.bool_), table, merges
    for first in range(1, len(merges), 500):
        kernels.cluster(first, min(first + 500, len(merges)), groups, np.append(0, counts[kept]), neighbours, *state)
        if can_rewrite():
            rewrite(f"{min(first + 500, n - 1):,} of {n - 1:,} words have a class" if first + 500 < len(merges) else "")
    bits = [""] * size
    for one, other, _ in merges[: n - 1 : -1].tolist():
        bits[one], bits[other] = f"{bits[one]}0", f"{bits[one]}1"
    rows = [(bits[group], names[k], int(counts[k])) for k, group in zip(kept, groups[1:].tolist(), strict=True)]
    return sorted(rows, key=lambda row: row[0])
