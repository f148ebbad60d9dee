"""The words of a treebank with their heads, found in all sentences at once, and which sentences have errors.

Nothing is explained here: `treebank_rules.check_sentence` says what is wrong with the sentences that are marked.
"""

from dataclasses import dataclass

import numpy as np

from structpred.core.types import Integers
from structpred.io.treebanks.formats import TreebankFormat
from structpred.io.treebanks.rules import EMPTY_ID, RANGE_ID
from structpred.io.treebanks.scan import Lines, Mask, numbers, reaches_root, unknown


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
