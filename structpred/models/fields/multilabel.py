"""Multi-label classification with pairwise label potentials, and what all estimators of label sets share."""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.models.bundles import COMMON, restore_weights, restored
from structpred.models.explanations import Explanation
from structpred.models.fields.estimator import BIAS, ORACLE, FieldEstimator, checked_bias
from structpred.models.fields.explain import LabelInspection, explain_field, inspect_labels
from structpred.models.fields.feature_scale import SCALES, FeatureScale
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import label_oracle
from structpred.models.fields.sharding import LabelSharding
from structpred.models.settings import checked_oracle
from structpred.storage.bundles import Bundle
from structpred.storage.schema import AnyOf, Array, Field, ListOf, OneOf, Record, Spec, Text, Whole, array_of, maybe

#: what the header of a file holds of the field, and the edges among its arrays
FIELD: dict[str, Spec] = {
    **COMMON,
    "oracle": ORACLE,
    "n_features": Field(Whole(1), "n_features_in_"),
    "n_labels": Field(Whole(1), "n_labels_"),
    "bias": BIAS,
    "scale": Field(OneOf((None, *SCALES)), "scale", default=None),
    "label_names": Field(ListOf(Text(), 1), "label_names_", list),
}
Model = TypeVar("Model", bound=FieldEstimator[Any, Any])
_PAIRS = Array(("int64",), (None, 2), below="n_labels")


@dataclass(eq=False, repr=False)
class LabelSets:
    """Beside FieldEstimator: fields over the labels of one example."""

    _: KW_ONLY
    scale: str | None = None

    n_labels_: int = field(init=False)
    label_names_: list[str] = field(init=False)
    classes_: npt.NDArray[Any] = field(init=False)
    edges_: Integers = field(init=False)

    def fit(
        self: Any, X: Any, y: Any = None, *, sample_weight: npt.ArrayLike | None = None, dev: tuple[Any, Any] | None = None
    ) -> Any:
        """Train. dev: held-out (X, y); the weights with the best score on it are kept.

        Labels of y may be missing, -1 or None: training completes them, or sums over them, as for ChainLabeler. Pairs that are
        chosen by correlations count them as 0. Under a hierarchy the ancestors of labels that are on, and the descendants of
        labels that are off, are known, too.

        Raises DataError, naming the sample, before training starts: NaN, other values than these, lengths that do not match;
        under a hierarchy for rows that are not closed or, where labels are missing, cannot be, and for a hierarchy with a cycle
        or of another number of labels.
        """
        self._sharding.fit(self, X, y, dev=dev, sample_weight=sample_weight)
        return self

    def predict_scores(self: Any, X: Any) -> Floats:
        """(n, n_labels): the best score with the label on less the best score with it off, the other labels free.

        Along a hierarchy a label that is on has its ancestors on, too, and one that is off its descendants off. Positive where
        `predict` says 1 (with an exact oracle). It ranks samples and labels; it is not a probability.
        """
        self._check_fitted()
        found: Floats = self._field.label_scores(self._field.read(X), self.coef_)
        return found

    def explain(self: Any, x: Any, labels: Any = None, *, label: str | None = None, against: Any = None) -> Explanation:
        """Why an example gets its labels: what each feature of each label, and each pair, adds to the score.

        x: one row of features. labels: what to explain, a row of 0 and 1 or the names of those that are on; None: what is
        predicted. against: other labels, or "runner-up" (the best other ones): only what differs, as differences. label: why is
        this label on, or off? The alternative is then the best output in which it is not. Features are as the model scales them.
        Raises DataError for labels that it does not know.

        >>> from structpred.models import MultiLabelMRF
        >>> model = MultiLabelMRF(C=10.0).fit([[0.0], [1.0], [2.0]], [[0, 0], [0, 1], [1, 1]])
        >>> why = model.explain([2.0], label="0")
        >>> why.output, why.against, why.score > 0
        (['0', '1'], ['1'], True)
        """
        self._check_fitted()
        names: list[str] = self._field.names
        if label is not None and label not in names:
            raise ParameterError(f"label: there is no label {label!r}; the model has {len(names)}: {', '.join(names[:10])}")
        return explain_field(self, x, labels, None if label is None else names.index(label), against)

    def top_features(self: Any, n: int = 20, *, label: str | None = None) -> LabelInspection:
        """The n strongest positive and negative weights of each label (or of one), on less off, and all pairs of labels."""
        return inspect_labels(self, n, label)

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        tags.target_tags.required = tags.target_tags.two_d_labels = True
        tags.target_tags.one_d_labels = False
        return tags

    def _contents(self: Any) -> Bundle:
        found: Bundle = super()._contents()  # type: ignore[misc]
        if self._field.scale is not None:
            found.arrays = self._field.scale.arrays() | found.arrays
        return found


def with_field(model: Model, made: LabelField, head: dict[str, Any], bundle: Bundle) -> Model:
    """The estimator of a file with its field, and with the weights of it."""
    names = head["reader"].get("feature_names")  # where a program that read the training data has kept them
    known = list(map(str, names)) if isinstance(names, list) and len(names) == head["n_features"] else None
    scale = FeatureScale.from_arrays(head["scale"], bundle.arrays, head["n_features"])
    made = replace(made, scale=scale, feature_names=known)
    _ = made.shape  # checks the edges
    model._keep_field(made, made.oracle)
    restore_weights(model, bundle.arrays, made.n_weights)
    return model


def pairs_of(head: dict[str, Any], bundle: Bundle, name: str) -> Integers:
    """The pairs of labels in a model file; ValueError, before anything is made, unless each label has a name."""
    if head["n_labels"] != len(head["label_names"]):
        raise ValueError(f"{head['n_labels']} labels, but {len(head['label_names'])} names")
    return array_of(bundle.arrays, name, _PAIRS, n_labels=head["n_labels"]).copy()


@dataclass(eq=False, repr=False)
class MultiLabelMRF(LabelSets, FieldEstimator[Integers, Floats]):
    """A Markov random field over the labels of an example: weights of each label's states, and a table for each joined pair.

        score(x, y) = sum_l <w[l, y_l], (x, bias)> + sum_{(l, m) joined} t[l, m, y_l, y_m]

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w), H_i the margin- or slack-rescaled hinge with the number of wrong labels as loss.

    X is an array or sparse matrix (n, d), y rows of 0 and 1, one column per label (a data frame, too), or the list of names of
    each sample's labels; or X is MultiLabelData (io.read_mulan) alone.

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`; the log loss needs an oracle that has marginals.
    edges : str, int or pairs
        The joined pairs: "complete", "tree" (a spanning tree of the strongest correlations), a number k (the k strongest
        correlations of the training labels), or pairs of label numbers; [] gives independent labels.
    oracle : Oracle, optional
        The inference: EnumerationMRF(), TreeMRF(), QPBO(), BranchAndBoundMRF(), RelaxedMRF() ...; None: an exact one,
        EnumerationMRF up to 16 labels, else TreeMRF where the graph has no cycle, else BranchAndBoundMRF.
    bias : float
        The value of a constant feature, regularised as all others; 0 for none.
    scale : str, optional
        None: features are used as they are; "standard": mean 0 and variance 1; "maxabs": the largest absolute value 1, zeros
        stay zeros. Measured on the training data, kept in the model and applied by `predict`.

    Attributes
    ----------
    edges_ : ndarray (E, 2)
        The joined pairs.
    oracle_ : Oracle
        The inference that is used.
    n_labels_, n_features_in_ : int
        The numbers of labels and of features.
    label_names_ : list of str
        The names of the labels; their numbers where the data have none.
    classes_ : ndarray (n_labels,)
        The same as an array: `classes_[row == 1]` are the names of a predicted row.
    coef_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator.

    Examples
    --------
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 0], [0, 1], [1, 1], [1, 1]]
    >>> MultiLabelMRF(C=10.0, max_iter=200).fit(X, Y).predict([[0.2], [2.6]]).tolist()
    [[0, 0], [1, 1]]
    """

    _: KW_ONLY
    edges: str | int | npt.ArrayLike = "complete"

    _field: LabelField = field(init=False)
    _sharding = LabelSharding()
    _HEADER = Record({**FIELD, "edges": maybe(AnyOf((Text(), Whole())))})

    def _field_of(self, n_features: int, names: list[str], edges: Integers) -> LabelField:
        oracle = label_oracle(len(names), edges) if self.oracle is None else checked_oracle(self.oracle)
        return LabelField(n_features, names, edges, checked_bias(self.bias), oracle)

    def _contents(self) -> Bundle:
        found = super()._contents()
        found.header["edges"] = self.edges if isinstance(self.edges, str | int) else None
        found.arrays = {"edges": self.edges_} | found.arrays
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Oracle | None) -> Self:
        edges = pairs_of(head, bundle, "edges")
        model = restored(cls, head, edges=edges if head["edges"] is None else head["edges"], oracle=oracle)
        return with_field(model, model._field_of(head["n_features"], head["label_names"], edges), head, bundle)
