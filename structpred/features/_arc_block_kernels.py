# mypy: ignore-errors
"""Arc features of whole blocks: scores of some sentences; features of many arcs, of a tree minus another or of dense mu."""

import numpy as np

from structpred.features._arc_kernels import (
    U,
    counting_code,
    distance_class,
    emit_arc,
    emit_between,
    positional_code,
    prepare_sentence,
)
from structpred.features._arc_score_kernels import P, add_template, fill_counting, finish_rows, score_sentence, score_unary
from structpred.runtime.jit import njit

#: up to this number of arcs have their features sorted when they are written
SORTED = 64
#: bytes that the processor reads from memory at once
LINE = 64


@njit(cache=True, nogil=True, borrows=True)
def score_block(w, scale, offsets, start, stop, corpus, compiled, candidates, arcs, room, forbidden, places, out):
    """out[places[i - start]:]: scale times the arc scores of sentence i; arcs that are not listed are forbidden.

    As many sentences as there is room for are scored together; one that is alone stays prepared.
    """
    most = room[4].shape[1] - 8
    columns = arcs[0].shape[2] - 8
    a = start
    while a < stop:
        b = a + 1
        while (
            b < stop and places[b + 1 - start] - places[a - start] <= most and offsets[b + 1] + b + 1 - offsets[a] - a <= columns
        ):
            b += 1
        if b == a + 1:
            first = offsets[a]
            n = offsets[b] - first
            prepare_sentence(corpus, first, n, 0, compiled, arcs[0], arcs[6], arcs[7])
            score_sentence(w, None, n, first, candidates, arcs, room, out[places[a - start] : places[b - start]])
        else:
            score_together(w, offsets, a, b, corpus, compiled, candidates, arcs, room, places[a - start :], out)
        a = b
    if scale != 1.0:
        for a in range(places[0], places[stop - start]):
            out[a] *= scale
    if candidates[0].shape[0] > 1:
        for i in range(start, stop):
            forbid(offsets[i], offsets[i + 1] - offsets[i], candidates, forbidden, out[places[i - start] : places[i - start + 1]])


@njit(cache=True, nogil=True, borrows=True)
def forbid(first, n, candidates, forbidden, own):
    """Add `forbidden` to the scores of arcs that are not listed."""
    listed, heads = candidates
    for m in range(n):
        k = listed[first + m]
        for h in range(n + 1):
            if k < listed[first + m + 1] and heads[k] == h:
                k += 1
            else:
                own[m * (n + 1) + h] += forbidden


@njit(cache=True, nogil=True, borrows=True)
def score_together(w, offsets, start, stop, corpus, compiled, candidates, arcs, room, places, out):
    """out[places[i - start]:]: what `score_sentence` gives for sentence i, to the last bit.

    Templates come one after the other, each for all sentences: its block of weights is read from memory once.
    """
    hashes, _, shifts, bases, _, _, counts, tags, _ = arcs
    out[places[0] : places[stop - start]] = 0.0
    for i in range(start, stop):
        piece = _piece(offsets, start, i, places)
        prepare_sentence(corpus, piece[0], piece[1], piece[2], compiled, hashes, counts, tags)
        fill_counting(piece, counts, room[2], room[3])
    n_arcs = places[stop - start] - places[0]
    for t in range(room[0]):
        size = np.int64(1) << np.int64(U(32) - shifts[t])
        if n_arcs * LINE >= size * w.itemsize and candidates[0].shape[0] == 1:
            room[6][0] = fetched(w, bases[t], size)
        for i in range(start, stop):
            add_template(w, None, t, _piece(offsets, start, i, places), candidates, arcs, room, out)
    for i in range(start, stop):
        piece = _piece(offsets, start, i, places)
        score_unary(w, None, piece[1], piece[2], arcs, room)
        finish_rows(w, None, piece, candidates, arcs, room, out)


@njit(cache=True, nogil=True, borrows=True)
def fetched(w, base, size):
    """Some sum over a block of weights, which then is in the cache: in this order it comes faster than at random."""
    total = 0.0
    for k in range(P(base), P(base) + P(size), P(LINE // w.itemsize)):
        total += w[k]
    return total


@njit(cache=True, nogil=True, borrows=True)
def _piece(offsets, start, i, places):
    """The whole of sentence i of those from `start` on, as a piece (see `_arc_score_kernels`)."""
    first = offsets[i]
    n = offsets[i + 1] - first
    here = places[i - start]
    return first, n, first + i - offsets[start] - start, 1, n + 1, here - places[0], here


@njit(cache=True, nogil=True)
def emit_listed(heads, modifiers, values, arcs, idx, val):
    """Write the features of arcs, from heads to other words, one template after the other; returns how many pairs there are.

    Blocks of weights ascend, and within a block the pairs of a few arcs are sorted, equal ones in the order of the arcs: as
    one number each, which moves faster than a pair.
    """
    hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen = arcs
    codes = np.zeros((6, heads.shape[0]), np.uint32)
    for a in range(heads.shape[0]):
        c = distance_class(heads[a], modifiers[a])
        for kind in range(1, 3):
            codes[kind, a] = positional_code(kind, c)
        for kind in range(3, 6):
            codes[kind, a] = counting_code(kind, heads[a], modifiers[a], counts)
    keys = np.empty(heads.shape[0], np.int64)
    few = heads.shape[0] <= SORTED
    k = 0
    for t in range(kinds.shape[0]):
        code = codes[kinds[t]]
        for a in range(heads.shape[0]):
            place = U(U(hashes[0, t, heads[a]] + hashes[1, t, modifiers[a]]) + code[a]) >> shifts[t]
            key = (np.int64(place) << 32) + a
            at = a
            while few and at > 0 and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                at -= 1
            keys[at] = key
        base = np.int64(bases[t])
        for a in range(heads.shape[0]):
            idx[k] = base + (keys[a] >> 32)
            val[k] = values[keys[a] & 0xFFFFFFFF]
            k += 1
    for a in range(heads.shape[0]):
        k = emit_between(heads[a], modifiers[a], values[a], between, n_tags, tags, seen, idx, val, k)
    return k


@njit(cache=True, nogil=True)
def emit_arcs(parts, values, n, arcs, idx, val):
    """Write the features of many arcs; returns how many pairs there are. parts: (m - 1) * (n + 1) + h."""
    ends = np.empty((2, parts.shape[0]), np.int64)
    own = np.empty(parts.shape[0])
    size = 0
    for a in range(parts.shape[0]):
        h = parts[a] % (n + 1)
        m = parts[a] // (n + 1) + 1
        if h != m:
            ends[0, size] = h
            ends[1, size] = m
            own[size] = values[a]
            size += 1
    return emit_listed(ends[0, :size], ends[1, :size], own[:size], arcs, idx, val)


@njit(cache=True, nogil=True)
def emit_difference(truth, found, arcs, idx, val):
    """The features of the heads `truth` minus those of `found` as unsorted pairs, for the sentence that was prepared last."""
    ends = np.empty((2, 2 * truth.shape[0]), np.int64)
    values = np.empty(2 * truth.shape[0])
    size = 0
    for m in range(truth.shape[0]):
        if found[m] != truth[m]:
            for side in range(2):
                h = truth[m] if side == 0 else found[m]
                if h != m + 1:
                    ends[0, size] = h
                    ends[1, size] = m + 1
                    values[size] = 1.0 if side == 0 else -1.0
                    size += 1
    return emit_listed(ends[0, :size], ends[1, :size], values[:size], arcs, idx, val)


@njit(cache=True, nogil=True, borrows=True)
def spread_arcs(mu, n, coef, arcs, idx, val, out):
    """out += coef * Psi^T mu for dense mu of one sentence."""
    for m in range(1, n + 1):
        for h in range(n + 1):
            x = mu[(m - 1) * (n + 1) + h]
            if x != 0.0:
                k = emit_arc(h, m, x, arcs, idx, val, 0)
                for j in range(k):
                    out[idx[j]] += coef * x


@njit(cache=True, nogil=True, borrows=True)
def project_arcs(mu, n, arcs, idx, val, scratch):
    """<mu, Psi scratch>: the squared norm of scratch, if scratch = Psi^T mu."""
    total = 0.0
    for m in range(1, n + 1):
        for h in range(n + 1):
            x = mu[(m - 1) * (n + 1) + h]
            if x != 0.0:
                k = emit_arc(h, m, x, arcs, idx, val, 0)
                inner = 0.0
                for j in range(k):
                    inner += scratch[idx[j]]
                total += x * inner
    return total


@njit(cache=True, nogil=True, borrows=True)
def flush_arcs(n, coef, arcs, idx, val, scratch, w):
    """w += coef * scratch where any arc of the sentence has a feature; scratch becomes zero there."""
    for m in range(1, n + 1):
        for h in range(n + 1):
            k = emit_arc(h, m, 1.0, arcs, idx, val, 0)
            for j in range(k):
                x = scratch[idx[j]]
                if x != 0.0:
                    w[idx[j]] += coef * x
                    scratch[idx[j]] = 0.0
