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


@njit(cache=True, nogil=True)
def add_scores(w, scale, shift, rows, kinds, out):
    """Add scale times what the templates give to each part; places first: many weights are then fetched at once."""
    triples, codes, begins, table = rows
    half = kinds.shape[0] // 2
    places = np.empty((TOGETHER, half), np.uint32)
    for start in range(0, out.shape[0], TOGETHER):
        end = min(start + TOGETHER, out.shape[0])
        for r in range(start, end):
            first, second, third = table[0, triples[0, r]], table[1, triples[1, r]], table[2, triples[2, r]]
            for k in range(half):
                t = begins[r] + k
                x = U(U(first[t] + second[t]) + U(third[t] + codes[kinds[t], r])) >> shift
                places[r - start, k] = U(U(t) << U(U(32) - shift)) + x
        for r in range(start, end):
            total = 0.0
            for k in range(half):
                total += w[places[r - start, k]]
            out[r] += scale * total
