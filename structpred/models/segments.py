"""Labelling sequences phrase by phrase: a semi-Markov chain with features of whole phrases and of the tokens inside them."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.types import AnyArray, ArrayLike, Integers
from structpred.core.weights import Vector
from structpred.data.sequences import PackedSequences, pack
from structpred.data.tag_schemes import TABLE, own_scheme, phrases, written
from structpred.errors import DataError
from structpred.features.parts import PartFeatures
from structpred.features.segments import SegmentFeatures, WrongTokens
from structpred.models.base import StructuredEstimator, checked_sample_weight
from structpred.models.bundles import CLASSES, COMMON, restore_weights, restored
from structpred.models.chain import inputs
from structpred.models.chain.inputs import INPUT, INPUTS, Input, RowInput, around_empty, as_sequences, choose_input, holds
from structpred.models.chain.targets import LabelEncoder, as_label_lists, each_written, phrase_f1
from structpred.models.constrained import Constraints, constrained
from structpred.models.settings import about_dev, dev_parts, resolve_loss
from structpred.oracles.semimarkov import SemiMarkovOracle
from structpred.runtime.ranges import ends_of
from structpred.runtime.settings import checked_whole
from structpred.storage.bundles import Bundle
from structpred.storage.schema import AnyOf, Field, OneOf, Record, Text, Whole
from structpred.task.inference import Inference
from structpred.task.task import Task


def with_words(X: Any, place: int | str) -> tuple[Any, list[list[str]]]:
    """X as a column corpus or a list, so that it can be read twice, and the words of each sequence, in small letters."""
    given, found = X if holds(X, "vocabularies") else list(as_sequences(X)), list[list[str]]()
    for i, x in enumerate(X.sentences() if holds(X, "vocabularies") else given):
        try:
            found.append([token[place].lower() for token in x])
        except (LookupError, TypeError, AttributeError):
            raise DataError(f"sample {i}: expected words at word={place!r}, a column or a key, got {str(x)[:60]!r}") from None
    return given, found


class _Begins(Oracle):
    """`SemiMarkovOracle` with T * L parts in front: t * L + l is on where a segment of any length with label l starts at t."""

    segments, output = SemiMarkovOracle(), "segmentation"
    label_grid, example_shapes = staticmethod(lambda shape: shape[:2]), SemiMarkovOracle.example_shapes

    def n_parts(self, shape: Shape) -> int:
        return shape[0] * shape[1] + self.segments.n_parts(shape)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        begins, own = np.split(scores, [shape[0] * shape[1]])
        of_segments = np.repeat(begins.reshape(-1, shape[1]), shape[2], axis=0)
        return self.segments.argmax(own + np.append(of_segments, np.zeros(shape[1] ** 2)), shape)

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        starts = np.flatnonzero(labels % 2)
        return np.append(starts * shape[1] + labels[starts] // 2, shape[0] * shape[1] + self.segments.parts(labels, shape))


@dataclass(eq=False, repr=False)
class SegmentLabeler(StructuredEstimator):
    """Labels that mark phrases (B-X, I-X and O, in any scheme), found phrase by phrase: a semi-Markov chain.

    A phrase has the features of its tokens, as ChainLabeler has them with coding="iobes", its length, and which phrase of the
    training data it is; neighbours have weights, too. O(T L (L + M)) for T tokens, L labels and phrases of M tokens. With the
    log loss it is a semi-Markov conditional random field (Sarawagi & Cohen 2004). X is a list of sequences of feature dicts or,
    with a template, of rows of columns; or a column corpus.

    Parameters
    ----------
    trainer, C, max_iter, tol, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
    template, min_count, n_bits
        As for ChainLabeler.
    loss : str or Cost
        "hamming" is the number of tokens whose label in IOBES is wrong; "extra_parts", or a part loss of the oracle.
    word : int or str
        Where the word of a token is: the column of rows, or the entry of feature dicts.
    max_length : int, optional
        The tokens of the longest phrase; None: as in y.

    Attributes
    ----------
    classes_, coding_ : ndarray, str
        O and the types of phrases, sorted; the scheme of y, in which answers are.
    phrases_, max_length_ : list of str, int
        The phrases of the training data, in small letters; the tokens of the longest one that there may be.
    coef_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator.

    Examples
    --------
    >>> X, y = [[("the", "DT"), ("cat", "NN"), ("sleeps", "VB")]], [["B-NP", "I-NP", "O"]]
    >>> [labels.tolist() for labels in SegmentLabeler(template="chunking").fit(X, y).predict(X)]
    [['B-NP', 'I-NP', 'O']]
    """

    C: float = 0.3
    tol: float = 0.0
    _: KW_ONLY
    template: str | Sequence[Any] | None = None
    min_count: int = 1
    n_bits: int | None = None
    word: int | str = 0
    max_length: int | None = None
    input_: Input = field(init=False)
    classes_: AnyArray = field(init=False)
    coding_: str = field(init=False)
    phrases_: list[str] = field(init=False)
    max_length_: int = field(init=False)

    _own_passes = 10
    _HEADER = Record({
        **COMMON,
        "input": INPUT,
        "classes": Field(CLASSES, "classes_", np.ndarray.tolist, np.array),
        "coding": Field(OneOf(tuple(TABLE)), "coding_"),
        "word": Field(AnyOf((Text(), Whole(-9999, 9999))), "word"),
        "max_length": Field(Whole(1, 9999), "max_length_"),
    })  # fmt: skip

    def _contents(self) -> Bundle:
        part, found = self.input_.to_bundle(), super()._contents()
        found.header["input"] = {"kind": self.input_.kind, "header": part.header}
        found.add("input", part)
        found.texts["phrases"] = self.phrases_
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model, saved = restored(cls, head), head["input"]
        model.input_ = INPUTS[saved["kind"]].from_bundle(bundle.part("input", saved["header"]))
        if isinstance(model.input_, RowInput):
            model.template = model.input_.templates
        model.phrases_ = bundle.texts["phrases"]
        restore_weights(model, bundle.arrays, model._features(pack([], int(model.input_.n_features or 0)), []).dim)
        return model

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None, dev: tuple[Any, Any] | None = None) -> Self:
        """Train. sample_weight: one number per sequence. dev: held-out (X, y); the weights with the best F1 on it are kept.

        Raises DataError, naming the sample, before training starts: labels that mark no phrases, or longer ones than max_length.
        """
        loss = WrongTokens() if self.loss == "hamming" else resolve_loss(self.loss)
        made = copy(self)  # what fails leaves an earlier fit whole
        given, words = with_words(X, self.word)
        made.input_, given = choose_input(given, self.template, self.min_count, self.n_bits)
        tokens = made.input_.fit_transform(given)
        lists = as_label_lists(y, tokens.lengths)
        LabelEncoder.fit(lists)  # refuses labels that are missing
        made.coding_ = own_scheme(lists)
        found = [sorted(phrases(row)) for _, row in each_written(lists, ("iobes", made.coding_))]
        longest = max((b - a for own in found for a, b, _ in own), default=1)
        made.max_length_ = longest if self.max_length is None else checked_whole(self.max_length, "max_length")
        for i, own in enumerate(found):
            if longer := [a for a, b, _ in own if b - a > made.max_length_]:
                raise DataError(f"sample {i}, position {longer[0]}: the phrase is longer than max_length={self.max_length}")
        made.classes_ = np.array(["O", *sorted({name for own in found for _, _, name in own})])
        made.phrases_ = sorted({" ".join(x[a:b]) for x, own in zip(words, found, strict=True) for a, b, _ in own})
        features, labels = made._features(tokens, words), [np.ones(len(x), np.int64) for x in words]
        for codes, own in zip(labels, found, strict=True):
            for a, b, name in own:
                codes[a:b] = 2 * np.searchsorted(made.classes_[1:], name) + 2
                codes[a] += 1
        weights = checked_sample_weight(sample_weight, len(labels))
        task = Task(features, SemiMarkovOracle(), labels, features.shapes, loss, sample_weight=weights)
        made._keep(made._train(task, None if dev is None else made._dev_scorer(dev)))
        vars(self).update(vars(made))
        self._stop_if_interrupted()
        return self

    def _features(self, tokens: PackedSequences, words: Sequence[Sequence[str]]) -> SegmentFeatures:
        """Of tokens these, of segments the length, and which phrase of the training data they are."""
        longest, ids = self.max_length_, {text: k for k, text in enumerate(self.phrases_, self.max_length_)}
        begun = {text[:k] for text in ids for k, c in enumerate(text) if c == " "}  # what longer phrases begin with
        rows = np.full((tokens.n_tokens * longest, 2), -1)
        rows[:, 0] = np.tile(np.arange(longest), tokens.n_tokens)
        for x, first in zip(words, tokens.offsets.tolist(), strict=False):
            for t in range(len(x)):
                for m in range(1, min(longest, len(x) - t) + 1):
                    text = " ".join(x[t : t + m])
                    rows[(first + t) * longest + m - 1, 1] = ids.get(text, -1)
                    if text not in begun:
                        break
        indices, ends, n = rows[rows >= 0].astype(np.int32), ends_of((rows >= 0).sum(axis=1)), longest + len(ids)
        own = indices, np.ones(len(indices), np.float32), tokens.offsets * longest, n
        segments = PackedSequences(ends, *own, np.array([0, longest, n]), ("lengths", "known phrases"))
        return SegmentFeatures(tokens, segments, len(self.classes_), longest)

    def _read(self, X: Any) -> Inference:
        given, words = with_words(X, self.word)
        features = self._features(self.input_.transform(given), words)
        return Inference(features, SemiMarkovOracle(), features.shapes)

    def _answers(self, outputs: Iterable[Integers]) -> list[AnyArray]:
        marks = (np.where(own < 2, "O", np.char.add(np.where(own % 2, "B-", "I-"), self.classes_[own // 2])) for own in outputs)
        return [np.array(written(row.tolist(), self.coding_)) for row in marks]

    def predict(self, X: Any, *, constraints: Constraints = None) -> list[AnyArray]:
        """One array of labels per sequence; of an empty sequence an empty one, which constraints on each sample leave alone.

        constraints: see `Constraint`; labels are those of classes_. InfeasibleError names the sample that no labels are left for.
        """
        self._check_fitted()
        return around_empty(lambda full: self._answers(self._best(full, constraints, inputs.empty_places(X, constraints))), X)

    def _best(self, X: Any, constraints: Constraints, empty: Sequence[int]) -> list[Integers]:
        """The best segmentations that keep the constraints; others stand for those that are empty."""
        plain, names = self._read(X), {name: k for k, name in enumerate(self.classes_.tolist())} | {None: None}
        if not constraints:
            return plain.outputs(self.coef_)
        scores = zip(plain.part_scores(self.coef_), plain.shapes, strict=True)
        features = PartFeatures([np.append(np.zeros(t * n_labels), own)[:, None] for own, (t, n_labels, _) in scores])
        begins = Inference(features, _Begins(), plain.shapes)
        return constrained(begins, constraints, lambda entry: (entry[0], names[entry[1]]), empty).outputs(np.ones(1))

    def score(self, X: Any, y: Any) -> float:
        """F1 of phrases, as conlleval counts them."""
        found = self.predict(X)
        return phrase_f1(as_label_lists(y, np.array([len(labels) for labels in found])), found)

    def _dev_scorer(self, dev: Any) -> Callable[[Vector], float]:
        X, y = dev_parts(dev, "X, y")
        with about_dev():
            inference = self._read(X)
            lists = as_label_lists(y, np.array([shape[0] for shape in inference.shapes]))
        return lambda w: phrase_f1(lists, self._answers(inference.outputs(w)))
