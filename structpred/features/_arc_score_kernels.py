# mypy: ignore-errors
"""Compiled scores of arcs: what each template gives all arcs of some sentences, one template after the other.

What goes together comes as one tuple: arcs as in `_arc_kernels`; room (n_pair, n_head: the groups of templates, and working
memory: codes, starts, places, unary, acc, classes); piece (first, n, at, low, high, here, begin): modifiers low..high-1 of the
sentence of n words from word `first` on, prepared in the columns from `at` on; its codes begin at `here`, its scores at `begin`.

codes holds the codes of an arc's property, so that those of one modifier lie beside each other for every kind: zeros; those of
direction and of distance, by the distance alone, 0 in the middle; those of what is between, a number for every arc. starts[kind]
is where the first number, the middle, or the first arc is; starts[6] is the middle of classes, the distance classes.
Indices are unsigned: a signed one may count from the end, which keeps loops from being vectorised.
"""

import numpy as np

from structpred.data.arc_templates import POSITIONAL
from structpred.features._arc_kernels import KIND_CODES, N_CLASSES, U, distance_class, positional_code
from structpred.runtime.jit import njit

P = np.uintp
#: how many templates are added up in one go where their weights do not stay in the cache anyway
TOGETHER = 4


@njit(cache=True, nogil=True, borrows=True)
def fill_positional(longest, codes, starts, classes):
    """Write what depends on the distance alone, up to `longest`."""
    for d in range(1, longest + 1):
        for far in range(-d, d + 1, 2 * d):  # head minus modifier
            c = distance_class(0, d) if far < 0 else distance_class(d, 0)
            classes[starts[6] + far] = c
            for kind in range(1, POSITIONAL):
                codes[starts[kind] + far] = positional_code(kind, c)


@njit(cache=True, nogil=True, borrows=True)
def fill_counting(piece, counts, codes, starts):
    """Write the codes of what is between the ends of each arc: `counting_code` of all kinds at once."""
    _, n, at, low, high, here, _ = piece
    for m in range(low, high):
        row = P(here + (m - low) * (n + 1))
        for right in range(2):
            mine = P(at + m + right)
            begin = P(m + 1 if right else 0)
            end = P(n + 1 if right else m)
            for h in range(begin, end):
                theirs = P(at) + h + P(1 - right)
                verbs = min(abs(counts[0, mine] - counts[0, theirs]), 2) + 3 * right
                marks = min(abs(counts[1, mine] - counts[1, theirs]), 2)
                conjunctions = min(abs(counts[2, mine] - counts[2, theirs]), 1)
                codes[P(starts[3]) + row + h] = KIND_CODES[3, P(verbs)]
                codes[P(starts[4]) + row + h] = KIND_CODES[4, P(marks + 3 * right)]
                codes[P(starts[5]) + row + h] = KIND_CODES[5, P((verbs * 3 + marks) * 2 + conjunctions)]


@njit(cache=True, nogil=True, borrows=True)
def code_row(kind, m, piece, starts):
    """Where the codes of the arcs to modifier m begin."""
    if kind == 0:
        return starts[0]
    if kind < POSITIONAL:
        return starts[kind] - m
    return starts[kind] + piece[5] + (m - piece[3]) * (piece[1] + 1)


@njit(cache=True, nogil=True, borrows=True)
def fill_places(t, slot, piece, hashes, kinds, shifts, codes, starts, places):
    """places[slot, arc of the piece]: the place in the block of template t; the end of a row runs over into the next one."""
    _, n, at, low, high, _, _ = piece
    width = P((n + 8) & ~7)
    row = P(t)
    to = P(slot)
    column = P(at)
    shift = shifts[t]
    for m in range(low, high):
        of_m = hashes[1, t, at + m]
        code = P(code_row(kinds[t], m, piece, starts))
        arc = P((m - low) * (n + 1))
        for h in range(width):
            places[to, arc + h] = U(U(hashes[0, row, column + h] + of_m) + codes[code + h]) >> shift


@njit(cache=True, nogil=True, borrows=True)
def add_one(w, factor, base, places, size, out, begin):
    """Add one template's weights to the arcs of a piece."""
    for a in range(P(size)):
        out[P(begin) + a] += factor * w[P(base) + P(places[0, a])]


@njit(cache=True, nogil=True, borrows=True)
def add_four(w, bases, t, places, size, out, begin):
    """Add those of four templates, in their order."""
    b0, b1, b2, b3 = P(bases[t]), P(bases[t + 1]), P(bases[t + 2]), P(bases[t + 3])
    for a in range(P(size)):
        x = out[P(begin) + a]
        x += w[b0 + P(places[0, a])]
        x += w[b1 + P(places[1, a])]
        x += w[b2 + P(places[2, a])]
        x += w[b3 + P(places[3, a])]
        out[P(begin) + a] = x


@njit(cache=True, nogil=True, borrows=True)
def add_listed(w, factor, t, piece, candidates, arcs, codes, starts, out):
    """The same as add_one for the listed heads alone: word m - 1 has heads[listed[m - 1]:listed[m]]."""
    first, n, at, low, high, _, begin = piece
    listed, heads = candidates
    hashes, kinds, shifts, bases = arcs[:4]
    for m in range(low, high):
        code = code_row(kinds[t], m, piece, starts)
        row = begin + (m - low) * (n + 1)
        for k in range(listed[first + m - 1], listed[first + m]):
            h = heads[k]
            place = U(U(hashes[0, t, at + h] + hashes[1, t, at + m]) + codes[code + h]) >> shifts[t]
            out[row + h] += factor * w[bases[t] + np.uint64(place)]


@njit(cache=True, nogil=True, borrows=True)
def add_template(w, factors, t, piece, candidates, arcs, room, out):
    """Add template t to the arcs of a piece."""
    hashes, kinds, shifts, bases = arcs[:4]
    _, _, codes, starts, places, _, _, _ = room
    factor = 1.0 if factors is None else factors[t]
    if candidates[0].shape[0] > 1:
        add_listed(w, factor, t, piece, candidates, arcs, codes, starts, out)
    else:
        fill_places(t, 0, piece, hashes, kinds, shifts, codes, starts, places)
        add_one(w, factor, bases[t], places, (piece[4] - piece[3]) * (piece[1] + 1), out, piece[6])


@njit(cache=True, nogil=True, borrows=True)
def add_templates(w, factors, piece, candidates, arcs, room, out):
    """Add all templates of two ends to the arcs of a piece, in their order."""
    hashes, kinds, shifts, bases = arcs[:4]
    n_pair, _, codes, starts, places, _, _, _ = room
    t = 0
    while t < n_pair:
        if factors is None and t + TOGETHER <= n_pair and candidates[0].shape[0] == 1:
            for k in range(TOGETHER):
                fill_places(t + k, k, piece, hashes, kinds, shifts, codes, starts, places)
            add_four(w, bases, t, places, (piece[4] - piece[3]) * (piece[1] + 1), out, piece[6])
            t += TOGETHER
        else:
            if factors is None or factors[t] != 0.0:
                add_template(w, factors, t, piece, candidates, arcs, room, out)
            t += 1


@njit(cache=True, nogil=True, borrows=True)
def score_unary(w, factors, n, at, arcs, room):
    """unary[0, at + h, c], unary[1, at + m, c]: what templates of one end give a word whose other end is in distance class c."""
    hashes, kinds, shifts, bases = arcs[:4]
    n_pair, n_head, _, _, _, unary, _, _ = room
    for side in range(2):
        begin = n_pair if side == 0 else n_pair + n_head
        end = n_pair + n_head if side == 0 else kinds.shape[0]
        for p in range(side, n + 1):  # heads 0..n, modifiers 1..n
            own = unary[side, at + p]
            own[:] = 0.0
            right = n - p
            left = p - 1 + side
            leftwards = _classes_within(
                left if side else right
            )  # the other end is a head to the left, or a modifier to the right
            rightwards = _classes_within(right if side else left)
            for t in range(begin, end):
                base = bases[t]
                x = hashes[side, t, at + p]
                factor = 1.0 if factors is None else factors[t]
                for c in range(leftwards):
                    own[c] += factor * w[base + np.uint64(U(x + positional_code(kinds[t], c)) >> shifts[t])]
                for c in range(N_CLASSES, N_CLASSES + rightwards):
                    own[c] += factor * w[base + np.uint64(U(x + positional_code(kinds[t], c)) >> shifts[t])]


@njit(cache=True, nogil=True, borrows=True)
def _classes_within(distance):
    """How many distance classes there are up to a distance."""
    return distance_class(0, distance) + 1 if distance > 0 else 0


@njit(cache=True, nogil=True, borrows=True)
def finish_rows(w, factors, piece, candidates, arcs, room, out):
    """Add what templates of one end and tags between give to the arcs of a piece; then arcs that are not listed become 0."""
    first, n, _, low, high, _, begin = piece
    listed, heads = candidates
    for m in range(low, high):
        row = begin + (m - low) * (n + 1)
        finish_row(w, factors, m, row, piece, arcs, room, out)
        if listed.shape[0] > 1:
            blank(out[row : row + n + 1], heads[listed[first + m - 1] : listed[first + m]])


@njit(cache=True, nogil=True, borrows=True)
def finish_row(w, factors, m, row, piece, arcs, room, out):
    """The same for modifier m, whose scores begin at `row`."""
    n = piece[1]
    at = piece[2]
    between, n_tags, _, tags, seen = arcs[4:]
    starts, unary, acc, classes = room[3], room[5], room[6], room[7]
    factor = 1.0 if factors is None else factors[-1]
    middle = P(starts[6] - m)
    for h in range(P(n + 1)):
        c = P(classes[middle + h])
        out[P(row) + h] += unary[0, P(at) + h, c] + unary[1, P(at + m), c]
    for right in range(2):
        acc[:] = 0.0
        seen[:] = 0
        step = 1 if right else -1
        h = m + step
        while 0 <= h <= n:
            tag = tags[at + h]
            out[row + h] += acc[tag]
            if not seen[tag]:
                seen[tag] = 1
                of_tag = P(between + ((right * n_tags + tags[at + m]) * n_tags + tag) * n_tags)
                for k in range(P(n_tags)):
                    acc[k] += factor * w[of_tag + k]
            h += step
    out[row + m] = 0.0


@njit(cache=True, nogil=True, borrows=True)
def blank(row, heads):
    """Zero where there is no listed head; heads ascend."""
    k = 0
    for h in range(row.shape[0]):
        if k < heads.shape[0] and heads[k] == h:
            k += 1
        else:
            row[h] = 0.0


@njit(cache=True, nogil=True, borrows=True)
def score_sentence(w, factors, n, first, candidates, arcs, room, out):
    """The scores of all arcs of the prepared sentence, n rows of n + 1; those of arcs that are not listed are 0.

    factors: of each template, and of tags between, as multiples of their weights; None: ones. As many modifiers as there is room
    for are scored together.
    """
    score_unary(w, factors, n, 0, arcs, room)
    most = max((room[4].shape[1] - 8) // (n + 1), 1)
    out[:] = 0.0
    for low in range(1, n + 1, most):
        piece = (first, n, 0, low, min(low + most, n + 1), 0, (low - 1) * (n + 1))
        fill_counting(piece, arcs[6], room[2], room[3])
        add_templates(w, factors, piece, candidates, arcs, room, out)
        finish_rows(w, factors, piece, candidates, arcs, room, out)
