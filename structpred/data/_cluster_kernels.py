# mypy: ignore-errors
"""The compiled loop of Brown clustering (Brown et al. 1992), with a window of classes (Liang 2005), in whole numbers.

With n_ab, how often class b follows class a, and m_a = sum_b n_ab = sum_b n_ba, n times the mutual information of neighbours is
sum_ab F(n_ab) - 2 sum_a F(m_a) + F(n). F, a table of x log x in multiples of 1 / UNIT, makes sums exact in any order: what was
updated for long is what a count from scratch gives. tables: (2, S, S), n_ab and its transpose, to read rows. totals: the m_a, 0
where a class is free. Class 0 has what stands around sentences, and the words to come.
"""

import numpy as np

from structpred.runtime.jit import njit

UNIT = float(1 << 24)
FREE = np.int64(2**62)


@njit(cache=True, nogil=True)
def move(side, source, target, k, count, tables, shared, stale, F):
    """Neighbours of class k that came after (side 0) or before class source are those of class target.

    shared[i, j] + shared[j, i]: what classes i and j lose where they meet the others, if they become one: F(x) + F(y) - F(x + y)
    of each pair of their numbers, 0 where one of them is.
    """
    for group, change in ((source, -count), (target, count)):
        i, j = (group, k) if side == 0 else (k, group)
        old, new = tables[0, i, j], tables[0, i, j] + change
        tables[0, i, j] = tables[1, j, i] = new
        stale[i] = stale[j] = True
        for turn, a, b in ((0, i, j), (1, j, i)):
            for other in range(1, tables.shape[1]):
                x = tables[1 - turn, b, other]
                if x and i != j and other != i and other != j:
                    shared[a, other] += F[new] - F[new + x] - F[old] + F[old + x]


@njit(cache=True, nogil=True)
def cluster(first, last, groups, counts, neighbours, tables, totals, shared, losses, stale, F, merges):
    """Steps first..last-1: the next word becomes a class; with more than S - 2 of them, or without a word, two classes merge.

    They are the two that lose least, the first of equals. groups, counts: the class of each word, and how often it occurs.
    neighbours: row pointers, words and counts of what comes after each word; and before it. losses: of two classes, above the
    diagonal, FREE elsewhere. merges: of each step the class that stays, the other, the loss.
    """
    n, n_words = len(totals), len(groups)
    for w in range(first, last):
        if w < n_words:
            new = 1 + totals[1:].argmin()  # the first that is free
            for side, (starts, words, times) in enumerate(neighbours):
                for e in range(starts[w], starts[w + 1]):
                    move(side, 0, new, groups[words[e]], times[e], tables, shared, stale, F)
                groups[w] = new
            totals[0] -= counts[w]
            totals[new] = counts[w]
        if w < n - 1:
            continue
        least, a, b = FREE, 0, 0
        for i in range(1, n):
            for j in range(i + 1, n):
                if (stale[i] or stale[j]) and totals[i] and totals[j]:
                    ours = tables[0, i, i], tables[0, i, j], tables[0, j, i], tables[0, j, j]
                    within = F[ours[0]] + F[ours[1]] + F[ours[2]] + F[ours[3]] - F[sum(ours)]
                    alone = F[totals[i]] + F[totals[j]] - F[totals[i] + totals[j]]
                    losses[i, j] = shared[i, j] + shared[j, i] + within - 2 * alone
            if losses[i].min() < least:
                least, a, b = losses[i].min(), i, losses[i].argmin()
        stale[:] = False
        if totals[a] < totals[b]:  # the rarer one has fewer neighbours to move
            a, b = b, a
        for side in range(2):
            for k in range(n):
                if tables[side, b, k]:
                    move(side, b, a, k, tables[side, b, k], tables, shared, stale, F)
        totals[a] += totals[b]
        totals[b] = 0
        losses[b], losses[:, b], stale[a] = FREE, FREE, True
        merges[w] = a, b, least
        if w < n_words:
            groups[groups == b] = a
