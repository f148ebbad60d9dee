# mypy: ignore-errors
"""Compiled features of arcs: hashes a word and template, summed to a place in the template's own block of weights.

The place of template t for the arc from h to m is the top bits of  H[0, t, h] + H[1, t, m] + code of the arc's property,
mod 2^32: an arc costs one addition, one shift and one look-up a template. What templates of one end give is summed up for a
word and a distance class.
The weights of tags between the ends are a dense block [direction, tag of m, tag between, tag of h]: going outwards from m, a tag
that is met for the first time adds one row to a running vector over the tags of h.

What goes together comes as one tuple: corpus (codes, tags, classes of all words), compiled (atoms, ends, seeds of the templates),
arcs (hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen: the templates, and the sentence prepared last), room
(n_pair, n_head, codes, places, unary, acc: the groups of templates, and working memory of scores).
"""

import numpy as np

from structpred.runtime.jit import njit

U = np.uint32
#: distance classes 1, 2, 3, 4, 5-6, 7-10, 11-20, more; for heads to the left of the modifier, then for those to the right
N_CLASSES = 8
CLASS_STARTS = np.array([1, 2, 3, 4, 5, 7, 11, 21])
_codes = np.random.default_rng(0xA2C).integers(1, 1 << 32, size=(6, 36), dtype=np.uint32)
_codes[0] = 0  # no property of the arc
KIND_CODES = _codes


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def positional_code(kind, distance):
    """The code of kind 0, 1 or 2 (nothing, direction, distance) for a distance class."""
    if kind == 0:
        return U(0)
    return KIND_CODES[1, 1 if distance >= N_CLASSES else 0] if kind == 1 else KIND_CODES[2, distance]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def prepare_sentence(corpus, first, n, compiled, hashes, counts, own_tags):
    """Fill hashes (2, T, n + 1), counts (3, n + 1) of classed words before a place, and own_tags (n + 1), the root's first."""
    codes, tags, classes = corpus
    atoms, ends, seeds = compiled
    own_tags[0] = 0
    for c in range(3):
        counts[c, 0] = 0
        if n:
            counts[c, 1] = 0
        for p in range(1, n):
            counts[c, p + 1] = counts[c, p] + ((classes[first + p - 1] >> c) & 1)
    for p in range(n):
        own_tags[p + 1] = tags[first + p]
    for t in range(seeds.shape[0]):
        for side in range(2):
            begin = ends[2 * t + side]
            end = ends[2 * t + side + 1]
            for p in range(n + 1):
                x = seeds[t, side]
                for a in range(begin, end):
                    offset = atoms[a, 1]
                    q = p + offset
                    if p == 0:
                        code = U(7) if offset == 0 else U(13)  # the root, and what would be next to it
                    elif q < 1:
                        code = U(11)  # before the first word
                    elif q > n:
                        code = U(17)  # after the last
                    else:
                        code = codes[atoms[a, 0], first + q - 1]
                    x = U(U(x ^ code) * U(0x9E3779B1))
                    x = U(x ^ (x >> U(15)))
                    x = U(x * U(0x85EBCA77))
                    x = U(x ^ (x >> U(13)))
                hashes[side, t, p] = x if end > begin else U(0)


@njit(cache=True, nogil=True)
def score_unary(w, factors, n, arcs, room):
    """unary[0, h, c], unary[1, m, c]: what templates of one end give a word whose other end lies in distance class c."""
    hashes, kinds, shifts, bases = arcs[:4]
    n_pair, n_head, _, _, unary, _ = room
    for side in range(2):
        begin = n_pair if side == 0 else n_pair + n_head
        end = n_pair + n_head if side == 0 else kinds.shape[0]
        for p in range(n + 1):
            for c in range(2 * N_CLASSES):
                leftwards = (c >= N_CLASSES) == (side == 0)  # whether the other end is to the left of p
                reach = CLASS_STARTS[c % N_CLASSES]
                if (p - reach < 1 - side) if leftwards else (p + reach > n):
                    continue  # no such word: modifiers are 1..n, heads 0..n
                total = 0.0
                for t in range(begin, end):
                    code = U(hashes[side, t, p] + positional_code(kinds[t], c)) >> shifts[t]
                    if factors is None:
                        total += w[bases[t] + np.uint64(code)]
                    else:
                        total += factors[t] * w[bases[t] + np.uint64(code)]
                unary[side, p, c] = total


@njit(cache=True, nogil=True)
def fill_codes(low, high, n, counts, codes):
    """codes[kind, (m - low) * (n + 1) + h] for the arcs to modifiers low..high-1; those of kind 0 are zero."""
    for m in range(low, high):
        row = (m - low) * (n + 1)
        for h in range(n + 1):
            if h != m:
                c = distance_class(h, m)
                for kind in range(1, 3):
                    codes[kind, row + h] = positional_code(kind, c)
                for kind in range(3, 6):
                    codes[kind, row + h] = counting_code(kind, h, m, counts)


@njit(cache=True, nogil=True)
def add_template(block, factors, t, of_h, of_m, code, shift, n, places, own):
    """own += what one template gives all arcs to the modifiers whose hashes are of_m; places: room for as many numbers."""
    for m in range(of_m.shape[0]):
        row = m * (n + 1)
        for h in range(n + 1):
            places[row + h] = U(U(of_h[h] + of_m[m]) + code[row + h]) >> shift
    for a in range(own.shape[0]):  # a loop of its own: all look-ups are under way at once
        if factors is None:
            own[a] += block[np.uint64(places[a])]
        else:
            own[a] += factors[t] * block[np.uint64(places[a])]


@njit(cache=True, nogil=True)
def add_template_listed(block, factors, t, of_h, of_m, code, shift, n, starts, heads, own):
    """The same for the listed heads alone: modifier m of these has heads[starts[m]:starts[m + 1]]."""
    for m in range(of_m.shape[0]):
        row = m * (n + 1)
        for k in range(starts[m], starts[m + 1]):
            a = row + heads[k]
            place = np.uint64(U(U(of_h[heads[k]] + of_m[m]) + code[a]) >> shift)
            if factors is None:
                own[a] += block[place]
            else:
                own[a] += factors[t] * block[place]


@njit(cache=True, nogil=True)
def finish_row(w, factors, m, n, arcs, room, row):
    """Add to row[h] of modifier m what templates of one end and tags between give."""
    between, n_tags, _, tags, seen = arcs[4:]
    unary, acc = room[4:]
    for h in range(n + 1):
        if h != m:
            c = distance_class(h, m)
            row[h] += unary[0, h, c] + unary[1, m, c]
    for right in range(2):
        acc[:] = 0.0
        seen[:] = 0
        step = 1 if right else -1
        h = m + step
        while 0 <= h <= n:
            tag = tags[h]
            row[h] += acc[tag]
            if not seen[tag]:
                seen[tag] = 1
                begin = between + ((right * n_tags + tags[m]) * n_tags + tag) * n_tags
                for k in range(n_tags):
                    if factors is None:
                        acc[k] += w[begin + k]
                    else:
                        acc[k] += factors[-1] * w[begin + k]
            h += step
    row[m] = 0.0


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
def spread_arcs(mu, n, coef, arcs, idx, val, out):
    """out += coef * Psi^T mu for dense mu of one sentence."""
    for m in range(1, n + 1):
        for h in range(n + 1):
            x = mu[(m - 1) * (n + 1) + h]
            if x != 0.0:
                k = emit_arc(h, m, x, arcs, idx, val, 0)
                for j in range(k):
                    out[idx[j]] += coef * x


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def mark_places(corpus, offsets, sentences, heads, compiled, kinds, hashes, counts, own_tags, n_bits, marks):
    """marks[t, top n_bits of a hash] = 1 for the arcs (heads[m], m) of the sentences: how many places a template would use."""
    for i in sentences:
        first = offsets[i]
        n = offsets[i + 1] - first
        prepare_sentence(corpus, first, n, compiled, hashes, counts, own_tags)
        for m in range(1, n + 1):
            h = heads[first + m - 1]
            c = distance_class(h, m)
            for t in range(kinds.shape[0]):
                code = positional_code(kinds[t], c) if kinds[t] < 3 else counting_code(kinds[t], h, m, counts)
                marks[t, U(U(hashes[0, t, h] + hashes[1, t, m]) + code) >> U(32 - n_bits)] = 1


@njit(cache=True, nogil=True)
def score_sentence(w, factors, n, first, candidates, arcs, room, out):
    """The scores of all arcs of a prepared sentence, n rows of n + 1; those of arcs that are not listed are 0.

    factors: of each template, and of tags between, as multiples of their weights; None: ones. Templates come one after the
    other, each for as many modifiers as there is room for, while its block of weights is in the cache.
    """
    starts, heads = candidates
    hashes, kinds, shifts, bases = arcs[:4]
    n_pair, _, codes, places = room[:4]
    listed = starts.shape[0] > 1
    score_unary(w, factors, n, arcs, room)
    most = max(codes.shape[1] // (n + 1), 1)
    for low in range(1, n + 1, most):
        high = min(low + most, n + 1)
        own = out[(low - 1) * (n + 1) : (high - 1) * (n + 1)]
        own[:] = 0.0
        fill_codes(low, high, n, arcs[6], codes)
        for t in range(n_pair):
            if factors is not None and factors[t] == 0.0:
                continue
            block = w[bases[t] :]
            of_h = hashes[0, t]
            of_m = hashes[1, t, low:high]
            code = codes[kinds[t]]
            if listed:
                add_template_listed(
                    block, factors, t, of_h, of_m, code, shifts[t], n, starts[first + low - 1 : first + high], heads, own
                )
            else:
                add_template(block, factors, t, of_h, of_m, code, shifts[t], n, places, own)
        finish_rows(w, factors, low, high, n, first, candidates, arcs, room, own)


@njit(cache=True, nogil=True)
def finish_rows(w, factors, low, high, n, first, candidates, arcs, room, own):
    """`finish_row` for modifiers low..high-1; then arcs that are not listed become 0."""
    starts, heads = candidates
    for m in range(low, high):
        row = own[(m - low) * (n + 1) : (m - low + 1) * (n + 1)]
        finish_row(w, factors, m, n, arcs, room, row)
        if starts.shape[0] > 1:
            blank(row, heads[starts[first + m - 1] : starts[first + m]])


@njit(cache=True, nogil=True)
def blank(row, heads):
    """Zero where there is no listed head; heads ascend."""
    k = 0
    for h in range(row.shape[0]):
        if k < heads.shape[0] and heads[k] == h:
            k += 1
        else:
            row[h] = 0.0


@njit(cache=True, nogil=True)
def hash_arcs(corpus, offsets, heads, compiled, kinds, hashes, counts, own_tags, out):
    """out[word, t]: the 32-bit hash of template t for the arc to each word from its head."""
    for i in range(offsets.shape[0] - 1):
        first = offsets[i]
        n = offsets[i + 1] - first
        prepare_sentence(corpus, first, n, compiled, hashes, counts, own_tags)
        for m in range(1, n + 1):
            h = heads[first + m - 1]
            c = distance_class(h, m)
            for t in range(kinds.shape[0]):
                code = positional_code(kinds[t], c) if kinds[t] < 3 else counting_code(kinds[t], h, m, counts)
                out[first + m - 1, t] = U(U(hashes[0, t, h] + hashes[1, t, m]) + code)
