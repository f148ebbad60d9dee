"""Sentences and trees as users give them, turned into a treebank; and whether words have what a parser must know of them."""

import operator
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from structpred.data.arc_templates import ArcTemplate
from structpred.errors import DataError, ParameterError, StructpredWarning
from structpred.io.templates.arc_featurizer import COLUMNS, ArcFeaturizer
from structpred.io.treebanks.treebank import Sentence, Tree, Treebank
from structpred.models.settings import about_dev, dev_parts
from structpred.runtime.standard_error import callers_level


def as_treebank(X: Any, y: Any = None, *, trees: bool = False, missing: bool = False) -> Treebank:
    """X as a treebank: one as it is, or a list of sentences, each a Sentence, a list of token dicts, or a list of forms.

    A token dict has "form", and where known "lemma", "upos", "xpos", "feats". y: one tree per sentence: a Tree, a list of heads,
    or a list of (head, relation) pairs; it replaces the trees that X may have. With trees=True the trees must be there and be
    valid; with missing=True some heads (None or -1) and relations (None or "_") need not be. Raises DataError, naming the sample.
    """
    if not isinstance(X, Treebank):
        if isinstance(X, str | bytes | Mapping) or not isinstance(X, Sequence):
            raise DataError(
                f"X: expected a Treebank or a list of sentences, got {type(X).__name__}; read files with io.read_treebank"
            )
        sentences = [_sentence(x, i) for i, x in enumerate(X)]
        given = None if y is None else _trees(y, [len(s.forms) for s in sentences])
        X, y = Treebank.of(sentences, given), None
    elif y is not None:
        given = _trees(y, X.lengths.tolist())
        return as_treebank(X.sentences(), given, trees=trees, missing=missing)
    treebank: Treebank = X
    if trees:
        _check_trees(treebank, missing)
    return treebank


def _sentence(x: Any, i: int) -> Sentence:
    if isinstance(x, Sentence):
        return x
    if isinstance(x, str) or not isinstance(x, Sequence):
        raise DataError(
            f"sample {i}: expected a list of tokens, got {type(x).__name__}; did you pass one sentence, not a list of them?"
        )
    columns: dict[str, list[str]] = {key: [] for key in COLUMNS}
    for t, token in enumerate(x):
        values = {"form": token} if isinstance(token, str) else token
        if not isinstance(values, Mapping) or not isinstance(values.get("form"), str) or not values["form"]:
            raise DataError(
                f'sample {i}, word {t + 1}: expected a dict with "form" (and {COLUMNS[1:]}), or a string, got {token!r}'
            )
        if unknown := sorted(set(values) - set(COLUMNS), key=str):
            raise DataError(f"sample {i}, word {t + 1}: expected the keys {COLUMNS}, got {unknown[0]!r}")
        for key in COLUMNS:
            columns[key].append(str(values.get(key) or "_"))
    return Sentence(*columns.values())


def _trees(y: Any, lengths: Sequence[int]) -> list[Tree]:
    if isinstance(y, str) or not isinstance(y, Sequence) or len(y) != len(lengths):
        came = f"{len(y)}" if isinstance(y, Sequence) else type(y).__name__
        raise DataError(f"y: expected one tree per sentence, {len(lengths)}, got {came}")
    return [_tree(tree, n, i) for i, (tree, n) in enumerate(zip(y, lengths, strict=True))]


def _tree(tree: Any, n: int, i: int) -> Tree:
    if isinstance(tree, Tree):
        made = tree
    else:
        try:
            pairs = [tuple(entry) if isinstance(entry, tuple | list) else (entry, None) for entry in tree]
            heads = np.array([-1 if head is None else operator.index(head) for head, _ in pairs], dtype=np.int64)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"sample {i}: expected a Tree, a list of heads, or of (head, relation) pairs: {error}") from None
        labels = [label for _, label in pairs if label is not None]
        if labels and (heads >= 0).all() and len(labels) != len(pairs):
            raise DataError(f"sample {i}: some words have a relation and some have none; one that is not known is _")
        made = Tree(heads, ["_" if label is None else label for _, label in pairs] if labels else None)
    if len(made.heads) != n:
        raise DataError(f"sample {i}: the sentence has {n} words, but its tree has {len(made.heads)} heads")
    return made


def training_trees(X: Any, y: Any, single_root: bool) -> Treebank:
    """The treebank to train on, of which some may be missing; DataError for no sentences, and where single_root does not fit."""
    treebank = as_treebank(X, y, trees=True, missing=True)
    if not len(treebank):
        raise DataError("X: expected at least one sentence, got none")
    roots = np.flatnonzero(treebank.heads == 0)
    sentences = np.searchsorted(treebank.offsets, roots, side="right")
    if single_root and (again := np.flatnonzero(np.diff(sentences) == 0)).size:
        raise DataError(
            f"{treebank.where(int(roots[again[0] + 1]))}: a second word of the sentence has head 0; "
            "single_root=False (--multi-root) allows that"
        )
    return treebank


def held_out_trees(dev: Any) -> Treebank:
    """The held-out data as a treebank with trees; DataError and ParameterError say that it is about `dev`."""
    with about_dev():
        treebank = as_treebank(*((dev,) if isinstance(dev, Treebank) else dev_parts(dev, "X, y")), trees=True)
        if not len(treebank):
            raise DataError("expected at least one sentence, got none")
    return treebank


def _check_trees(treebank: Treebank, missing: bool) -> None:
    """Raise DataError for a word without head, unless that may be, a head that is the word itself, and a cycle."""
    offsets = treebank.offsets.tolist()
    for i in range(len(treebank)):
        heads = treebank.heads[offsets[i] : offsets[i + 1]]
        if len(heads) and (heads < 0).any() and not missing:
            where = treebank.where(offsets[i] + int(np.argmax(heads < 0)))
            raise DataError(f"{where}: expected a head, since training and scoring need trees, got none")
        reach = np.concatenate(([0], np.maximum(heads, 0)))
        for _ in range(max(len(heads), 1).bit_length()):
            reach = reach[reach]  # 2^k steps upwards: all who are in a tree arrive at the root
        if (lost := np.flatnonzero(reach[1:])).size:
            raise DataError(
                f"{treebank.where(offsets[i] + int(lost[0]))}: the heads {heads.tolist()} are not a tree: word "
                f"{int(lost[0]) + 1} does not reach the root (a cycle)"
            )


def check_columns(wanted: Any, present: Collection[str] | None = None) -> None:
    """Raise ParameterError for a setting `attributes` that lists no columns, DataError for one that no word has a value in.

    present: the attributes that some word has, once they are known.
    """
    listed = wanted if isinstance(wanted, list | tuple) else []
    if wanted is not None and (not listed or any(name not in COLUMNS for name in listed)):
        raise ParameterError(f"attributes: expected some of {', '.join(COLUMNS)}, in a list, got {wanted!r}")
    if present is not None and (lacking := [name for name in listed if name not in present]):
        raise DataError(f"attributes: the parser is to look at {lacking[0]}, but no word of the treebank has one")


_ATTRIBUTES = ("lemma", "upos", "xpos", "feats", "case")
_TAGS = ("upos", "xpos")


def attributes_read(parser: Any) -> list[str]:
    """What a fitted parser must know of words beside their forms.

    >>> from structpred.models import DependencyParser
    >>> attributes_read(DependencyParser().fit([[{"form": "cats"}, {"form": "sleep", "upos": "VERB"}]], [[2, 0]]))
    ['upos']
    """
    second = parser.relation_features_
    read = _read_by(parser.featurizer_, [*parser.templates_, *([] if second is None else second.templates)])
    return [name for name in read if name not in parser._brings]


def _read_by(featurizer: ArcFeaturizer, templates: Sequence[ArcTemplate]) -> list[str]:
    used = {name for template in templates for name in template.attributes}
    if any(tag != "_" for tag in featurizer.tags):
        used.add("xpos" if featurizer.fine else "upos")
    return [name for name in _ATTRIBUTES if name in used]


def warn_of_untagged(treebank: Treebank, featurizer: ArcFeaturizer, templates: Sequence[ArcTemplate]) -> None:
    """Warn where no word at all has a tag, and a parser with these templates learnt from tags."""
    missing = [name for name in _read_by(featurizer, templates) if name in _TAGS and set(getattr(treebank, name)) == {"_"}]
    if missing:
        where = treebank.path if treebank.n_words and treebank.line_numbers[0] > 0 else "X"
        warnings.warn(
            f"{where}: expected words with {' and '.join(missing)}, which the parser was trained with; got none, and trees are "
            f'much worse without; tag the words first (in Python: dicts with "form" and "{missing[0]}"), or train a parser on '
            "forms alone",
            StructpredWarning,
            stacklevel=callers_level(),
        )
