"""Trees of many sentences as flat arrays, checked, and the rules of the CoNLL shared tasks and of Universal Dependencies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from structpred.core.types import AnyArray, ArrayLike, Flags, Integers
from structpred.errors import DataError
from structpred.io.templates.arc_featurizer import is_punctuation


@dataclass(frozen=True)
class ParsingRules:
    """How trees are compared. The constants of this module are the official rules; `dataclasses.replace` makes others.

    name: shown with every score. scores_punctuation: whether punctuation counts in the scores; with and without it are
    shown in any case. punctuation_by_tag: a word is punctuation if its UPOS is PUNCT; otherwise if its form consists of
    characters of the Unicode categories P* only (so `$`, `+`, `=` and `<`, which are symbols, are words).
    ignores_subtypes: relations are compared up to the first colon. single_root: more than one root in a sentence, gold or
    predicted, is an error. trees_only: predictions with a cycle are an error; in gold trees they always are.
    """

    name: str
    scores_punctuation: bool
    punctuation_by_tag: bool
    ignores_subtypes: bool
    single_root: bool
    trees_only: bool

    def punctuation(self, forms: Sequence[str], upos: Sequence[str]) -> Flags:
        """Tell which words are punctuation; forms, upos: one string per word. Returns bool (n_words)."""
        if self.punctuation_by_tag:
            return np.fromiter((tag == "PUNCT" for tag in upos), np.bool_, len(upos))
        marks = {form for form in set(forms) if is_punctuation(form)}
        return np.fromiter((form in marks for form in forms), np.bool_, len(forms))

    def relation(self, label: str) -> str:
        """What is compared of a relation.

        >>> UD.relation("nsubj:pass"), CONLLX.relation("nsubj:pass")
        ('nsubj', 'nsubj:pass')
        """
        return label.split(":", 1)[0] if self.ignores_subtypes else label


# eval.pl of CoNLL-X (2006): punctuation is skipped by its form; nothing is asked of the predicted heads.
CONLLX = ParsingRules("CoNLL-X", False, False, False, False, False)
# eval07.pl of CoNLL-2007 scores every word; with its option -p it skips punctuation, found by form as in CoNLL-X.
CONLL07 = ParsingRules("CoNLL-2007", True, False, False, False, False)
CONLL07_WITHOUT_PUNCTUATION = ParsingRules("CoNLL-2007, option -p", False, False, False, False, False)
# The evaluator of CoNLL 2018 and of Universal Dependencies: every word, universal relations, well-formed trees.
UD = ParsingRules("Universal Dependencies", True, True, True, True, True)


_NO_LABEL = "_"  # the relation of words in a tree without relations, next to trees that have some
_SHOWN = 6  # words of a sentence in an error message


class Parse(Protocol):
    """A parse of n words: heads, integers (n) with 0 for the root and words numbered from 1; labels, n relations or None."""

    @property
    def heads(self) -> ArrayLike:
        """The head of each word."""

    @property
    def labels(self) -> Sequence[str] | None:
        """The relation of each word to its head."""


@dataclass(frozen=True)
class Forest:
    """The words of all sentences in a row; sentence i is the words ``offsets[i]:offsets[i+1]``.

    heads: int64 (n_words), within the sentence, 0 is the root. parents: int64 (n_words + 1), the head as an index of a word
    in the row; the root is n_words, its own parent. labels: n_words relations, `_` in a tree that has none; None
    if no tree has any.
    """

    heads: Integers
    parents: Integers
    offsets: Integers
    labels: list[str] | None

    def positions(self) -> Integers:
        """The number of each word in its sentence, from 1: int64 (n_words)."""
        starts = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return np.arange(1, len(self.heads) + 1) - starts

    def rooted(self) -> Flags:
        """Which words reach the root; the others are on a cycle or below one: bool (n_words)."""
        root, jumps = len(self.heads), self.parents
        for _ in range(int(np.diff(self.offsets).max(initial=1)).bit_length()):  # each round doubles the way
            if (jumps == root).all():
                break
            jumps = jumps[jumps]
        return jumps[:-1] == root

    def non_projective(self) -> Flags:
        """Which arcs from a head to a word have, strictly between the two, a word that does not descend from the head.

        Returns bool (n_words). An arc from the root counts as projective.
        """
        parents, root = self.parents.tolist(), len(self.heads)
        longest, found = int(np.diff(self.offsets).max(initial=0)), np.zeros(root, dtype=np.bool_)
        for word, head in enumerate(parents[:-1]):
            if head == root:
                continue
            for above in parents[min(word, head) + 1 : max(word, head)]:
                for _ in range(longest):  # no way up is longer, unless it is a cycle
                    if above in (head, root):
                        break
                    above = parents[above]
                if above != head:
                    found[word] = True
                    break
        return found


def forest(trees: Sequence[Parse], forms: Sequence[Sequence[str]], name: str) -> Forest:
    """Put trees in a row; forms: the words of each sentence.

    Raises DataError, with the number of the sentence (from 0) and its first words, for a count of heads or labels other
    than that of the words, and for a head that is missing (-1), outside the sentence, or the word itself.
    """
    if len(trees) != len(forms):
        raise DataError(f"expected a {name} tree for each of {len(forms)} sentences, got {len(trees)}")
    lengths = np.fromiter(map(len, forms), np.int64, len(forms))
    rows: list[AnyArray] = []
    labels: list[str] = []
    for i, tree in enumerate(trees):
        row = np.asarray(tree.heads)
        if row.shape != (lengths[i],) or row.dtype.kind not in "iu":
            got = len(row) if row.dtype.kind in "iu" and row.ndim == 1 else f"shape {row.shape} of {row.dtype}"
            raise DataError(f"{where(i, forms)}: expected {lengths[i]} {name} heads (integers), got {got}")
        rows.append(row)
        given = [_NO_LABEL] * int(lengths[i]) if tree.labels is None else tree.labels
        if len(given) != lengths[i]:
            raise DataError(f"{where(i, forms)}: {lengths[i]} words but {len(given)} {name} relations")
        labels.extend(given)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    heads = np.concatenate(rows).astype(np.int64) if rows else np.zeros(0, dtype=np.int64)
    _check_range(heads, offsets, forms, name)
    parents = np.append(np.where(heads > 0, np.repeat(offsets[:-1], lengths) + heads - 1, len(heads)), len(heads))
    return Forest(heads, parents, offsets, labels if any(tree.labels is not None for tree in trees) else None)


def check_trees(row: Forest, forms: Sequence[Sequence[str]], rules: ParsingRules, name: str, *, cycles: bool) -> None:
    """Raise DataError, naming the sentence, for several roots if the rules want one, and for cycles if they are errors."""
    sentence = np.repeat(np.arange(len(forms)), np.diff(row.offsets))
    if cycles and not (fine := row.rooted()).all():
        k = int(np.argmin(fine))
        i, word = int(sentence[k]), k - int(row.offsets[sentence[k]]) + 1
        raise DataError(
            f"{where(i, forms)}: expected a {name} tree, but from word {word} the heads lead into a cycle, never to the root"
        )
    roots = np.bincount(sentence[row.heads == 0], minlength=len(forms))
    if rules.single_root and (roots > 1).any():
        i = int(np.argmax(roots > 1))
        raise DataError(f"{where(i, forms)}: the {name} tree has {roots[i]} roots, but the rules of {rules.name} allow one only")


def where(i: int, forms: Sequence[Sequence[str]]) -> str:
    """The number of a sentence (from 0) with its first words, for messages."""
    words = " ".join(forms[i][:_SHOWN]) + (" ..." if len(forms[i]) > _SHOWN else "")
    return f"sentence {i} ({words!r})"


def _check_range(heads: Integers, offsets: Integers, forms: Sequence[Sequence[str]], name: str) -> None:
    lengths = np.diff(offsets)
    position = np.arange(1, len(heads) + 1) - np.repeat(offsets[:-1], lengths)
    wrong = (heads < 0) | (heads > np.repeat(lengths, lengths)) | ((heads == position) & (name == "gold"))
    if wrong.any():
        k = int(np.argmax(wrong))
        i = int(np.searchsorted(offsets, k, side="right")) - 1
        kind = "missing" if heads[k] == -1 else "the word itself" if heads[k] == position[k] else "outside the sentence"
        raise DataError(
            f"{where(i, forms)}: word {position[k]}: expected a {name} head from 0 to {lengths[i]}, got {heads[k]} ({kind})"
        )
