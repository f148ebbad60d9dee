"""The lines of a treebank all at once, as arrays: which are words, what their ids and heads are, which sentences are sound.

Nothing is explained here: `rules.check_sentence` says what is wrong with the sentences that are marked.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from structpred.core.types import Integers
from structpred.io.treebanks.formats import TreebankFormat
from structpred.io.treebanks.rules import EMPTY_ID, RANGE_ID

Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _ZERO, _UNDERSCORE = 9, 10, 13, 32, 35, 48, 95
_MAX_DIGITS = 9


@dataclass(frozen=True)
class Lines:
    """The lines of some bytes. starts, ends: int64, the bytes of each without its line end. block: the number of the run of
    non-blank lines that it is in (for a blank line, of the run before it, -1 if there is none). rows: which lines are
    rows, neither blank nor comments. n_tabs, first_tab: how many, and the index of the first in `tabs`.
    """

    buffer: Bytes
    starts: Integers
    ends: Integers
    block: Integers
    rows: Mask
    tabs: Integers
    n_tabs: Integers
    first_tab: Integers

    @property
    def n_blocks(self) -> int:
        """The number of runs of non-blank lines."""
        return int(self.block[-1]) + 1 if len(self.block) else 0

    def field(self, lines: Integers, column: int) -> tuple[Integers, Integers]:
        """Where a column of these lines begins and ends; they must have it."""
        first = self.first_tab[lines]
        start = self.starts[lines] if column == 0 else self.tabs[first + column - 1] + 1
        followed = self.n_tabs[lines] > column
        end = np.where(followed, self.tabs[np.minimum(first + column, len(self.tabs) - 1)], self.ends[lines])
        return start, end


def scan_lines(data: bytes, format: TreebankFormat) -> Lines:
    """Cut up bytes at ``\\n``; one ``\\r`` before it belongs to the line end."""
    buffer = np.frombuffer(data, np.uint8)
    newlines = np.flatnonzero(buffer == _NEWLINE)
    starts = np.concatenate(([0], newlines + 1))
    ends = np.concatenate((newlines, [len(buffer)]))
    if starts[-1] == len(buffer):
        starts, ends = starts[:-1], ends[:-1]
    if b"\r" in data:
        ends = ends - ((ends > starts) & (buffer[np.maximum(ends, 1) - 1] == _RETURN))
    filled = ends > starts
    rows = filled.copy()
    if format.comments and len(starts):
        rows &= buffer[starts] != _HASH
    opens = filled.copy()
    opens[1:] &= ~filled[:-1]
    tabs = np.flatnonzero(buffer == _TAB)
    first_tab = np.searchsorted(tabs, starts)
    n_tabs = np.searchsorted(tabs, ends) - first_tab
    return Lines(buffer, starts, ends, np.cumsum(opens) - 1, rows, tabs, n_tabs, first_tab)


def lines_of(places: Integers, lines: Lines) -> Integers:
    """The line of each byte."""
    return np.asarray(np.searchsorted(lines.starts, places, side="right") - 1, np.int64)


def bad_lines(data: bytes, lines: Lines, format: TreebankFormat) -> Mask:
    """The lines with too few or many columns, an empty one, a space where none may be, a lone CR or NUL (not: UTF-8)."""
    bad: Mask = lines.rows & (lines.n_tabs + 1 != _widths(lines, format))
    rows = np.flatnonzero(lines.rows)
    bad[rows[lines.buffer[lines.starts[rows]] == _TAB]] = True
    bad[rows[lines.buffer[lines.ends[rows] - 1] == _TAB]] = True
    doubled = lines.tabs[1:][np.diff(lines.tabs) == 1]
    _mark(bad, lines_of(doubled, lines), lines)
    spaces = np.flatnonzero(lines.buffer == _SPACE)
    where = lines_of(spaces, lines)
    spaces, where = spaces[lines.rows[where]], where[lines.rows[where]]
    column = np.searchsorted(lines.tabs, spaces) - lines.first_tab[where]
    bad[where[~np.isin(column, format.spaced)]] = True
    if b"\r" in data:
        returns = np.flatnonzero(lines.buffer == _RETURN)
        where = lines_of(returns, lines)
        bad[where[returns < lines.ends[where]]] = True
    if b"\0" in data:
        bad[lines_of(np.flatnonzero(lines.buffer == 0), lines)] = True
    return bad


def _mark(bad: Mask, which: Integers, lines: Lines) -> None:
    bad[which[lines.rows[which]]] = True


def _widths(lines: Lines, format: TreebankFormat) -> Integers:
    """How many columns each line should have: where the number is open, as many as the first row of its sentence."""
    widths = np.full(len(lines.starts), format.n_columns, np.int64)
    if format.open_ended:
        rows = np.flatnonzero(lines.rows)
        blocks, first = np.unique(lines.block[rows], return_index=True)
        of_block = np.full(lines.n_blocks, format.n_columns, np.int64)
        of_block[blocks] = np.maximum(lines.n_tabs[rows[first]] + 1, format.n_columns)
        widths[rows] = of_block[lines.block[rows]]
    return widths


def numbers(buffer: Bytes, starts: Integers, ends: Integers) -> tuple[Integers, Mask]:
    """Fields as whole numbers, and which of them are: one to nine digits, no leading zero."""
    lengths = ends - starts
    good = (lengths >= 1) & (lengths <= _MAX_DIGITS)
    values = np.zeros(len(starts), np.int64)
    for k in range(int(lengths[good].max(initial=0))):
        here = good & (lengths > k)
        digits = buffer[np.where(here, starts + k, 0)].astype(np.int64) - _ZERO
        good &= ~here | ((digits >= 0) & (digits <= 9))
        values = np.where(here, values * 10 + digits, values)
    if len(starts):
        good &= (lengths == 1) | (buffer[np.minimum(starts, len(buffer) - 1)] != _ZERO)
    return np.where(good, values, -1), good


def unknown(buffer: Bytes, starts: Integers, ends: Integers) -> Mask:
    """Which fields are ``_``."""
    found: Mask = (ends - starts == 1) & (buffer[starts] == _UNDERSCORE)
    return found


def reaches_root(parents: Integers, longest: int) -> Mask:
    """Which words have a way to a root. parents: int64 (n), the place of each word's head, n for a root.

    >>> reaches_root(np.array([1, 4, 3, 2]), 4).tolist()
    [True, True, False, False]
    """
    root = len(parents)
    jumps = np.append(parents, root)
    for _ in range(max(longest, 1).bit_length()):  # each round doubles the way
        if (jumps == root).all():
            break
        jumps = jumps[jumps]
    reached: Mask = jumps[:-1] == root
    return reached


@dataclass(frozen=True)
class Words:
    """The words of the sentences without an error. lines: of each. block: the run of lines that it is in. heads: -1 for none.

    bad: bool (n_blocks), which runs of lines have an error.
    """

    lines: Integers
    block: Integers
    heads: Integers
    bad: Mask


def find_words(lines: Lines, bad_lines: Mask, format: TreebankFormat, check_trees: bool, missing_heads: bool = False) -> Words:
    """Check ids and heads. bad_lines: bool (n_lines), lines that are wrong by themselves; their sentences are not read."""
    bad = np.zeros(lines.n_blocks, np.bool_)
    bad[lines.block[bad_lines]] = True
    rows = np.flatnonzero(lines.rows)
    rows = rows[~bad[lines.block[rows]]]
    words = _words(rows, lines, bad, format)
    words = words[~bad[lines.block[words]]]
    heads = _heads(words, lines, bad, format, check_trees, missing_heads)
    kept = ~bad[lines.block[words]]
    return Words(words[kept], lines.block[words[kept]], heads[kept], bad)


def _words(rows: Integers, lines: Lines, bad: Mask, format: TreebankFormat) -> Integers:
    """Those rows that are words; sentences whose ids are wrong are marked in `bad`."""
    if not len(rows):
        return rows
    block = lines.block[rows]
    ids, is_number = numbers(lines.buffer, *lines.field(rows, 0))
    is_word = is_number & (ids > 0)
    first = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    group = np.cumsum(np.append(0, block[1:] != block[:-1]))
    count = np.cumsum(is_word)
    place: Integers = count - (count - is_word)[first][group]  # words of the sentence up to here, this one included
    size = np.add.reduceat(is_word.astype(np.int64), first)
    bad[block[is_word & (ids != place)]] = True
    bad[block[first[size == 0]]] = True
    others = np.flatnonzero(~is_word)
    if not format.extended_ids:
        bad[block[others]] = True
    elif len(others):
        _check_others(rows[others], place[others], size[group[others]], lines, bad)
    return rows[is_word]


def _check_others(rows: Integers, before: Integers, sizes: Integers, lines: Lines, bad: Mask) -> None:
    """Multiword tokens and empty nodes, few enough to be looked at one by one."""
    starts, ends = lines.field(rows, 0)
    data = lines.buffer.data
    current, last_end, last_empty = -1, 0, (0, 0)
    columns = (starts, ends, before, sizes, lines.block[rows])
    for start, end, last, size, block in zip(*(column.tolist() for column in columns), strict=True):
        if block != current:
            current, last_end, last_empty = block, 0, (0, 0)
        text = bytes(data[start:end]).decode("utf-8", "replace")
        if match := RANGE_ID.fullmatch(text):
            low, high = int(match[1]), int(match[2])
            good = last_end < low == last + 1 and low <= high <= size
            last_end = max(last_end, high)
        elif match := EMPTY_ID.fullmatch(text):
            empty = (int(match[1]), int(match[2]))
            good = empty == (last, last_empty[1] + 1 if last_empty[0] == last else 1)
            last_empty = empty
        else:
            good = False
        if not good:
            bad[block] = True


def _heads(words: Integers, lines: Lines, bad: Mask, format: TreebankFormat, check_trees: bool, missing_heads: bool) -> Integers:
    """The head of each word; sentences whose heads are wrong are marked in `bad`."""
    if not len(words):
        return np.zeros(0, np.int64)
    block = lines.block[words]
    start, end = lines.field(words, format.head)
    heads, is_number = numbers(lines.buffer, start, end)
    first = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    size = np.diff(np.append(first, len(words)))
    of_word = np.repeat(np.arange(len(first)), size)
    inside = is_number & (heads <= size[of_word])
    heads = np.where(inside, heads, -1)
    if not check_trees:
        return heads
    missing = unknown(lines.buffer, start, end)
    place = np.arange(len(words)) - first[of_word] + 1
    bad[block[~(inside | missing) | (heads == place)]] = True
    n_missing = np.add.reduceat(missing.astype(np.int64), first)
    n_roots = np.add.reduceat((heads == 0).astype(np.int64), first)
    has_tree = (n_missing == 0) if missing_heads else (n_missing < size)
    wrong = (n_missing > 0) & has_tree
    wrong |= has_tree & ((n_roots != 1) if format.single_root else (n_roots < 1))
    if format.single_root:
        wrong |= n_roots > 1
    bad[block[first[wrong]]] = True
    parents = np.where(heads > 0, first[of_word] + heads - 1, len(words))
    bad[block[~reaches_root(parents, int(size.max()))]] = True
    return heads
