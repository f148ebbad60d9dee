# mypy: ignore-errors
"""Compiled features of arcs: hashes a word and template, summed to a place in the template's own block of weights.

The place of template t for the arc from h to m is the top bits of  H[0, t, h] + H[1, t, m] + code of the arc's property,
mod 2^32: an arc costs one addition, one shift and one look-up a template. What templates of one end give is summed up for a
word and a distance class (`_arc_score_kernels`).
The weights of tags between the ends are a dense block [direction, tag of m, tag between, tag of h]: going outwards from m, a tag
that is met for the first time adds one row to a running vector over the tags of h.

What goes together comes as one tuple: corpus (codes, tags, classes of all words), compiled (looks, look_of, ends,
seeds of the templates), arcs (hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen: the templates, and the sentence
prepared last).
"""

import numpy as np

from structpred.runtime.jit import njit

U = np.uint32
#: distance classes 1, 2, 3, 4, 5-6, 7-10, 11-20, more; for heads to the left of the modifier, then for those to the right
N_CLASSES = 8
_codes = np.random.default_rng(0xA2C).integers(1, 1 << 32, size=(6, 36), dtype=np.uint32)
_codes[0] = 0  # no property of the arc
KIND_CODES = _codes


@njit(cache=True, nogil=True, borrows=True)
def distance_class(h, m):
    """The class of the distance, the direction included."""
    d = m - h if h < m else h - m
    k = d - 1
    if d > 20:
        k = 7
    elif d > 10:
        k = 6
    elif d > 6:
        k = 5
    elif d > 4:
        k = 4
    return k if h < m else k + N_CLASSES


@njit(cache=True, nogil=True, borrows=True)
def positional_code(kind, distance):
    """The code of kind 0, 1 or 2 (nothing, direction, distance) for a distance class."""
    if kind == 0:
        return U(0)
    return KIND_CODES[1, 1 if distance >= N_CLASSES else 0] if kind == 1 else KIND_CODES[2, distance]


@njit(cache=True, nogil=True, borrows=True)
def counting_code(kind, h, m, counts):
    """The code of kind 3, 4 or 5: verbs, punctuation, or both and conjunctions, between h and m."""
    low = min(h, m) + 1
    high = max(h, m)
    verbs = 0
    marks = 0
    conjunctions = 0
    if high > low:
        verbs = min(counts[0, high] - counts[0, low], 2)
        marks = min(counts[1, high] - counts[1, low], 2)
        conjunctions = min(counts[2, high] - counts[2, low], 1)
    right = 1 if h > m else 0
    if kind == 3:
        return KIND_CODES[3, right * 3 + verbs]
    if kind == 4:
        return KIND_CODES[4, right * 3 + marks]
    return KIND_CODES[5, ((right * 3 + verbs) * 3 + marks) * 2 + conjunctions]


@njit(cache=True, nogil=True, borrows=True)
def look_up(codes, first, n, looks, rows):
    """rows[k, p]: the code that looks[k], an attribute and an offset, finds at place p of a sentence of n words."""
    for k in range(looks.shape[0]):
        attribute = looks[k, 0]
        offset = looks[k, 1]
        rows[k, 0] = U(7) if offset == 0 else U(13)  # the root, and what would be next to it
        begin = min(max(1, 1 - offset), n + 1)
        end = max(min(n, n - offset) + 1, begin)
        for p in range(1, begin):
            rows[k, p] = U(11)  # before the first word
        for p in range(begin, end):
            rows[k, p] = codes[attribute, first + p + offset - 1]
        for p in range(end, n + 1):
            rows[k, p] = U(17)  # after the last


@njit(cache=True, nogil=True)
def prepare_sentence(corpus, first, n, at, compiled, hashes, counts, own_tags):
    """Fill columns at..at+n of hashes (2, T), of counts (3), of classed words before a place, and of own_tags, the root's first.

    One template after the other is hashed for all words at once, so that the loops are vectorised: hashes needs room for whole
    vectors of 8 columns.
    """
    codes, tags, classes = corpus
    looks, look_of, ends, seeds = compiled
    own_tags[at] = 0
    for c in range(3):
        counts[c, at] = 0
        if n:
            counts[c, at + 1] = 0
        for p in range(1, n):
            counts[c, at + p + 1] = counts[c, at + p] + ((classes[first + p - 1] >> c) & 1)
    for p in range(n):
        own_tags[at + p + 1] = tags[first + p]
    width = np.uintp((n + 8) & ~7)
    to = np.uintp(at)
    rows = np.empty((looks.shape[0], width), np.uint32)
    look_up(codes, first, n, looks, rows)
    for t in range(seeds.shape[0]):
        for side in range(2):
            begin = ends[2 * t + side]
            end = ends[2 * t + side + 1]
            seed = seeds[t, side] if end > begin else U(0)
            for p in range(width):
                hashes[side, t, to + p] = seed
            for a in range(begin, end):
                k = look_of[a]
                for p in range(width):
                    x = U(U(hashes[side, t, to + p] ^ rows[k, p]) * U(0x9E3779B1))
                    x = U(x ^ (x >> U(15)))
                    x = U(x * U(0x85EBCA77))
                    hashes[side, t, to + p] = U(x ^ (x >> U(13)))


@njit(cache=True, nogil=True, borrows=True)
def emit_arc(h, m, value, arcs, idx, val, k):
    """Write the features of one arc, each `value` times, from place k on; returns the place behind them."""
    hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen = arcs
    if h == m:
        return k
    c = distance_class(h, m)
    for t in range(kinds.shape[0]):
        code = positional_code(kinds[t], c) if kinds[t] < 3 else counting_code(kinds[t], h, m, counts)
        code = U(U(hashes[0, t, h] + hashes[1, t, m]) + code) >> shifts[t]
        idx[k] = np.int64(bases[t] + np.uint64(code))
        val[k] = value
        k += 1
    return emit_between(h, m, value, between, n_tags, tags, seen, idx, val, k)


@njit(cache=True, nogil=True, borrows=True)
def emit_between(h, m, value, between, n_tags, tags, seen, idx, val, k):
    """Write the features of the tags between the ends of an arc from place k on; returns the place behind them."""
    seen[:] = 0
    base = between + ((1 if h > m else 0) * n_tags + tags[m]) * n_tags * n_tags + tags[h]
    for p in range(min(h, m) + 1, max(h, m)):
        tag = tags[p]
        if not seen[tag]:
            seen[tag] = 1
            idx[k] = base + tag * n_tags
            val[k] = value
            k += 1
    return k


@njit(cache=True, nogil=True)
def hash_arcs(corpus, offsets, heads, compiled, kinds, hashes, counts, own_tags, out):
    """out[word, t]: the 32-bit hash of template t for the arc to each word from its head."""
    codes = np.zeros(6, np.uint32)
    for i in range(offsets.shape[0] - 1):
        first = offsets[i]
        n = offsets[i + 1] - first
        prepare_sentence(corpus, first, n, 0, compiled, hashes, counts, own_tags)
        for m in range(1, n + 1):
            h = heads[first + m - 1]
            c = distance_class(h, m)
            for kind in range(1, 6):
                codes[kind] = positional_code(kind, c) if kind < 3 else counting_code(kind, h, m, counts)
            for t in range(kinds.shape[0]):
                out[first + m - 1, t] = U(U(hashes[0, t, h] + hashes[1, t, m]) + codes[kinds[t]])


@njit(cache=True, nogil=True, borrows=True)
def pack_known(slots, row_of, indptr, indices):
    """Write row_of[slots[t]], where it is not negative, for one word t after the other; returns how many there are."""
    size = 0
    for t in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            row = row_of[np.uintp(slots[t, k])]
            indices[np.uintp(size)] = row  # written over by the next one, if it is none
            size += row >= 0
        indptr[t + 1] = size
    return size
