"""Treebanks in memory: words, heads and relations, and the file as it was, byte for byte, written back with new trees."""

import codecs
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged
from structpred.errors import DataError
from structpred.io.text import quoted
from structpred.io.treebanks.formats import CONLL_U, TreebankFormat
from structpred.io.treebanks.rules import Problem
from structpred.runtime.ranges import ends_of, picked
from structpred.text.markup import scrolling, table


class Tree(NamedTuple):
    """One parse of n words.

    heads: int64 (n,), the number of each word's head, words counted from 1; 0 is the root, -1 not known. labels: the n dependency
    relations, None for a parse without relations.
    """

    heads: npt.NDArray[np.int64]
    labels: list[str] | None

    def _repr_html_(self) -> str:
        """A row a word, for notebooks; draw_tree of structpred.report draws the arcs above the words."""
        labels = self.labels or [""] * len(self.heads)
        rows = [(m, h, label) for m, (h, label) in enumerate(zip(self.heads.tolist(), labels, strict=True), start=1)]
        return scrolling(table(("word", "head", "relation"), rows, numbers=2))


class Sentence(NamedTuple):
    """One sentence of n words as lists of n strings; ``_`` stands for an attribute that is not known."""

    forms: list[str]
    lemmas: list[str]
    upos: list[str]
    xpos: list[str]
    feats: list[str]


@dataclass(frozen=True, eq=False)
class Treebank(Ragged):
    """Sentences with their trees, packed; multiword tokens and empty nodes are not words, but are kept for writing.

    offsets: int64 (S + 1), sentence i is the words ``offsets[i]:offsets[i+1]``. forms, lemmas, upos, xpos, feats, labels:
    flat lists of n_words strings, as in the file. heads: int64 (n_words), from 0 (root) to the length of the sentence, -1
    where the file has none. format: which columns the file has. path: the source, for messages. line_numbers: int64
    (n_words), from 1; 0 where there is no file. raw: the lines, for writing. bounds: int64 (S + 1), the bytes of sentence
    i are ``raw[bounds[i]:bounds[i+1]]``, including what is between sentences. bom: whether the file begins with a
    byte order mark, which is not in ``raw``. skipped: the errors for which sentences were left out.

    >>> cats = Sentence(["cats", "sleep"], ["cat", "sleep"], ["NOUN", "VERB"], ["_", "_"], ["_", "_"])
    >>> treebank = Treebank.of([cats], [Tree(np.array([2, 0]), ["nsubj", "root"])])
    >>> len(treebank), treebank.n_words, treebank.has_trees, treebank.tree(0).heads.tolist()
    (1, 2, True, [2, 0])
    """

    offsets: npt.NDArray[np.int64]
    forms: list[str]
    lemmas: list[str]
    upos: list[str]
    xpos: list[str]
    feats: list[str]
    heads: npt.NDArray[np.int64]
    labels: list[str]
    format: TreebankFormat
    path: str
    line_numbers: npt.NDArray[np.int64]
    raw: bytes
    bounds: npt.NDArray[np.int64]
    bom: bool = False
    skipped: tuple[Problem, ...] = ()

    @property
    def n_words(self) -> int:
        """The number of words of all sentences together."""
        return len(self.forms)

    @property
    def has_trees(self) -> bool:
        """Whether every word has a head."""
        return bool((self.heads >= 0).all())

    def sentence(self, i: int) -> Sentence:
        """The attributes of sentence i."""
        words = self._words(i)
        return Sentence(self.forms[words], self.lemmas[words], self.upos[words], self.xpos[words], self.feats[words])

    def sentences(self) -> list[Sentence]:
        """The attributes of all sentences."""
        return [self.sentence(i) for i in range(len(self))]

    def tree(self, i: int) -> Tree:
        """The tree of sentence i; its labels are None where the relations are ``_`` throughout.

        Raises DataError where a word has no head.
        """
        words = self._words(i)
        heads = self.heads[words]
        if (heads < 0).any():
            missing = words.start + int(np.argmax(heads < 0))
            raise DataError(f"{self.where(missing)}: expected a head, the tree is needed here, got none")
        labels = self.labels[words]
        return Tree(heads, None if all(label == "_" for label in labels) else labels)

    def trees(self) -> list[Tree]:
        """The trees of all sentences. Raises DataError where a word has no head."""
        return [self.tree(i) for i in range(len(self))]

    def where(self, word: int) -> str:
        """Where word number ``word`` of the treebank is, for messages: file and line, or sample and position."""
        return f"{self.path}:{self.line_numbers[word]}" if self.line_numbers[word] > 0 else self.place(word)

    def take(self, indices: npt.ArrayLike) -> "Treebank":
        """Some of the sentences, by number or by mask, in the order given, with their lines.

        >>> one = Sentence(["a"], ["_"], ["_"], ["_"], ["_"])
        >>> two = Sentence(["b"], ["_"], ["_"], ["_"], ["_"])
        >>> Treebank.of([one, two], None).take([1, 0]).forms
        ['b', 'a']
        """
        chosen = np.asarray(indices)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        chosen = np.where(chosen < 0, chosen + len(self), chosen)
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise DataError(f"{self.path} has {len(self)} sentences; expected numbers below that, got {np.asarray(indices)}")
        words, offsets = picked(self.offsets, chosen)
        blocks = [self.raw[self.bounds[i] : self.bounds[i + 1]] for i in chosen.tolist()]
        blocks = [_closed(block) for block in blocks[:-1]] + blocks[-1:]
        bounds = ends_of(np.array(list(map(len, blocks)), np.int64))
        names = (*Sentence._fields, "labels")
        columns: dict[str, Any] = {name: list(map(getattr(self, name).__getitem__, words.tolist())) for name in names}
        where: dict[str, Any] = {"line_numbers": self.line_numbers[words], "raw": b"".join(blocks), "bounds": bounds}
        return replace(self, offsets=offsets, heads=self.heads[words], skipped=(), **columns, **where)

    def with_tags(self, upos: Sequence[str]) -> "Treebank":
        """The same sentences, and their lines, with other tags (UPOS): flat, one a word. DataError for what cannot be written.

        >>> one = Treebank.of([Sentence(["no"], ["_"], ["X"], ["_"], ["_"])]).with_tags(["INTJ"])
        >>> one.upos, one.raw
        (['INTJ'], b'1\\tno\\t_\\tINTJ\\t_\\t_\\t_\\t_\\t_\\t_\\n\\n')
        """
        if len(upos) != self.n_words:
            raise DataError(f"{self.path}: expected {self.n_words} tags, as many as words, got {len(upos)}")
        if self.format.upos is None or not upos:  # lines have no place for them
            return replace(self, upos=list(upos))
        blocks = _rewritten(self, {self.format.upos: _coded(upos, "tag")})
        return replace(self, upos=list(upos), raw=b"".join(blocks), bounds=ends_of(np.array(list(map(len, blocks)), np.int64)))

    @classmethod
    def of(cls, sentences: Sequence[Sentence], trees: Sequence[Tree] | None = None, path: str = "<sentences>") -> "Treebank":
        """A treebank of Python data, in the format CoNLL-U; without trees all heads are -1 and all labels ``_``.

        Raises DataError naming the sample: an empty sentence, lists of different lengths, a string that cannot be written in a
        column, a head that is neither from 0 to n nor -1, not known.
        """
        if trees is not None and len(trees) != len(sentences):
            raise DataError(f"there are {len(sentences)} sentences, but {len(trees)} trees")
        blocks = []
        for i, sentence in enumerate(sentences):
            if not isinstance(sentence, Sentence):
                raise DataError(f"sample {i}: expected a Sentence, got {type(sentence).__name__}")
            tree = Tree(np.full(len(sentence.forms), -1), None) if trees is None else trees[i]
            if not isinstance(tree, Tree):
                raise DataError(f"sample {i}: expected a Tree, got {type(tree).__name__}")
            _check_sample(i, sentence, tree, check_heads=trees is not None)
            relations = ["_"] * len(sentence.forms) if tree.labels is None else tree.labels
            own = [str(head) if head >= 0 else "_" for head in np.asarray(tree.heads).tolist()]
            rows = zip(*sentence, own, relations, strict=True)
            blocks.append("".join(["\t".join((str(k), *row)) + "\t_\t_\n" for k, row in enumerate(rows, 1)] + ["\n"]).encode())
        lengths = [len(sentence.forms) for sentence in sentences]
        offsets = ends_of(np.array(lengths, np.int64))
        bounds = ends_of(np.array(list(map(len, blocks)), np.int64))
        labels = ["_"] * int(offsets[-1])
        heads = np.full(offsets[-1], -1, np.int64)
        if trees:
            heads = np.concatenate([np.asarray(tree.heads, np.int64) for tree in trees])
            labels = _flat(["_"] * n if tree.labels is None else tree.labels for tree, n in zip(trees, lengths, strict=True))
        columns: dict[str, Any] = {name: _flat(getattr(one, name) for one in sentences) for name in Sentence._fields}
        return cls(
            offsets=offsets, heads=heads, labels=labels, format=CONLL_U, path=path, line_numbers=np.zeros(len(heads), np.int64),
            raw=b"".join(blocks), bounds=bounds, **columns,
        )  # fmt: skip

    def _words(self, i: int) -> slice:
        if not -len(self) <= i < len(self):
            raise DataError(f"{self.path} has {len(self)} sentences, numbered from 0; there is no sentence {i}")
        i %= len(self)
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))


def _closed(block: bytes) -> bytes:
    """A sentence's lines with a blank line behind them, which the last sentence of a file may lack, in part or whole."""
    if block.endswith(b"\r"):
        block += b"\n"
    end = b"\r\n" if b"\r\n" in block else b"\n"
    if not block.endswith(b"\n"):
        block += end
    return block if block.endswith((b"\n\n", b"\n\r\n")) else block + end


def _flat(lists: Iterable[Sequence[str]]) -> list[str]:
    return [entry for one in lists for entry in one]


def _check_sample(i: int, sentence: Sentence, tree: Tree, check_heads: bool) -> None:
    """Raise DataError for what could not be written and read again."""
    n = len(sentence.forms)
    if not n:
        raise DataError(f"sample {i}: expected at least one word, got an empty sentence")
    lists: dict[str, list[str]] = dict(zip(Sentence._fields, sentence, strict=True))
    if tree.labels is not None:
        lists["labels"] = tree.labels
    for name, entries in lists.items():
        if len(entries) != n:
            raise DataError(f"sample {i}: expected {n} {name}, as many as forms, got {len(entries)}")
        for k, entry in enumerate(entries):
            check_cell(entry, f"sample {i}, position {k}: {name}", spaces=name in ("forms", "lemmas"))
    _check_heads(tree, n, f"sample {i}", -1 if check_heads else None)


def _check_heads(tree: Tree, n: int, where: str, least: int | None) -> None:
    """Raise DataError for heads that are not n whole numbers from `least` (None: any) to n, 0 being the root."""
    heads = np.asarray(tree.heads)
    if heads.shape != (n,) or not np.issubdtype(heads.dtype, np.integer):
        raise DataError(f"{where}: expected {n} whole numbers as heads, got shape {heads.shape} of type {heads.dtype}")
    if least is not None and not (heads.min() >= least and heads.max() <= n):
        raise DataError(f"{where}: expected heads from 0 to {n}, got {heads.tolist()}")


def check_cell(entry: object, what: str, *, spaces: bool) -> None:
    """Raise DataError for what cannot be written in a column: no string, empty, with a tab or a line end, with a space."""
    if not isinstance(entry, str):
        raise DataError(f"{what}: expected a string, got {entry!r} of type {type(entry).__name__}")
    if not entry or any(c in entry for c in "\t\r\n\0") or (not spaces and " " in entry):
        raise DataError(f"{what}: {quoted(entry)} cannot be written in a column: empty, or with tabs, line ends, NUL or spaces")
    try:
        entry.encode()
    except UnicodeEncodeError:
        raise DataError(f"{what}: expected text that UTF-8 can hold, got {quoted(entry)}") from None


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
    data = treebank.raw
    if trees is not None:
        columns = (treebank.format.head, treebank.format.deprel)
        data = b"".join(_rewritten(treebank, dict(zip(columns, _written(treebank, trees), strict=True))))
    stream.write(codecs.BOM_UTF8 + data if treebank.bom else data)


def _rewritten(treebank: Treebank, columns: Mapping[int, Sequence[bytes]]) -> list[bytes]:
    """The lines of each sentence with other values in these columns: flat, one a word."""
    if not len(treebank):
        return [treebank.raw]
    last, word, blocks = max(columns), 0, []
    for start, stop in itertools.pairwise(treebank.bounds.tolist()):
        out = treebank.raw[start:stop].split(b"\n")
        for k, line in enumerate(out):
            if not line[: line.find(b"\t")].isdigit():  # comments, blank lines, multiword tokens, empty nodes
                continue
            fields = line.split(b"\t", last + 1)
            end = b"\r" if len(fields) == last + 1 and line.endswith(b"\r") else b""
            for column, values in columns.items():
                fields[column] = values[word]
            out[k] = b"\t".join(fields) + end
            word += 1
        blocks.append(b"\n".join(out))
    return blocks


def _written(treebank: Treebank, trees: Sequence[Tree]) -> tuple[list[bytes], list[bytes]]:
    if len(trees) != len(treebank):
        raise DataError(f"{treebank.path} has {len(treebank)} sentences, but there are {len(trees)} trees")
    heads: list[int] = []
    labels: list[str] = []
    for i, (tree, n) in enumerate(zip(trees, treebank.lengths.tolist(), strict=True)):
        _check_heads(tree, n, f"sample {i}", 0)
        if tree.labels is not None and len(tree.labels) != n:
            raise DataError(f"sample {i}: expected {n} labels, as many as words, got {len(tree.labels)}")
        heads += np.asarray(tree.heads).tolist()
        labels += ["_"] * n if tree.labels is None else tree.labels
    return [b"%d" % head for head in heads], _coded(labels, "label")


def _coded(values: Sequence[str], what: str) -> list[bytes]:
    """The values as bytes; DataError for one that cannot be written in a column."""
    coded = {}
    for value in dict.fromkeys(values):
        check_cell(value, what, spaces=False)
        coded[value] = value.encode()
    return [coded[value] for value in values]
