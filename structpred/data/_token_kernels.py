# mypy: ignore-errors
"""Compiled look-up of many strings at once: names separated by newlines, known by 96 bits of hash.

Eight bytes are read at a time. A newline is found in such a word by the borrow of a subtraction (Lamport 1975; Warren,
Hacker's Delight, section 6-1); all arithmetic is modulo 2^64, which numba respects only while every operand is uint64.
"""

import numpy as np

from structpred.runtime.jit import njit

_EIGHT, _ONE = np.uint64(8), np.uint64(1)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_START = np.uint64(0x243F6A8885A308D3)
_M1, _M2, _M3 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0xD6E8FEB86659FD93)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def read_word(buffer, k):
    """Bytes k..k+7 as a little-endian number (one load, once compiled)."""
    word = np.uint64(0)
    for j in range(8):
        word |= np.uint64(buffer[k + np.uint64(j)]) << np.uint64(8 * j)
    return word


@njit(cache=True, nogil=True)
def next_name(buffer, k):
    """The two hashes of the name that begins at k, and where the next one begins, after the newline."""
    h = _START
    g = _START
    while True:
        word = read_word(buffer, k)
        x = word ^ _NEWLINES
        found = (x - _ONES) & ~x & _HIGHS
        if found == np.uint64(0):
            h = (h ^ word) * _M1
            h ^= h >> _HALF
            g = (g + word) * _M3
            k += _EIGHT
            continue
        end = found & (~found + _ONE)  # the top bit of the first newline
        word &= end - _ONE
        h = (h ^ word) * _M1
        h = (h ^ (h >> np.uint64(29))) * _M2
        g = (g + word) * _M3
        n = np.uint64(1)
        if end > np.uint64(0x80000000):
            n += np.uint64(4)
            end >>= _HALF
        if end > np.uint64(0x8000):
            n += np.uint64(2)
            end >>= np.uint64(16)
        if end > np.uint64(0x80):
            n += _ONE
        return h ^ (h >> _HALF), g >> _HALF, k + n


@njit(cache=True, nogil=True)
def enter_names(buffer, n, table):
    """Enter names 0..n-1: row [first hash, second hash * 2^32 + number + 1]. Returns whether all have other hashes."""
    mask = np.uint64(table.shape[0] - 1)
    k = np.uint64(0)
    for i in range(n):
        h, g, k = next_name(buffer, k)
        slot = h & mask
        while table[slot, 1] != np.uint64(0):
            if table[slot, 0] == h and table[slot, 1] >> _HALF == g:
                return False
            slot = (slot + _ONE) & mask
        table[slot, 0] = h
        table[slot, 1] = (g << _HALF) | np.uint64(i + 1)
    return True


@njit(cache=True, nogil=True)
def find_names(buffer, n, table, out):
    """out[i] = the number of the i-th name, -1 where it is not in the table. Returns how many bytes were read, 0 if too few."""
    last = np.uint64(buffer.shape[0]) - _EIGHT
    mask = np.uint64(table.shape[0] - 1)
    k = np.uint64(0)
    for i in range(n):
        if k > last:
            return np.uint64(0)
        h, g, k = next_name(buffer, k)
        slot = h & mask
        while table[slot, 1] != np.uint64(0) and (table[slot, 0] != h or table[slot, 1] >> _HALF != g):
            slot = (slot + _ONE) & mask
        out[i] = np.int32(np.int64(table[slot, 1] & _LOW) - 1)
    return k
