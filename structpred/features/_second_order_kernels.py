# mypy: ignore-errors
"""Compiled features of siblings and grandparents: a hash a template and word of the triple, added up to a place in its block.

A part is a triple of words: head, sibling, modifier, or grandparent, head, modifier. The place of template t is the top bits of
table[0, a, t] + table[1, b, t] + table[2, c, t] + code, mod 2^32, where words count from 0, the root; n + 1 stands for the start
of a side, n + 2 for its end. The code is that of the directions, or of these and the distance of the last two words.

What goes together comes as one tuple: rows (triples (3, rows), both codes (2, rows), the first template of each row, table).
"""

import numpy as np

from structpred.features._arc_kernels import N_CLASSES, U, distance_class
from structpred.runtime.jit import njit

#: how many parts are looked at in one go
TOGETHER = 256
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
def list_triples(sizes, words, ends, half, triples, codes, begins):
    """A row for each part behind the arcs, in their order: its words, both codes, and the first of its templates."""
    n = sizes.shape[0] - 1
    row = 0
    for h in range(n + 1):
        n_heads, left, right = sizes[h]
        for side in range(2):
            first = ends[h] + side * left
            d = right if side else left
            for j in range(1, d + 2):
                m = words[first + j - 1] if j <= d else n + 2
                for i in range(j):
                    s = words[first + i - 1] if i else n + 1
                    far = distance_class(s, m) if i and j <= d else NO_DISTANCE
                    row = put(row, h, s, m, side, far, 0, triples, codes, begins)
        for j in range(ends[h], ends[h] + left + right):
            m = words[j]
            for i in range(ends[h + 1] - n_heads, ends[h + 1]):
                g = words[i]
                directions = 4 * (g < h) + 2 * (h < m) + (g < m)
                row = put(row, g, h, m, directions, distance_class(h, m), half, triples, codes, begins)


@njit(cache=True, nogil=True, borrows=True)
def put(row, a, b, c, directions, far, begin, triples, codes, begins):
    """Write one row; returns the next one."""
    triples[0, row] = a
    triples[1, row] = b
    triples[2, row] = c
    codes[0, row] = CODES[0, directions, far]
    codes[1, row] = CODES[1, directions, far]
    begins[row] = begin
    return row + 1


@njit(cache=True, nogil=True, borrows=True)
def place_row(r, shift, rows, kinds, places):
    """The places of the weights of one part."""
    triples, codes, begins, table = rows
    first, second, third = table[0, triples[0, r]], table[1, triples[1, r]], table[2, triples[2, r]]
    for k in range(places.shape[0]):
        t = begins[r] + k
        x = U(U(first[t] + second[t]) + U(third[t] + codes[kinds[t], r])) >> shift
        places[k] = U(U(t) << U(U(32) - shift)) + x


@njit(cache=True, nogil=True)
def add_scores(w, scale, shift, rows, kinds, out):
    """Add scale times what the templates give to each part; places first: many weights are then fetched at once."""
    places = np.empty((TOGETHER, kinds.shape[0] // 2), np.uint32)
    for start in range(0, out.shape[0], TOGETHER):
        end = min(start + TOGETHER, out.shape[0])
        for r in range(start, end):
            place_row(r, shift, rows, kinds, places[r - start])
        for r in range(start, end):
            total = 0.0
            for t in range(places.shape[1]):
                total += w[places[r - start, t]]
            out[r] += scale * total


@njit(cache=True, nogil=True)
def emit(parts, values, shift, rows, kinds, idx, val):
    """Write the features of some parts, each as often as `values` says."""
    places = np.empty(kinds.shape[0] // 2, np.uint32)
    for q in range(parts.shape[0]):
        place_row(parts[q], shift, rows, kinds, places)
        idx[q * places.shape[0] : (q + 1) * places.shape[0]] = places
        val[q * places.shape[0] : (q + 1) * places.shape[0]] = values[q]
