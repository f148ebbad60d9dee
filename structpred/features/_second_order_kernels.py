# mypy: ignore-errors
"""Compiled features of siblings and grandparents: a hash a template and word of the triple, added up to a place in its block.

A part is a triple of words: head, sibling, modifier, or grandparent, head, modifier. The place of template t is the top bits of
table[0, a, t] + table[1, b, t] + table[2, c, t] + code, mod 2^32, where words count from 0, the root; n + 1 stands for the start
of a side, n + 2 for its end. The code is that of the directions, or of these and the distance of the last two words.
"""

import numpy as np

from structpred.features._arc_kernels import N_CLASSES, U, distance_class
from structpred.runtime.jit import njit

#: how many parts are looked at in one go
ROWS = 256
#: the last class: no distance from a start or an end
NO_DISTANCE = 2 * N_CLASSES
_codes = np.random.default_rng(0x5EC0).integers(1, 1 << 32, size=(2, 8, NO_DISTANCE + 1), dtype=np.uint32)
_codes[0] = _codes[0, :, :1]
CODES = _codes


@njit(cache=True, nogil=True)
def hash_words(codes, first, n, attributes, seeds, table):
    """table[role, word, t]: of the attribute number attributes[t, role]; zero where that is negative."""
    for t in range(attributes.shape[0]):
        for role in range(3):
            attribute = attributes[t, role]
            for p in range(n + 3):
                x = U(0)
                if attribute >= 0:
                    x = U(7 + 4 * max(p - n, 0)) if p == 0 or p > n else codes[attribute, first + p - 1]
                    x = U(U(x ^ seeds[t, role]) * U(0x9E3779B1))
                    x = U(x ^ (x >> U(15)))
                    x = U(x * U(0x85EBCA77))
                    x = U(x ^ (x >> U(13)))
                table[role, p, t] = x


@njit(cache=True, nogil=True)
def list_triples(sizes, words, ends, blocks, part, triples, codes):
    """Siblings first, then grandparents: the part, its words, and both codes. Returns how many siblings there are."""
    n = sizes.shape[0] - 1
    n_siblings = 0
    for h in range(n + 1):
        k = blocks[h]
        for side in range(2):
            begin = ends[h] + side * sizes[h, 1]
            d = sizes[h, 1 + side]
            for j in range(1, d + 2):
                m = words[begin + j - 1] if j <= d else n + 2
                for i in range(j):
                    s = words[begin + i - 1] if i else n + 1
                    part[n_siblings] = k
                    far = distance_class(s, m) if i and j <= d else NO_DISTANCE
                    n_siblings = put(n_siblings, h, s, m, side, far, triples, codes)
                    k += 1
    row = n_siblings
    for h in range(n + 1):
        d = sizes[h, 1] + sizes[h, 2]
        k = blocks[h + 1] - d * sizes[h, 0]
        for j in range(ends[h], ends[h] + d):
            m = words[j]
            for i in range(ends[h] + d, ends[h + 1]):
                g = words[i]
                part[row] = k
                directions = 4 * (g < h) + 2 * (h < m) + (g < m)
                row = put(row, g, h, m, directions, distance_class(h, m), triples, codes)
                k += 1
    return n_siblings


@njit(cache=True, nogil=True, borrows=True)
def put(row, a, b, c, directions, far, triples, codes):
    """Write one triple; returns the next row."""
    triples[0, row] = a
    triples[1, row] = b
    triples[2, row] = c
    codes[0, row] = CODES[0, directions, far]
    codes[1, row] = CODES[1, directions, far]
    return row + 1


@njit(cache=True, nogil=True)
def add_scores(w, scale, shift, part, triples, codes, n_siblings, kinds, table, out):
    """Add scale times what the templates give to each part: the first half of them to siblings, the others to grandparents."""
    half = kinds.shape[0] // 2
    places = np.empty((ROWS, half), np.uint32)  # weights lie far apart: that of the next ones is fetched while one is waited for
    for start in range(0, part.shape[0], ROWS):
        end = min(start + ROWS, part.shape[0])
        for r in range(start, end):
            place_row(r, 0 if r < n_siblings else half, shift, triples, codes, kinds, table, places[r - start])
        for r in range(start, end):
            total = 0.0
            for t in range(half):
                total += w[places[r - start, t]]
            out[part[r]] += scale * total


@njit(cache=True, nogil=True, borrows=True)
def place_row(r, begin, shift, triples, codes, kinds, table, places):
    """The places of one part's weights, by the templates from `begin` on."""
    first, second, third = table[0, triples[0, r]], table[1, triples[1, r]], table[2, triples[2, r]]
    for k in range(places.shape[0]):
        t = begin + k
        x = U(U(first[t] + second[t]) + U(third[t] + codes[kinds[t], r])) >> shift
        places[k] = U(U(t) << U(U(32) - shift)) + x


@njit(cache=True, nogil=True)
def emit(rows, values, shift, triples, codes, n_siblings, kinds, table, idx, val):
    """Write the features of the parts of some rows, each as often as `values` says."""
    half = kinds.shape[0] // 2
    places = np.empty(half, np.uint32)
    for q in range(rows.shape[0]):
        r = rows[q]
        place_row(r, 0 if r < n_siblings else half, shift, triples, codes, kinds, table, places)
        idx[q * half : (q + 1) * half] = places
        val[q * half : (q + 1) * half] = values[q]
