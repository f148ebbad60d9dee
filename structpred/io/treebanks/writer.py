"""Treebanks written back: every byte as it was, save the heads and relations of words where new trees are given."""

import codecs
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from structpred.errors import DataError
from structpred.io.treebanks.treebank import Tree, Treebank, check_cell


def write_treebank(treebank: Treebank, stream: BinaryIO, trees: Sequence[Tree] | None = None) -> None:
    """Write a treebank to a binary stream. trees: one per sentence, new heads and relations; the rest stays byte for byte.

    A tree without labels gets ``_`` as relations. Raises DataError, before anything is written, for trees that do not fit:
    another number of them or of words, heads that are not from 0 to n, labels that cannot be written in a column.

    >>> import io
    >>> from structpred.io.treebanks.treebank import Sentence
    >>> treebank = Treebank.of([Sentence(["no"], ["no"], ["INTJ"], ["_"], ["_"])])
    >>> out = io.BytesIO()
    >>> write_treebank(treebank, out, [Tree(np.array([0]), ["root"])])
    >>> out.getvalue()
    b'1\\tno\\tno\\tINTJ\\t_\\t_\\t0\\troot\\t_\\t_\\n\\n'
    """
    data = treebank.raw if trees is None else _with_trees(treebank, trees)
    stream.write(codecs.BOM_UTF8 + data if treebank.bom else data)


def _with_trees(treebank: Treebank, trees: Sequence[Tree]) -> bytes:
    heads, labels = _flat(treebank, trees)
    columns = treebank.format
    last = max(columns.head, columns.deprel)
    out, word = treebank.raw.split(b"\n"), 0
    for k, line in enumerate(out):
        if not line[: line.find(b"\t")].isdigit():  # comments, blank lines, multiword tokens, empty nodes
            continue
        fields = line.split(b"\t", last + 1)
        end = b"\r" if len(fields) == last + 1 and line.endswith(b"\r") else b""
        fields[columns.head], fields[columns.deprel] = heads[word], labels[word]
        out[k] = b"\t".join(fields) + end
        word += 1
    return b"\n".join(out)


def _flat(treebank: Treebank, trees: Sequence[Tree]) -> tuple[list[bytes], list[bytes]]:
    if len(trees) != len(treebank):
        raise DataError(f"{treebank.path} has {len(treebank)} sentences, but there are {len(trees)} trees")
    heads: list[int] = []
    labels: list[str] = []
    for i, (tree, n) in enumerate(zip(trees, treebank.lengths.tolist(), strict=True)):
        found = np.asarray(tree.heads)
        if found.shape != (n,) or not np.issubdtype(found.dtype, np.integer):
            raise DataError(f"sample {i}: expected {n} heads, got shape {found.shape} of type {found.dtype}")
        if not (found.min() >= 0 and found.max() <= n):
            raise DataError(f"sample {i}: expected heads from 0 to {n}, got {found.tolist()}")
        if tree.labels is not None and len(tree.labels) != n:
            raise DataError(f"sample {i}: expected {n} labels, as many as words, got {len(tree.labels)}")
        heads += found.tolist()
        labels += ["_"] * n if tree.labels is None else tree.labels
    coded = {label: label.encode() for label in _checked(labels)}
    return [b"%d" % head for head in heads], [coded[label] for label in labels]


def _checked(labels: list[str]) -> set[str]:
    distinct = set(labels)
    for label in distinct:
        check_cell(label, "label", spaces=False)
    return distinct
