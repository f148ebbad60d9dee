"""Multi-label classification with pairwise label potentials, of any labels or under a hierarchy, whose outputs are closed."""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.bundles import COMMON, restore_weights, restored
from structpred.models.explanations import Explanation
from structpred.models.fields.estimator import BIAS, ORACLE, FieldEstimator, HierarchySharding, LabelSharding
from structpred.models.fields.explain import LabelInspection, explain_field, inspect_labels
from structpred.models.fields.kernel_columns import KERNEL
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import hierarchy_oracle, label_costs, label_oracle
from structpred.models.fields.rules import RULES
from structpred.models.fields.thresholds import lower_scores
from structpred.models.settings import checked_oracle
from structpred.oracles.mrf import graph_shape
from structpred.runtime.settings import checked_nonnegative
from structpred.storage.bundles import Bundle
from structpred.storage.schema import AnyOf, Array, Field, Flag, ListOf, OneOf, Record, Spec, Text, Whole, array_of, maybe

#: what the header of a file holds of the field, and the edges among its arrays
FIELD: dict[str, Spec] = {
    **COMMON,
    "oracle": ORACLE,
    "n_features": Field(Whole(1), "n_features_in_"),
    "n_labels": Field(Whole(1), "n_labels_"),
    "bias": BIAS,
    "label_names": Field(ListOf(Text(), 1), "label_names_", list),
    **KERNEL,
    "threshold": Field(OneOf((None, "f1")), "threshold"),
}
Model = TypeVar("Model", bound=Any)
_PAIRS = Array(("int64",), (None, 2), below="n_labels")


@dataclass(eq=False, repr=False)
class LabelSets:
    """Beside FieldEstimator: fields over the labels of one example."""

    _: KW_ONLY
    threshold: str | None = None

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
        if self.threshold is not None:
            lower_scores(self, X, y, sample_weight)
        return self

    def predict_scores(self: Any, X: Any) -> Floats:
        """(n, n_labels): the best score with the label on less the best score with it off, the other labels free.

        Along a hierarchy a label that is on has its ancestors on, too, and one that is off its descendants off. Positive where
        `predict` says 1 (with an exact oracle). It ranks samples and labels; it is not a probability.
        """
        self._check_fitted()
        return np.asarray(self._field.label_scores(self._field.read(X), self.coef_))

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

    def __sklearn_tags__(self: Any) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        tags.target_tags.required = tags.target_tags.two_d_labels = True
        tags.target_tags.one_d_labels = False
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _contents(self: Any) -> Bundle:
        found: Bundle = super()._contents()  # type: ignore[misc]
        if self._field.feature_names is not None and not (getattr(self, "reader_", None) or {}).get("feature_names"):
            found.texts["feature_names"] = list(self._field.feature_names)
        return found


def with_field(model: Model, made: LabelField, head: dict[str, Any], bundle: Bundle) -> Model:
    """The estimator of a file with its field, and with the weights of it."""
    # a program that read the training data keeps them in its own part
    names = bundle.texts.get("feature_names", head["reader"].get("feature_names"))
    known = list(map(str, names)) if isinstance(names, list) and len(names) == head["n_features"] else None
    if known is None and "feature_names" in bundle.texts:
        raise ValueError(f"{head['n_features']} features, but {len(names)} names")
    made, model.scale = replace(made.of_file(head, bundle), feature_names=known), head["scale"]
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

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w), H_i the margin- or slack-rescaled hinge with the number of wrong labels as loss;
    loss="f1" or "subset": with 1 - F1 of the set, or 1 for a wrong set (C about ten times as large; a margin alone).

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
        stay zeros; "auto": where most entries are not zero "maxabs", with a kernel "standard", else None. Measured on the
        training data, kept in the model and applied by `predict`.
    kernel, gamma, n_components : str, Kernel or callable, optional; float or str; float
        Functions of a kernel between scaled rows in place of weights of features; kernel and X: as for KernelChainLabeler. gamma:
        a number, or "scale", 1 / (number of features times their variance). n_components: columns of an incomplete Cholesky
        factor, as many as have this share of the kernel's trace, or from 1 on at most so many.
    threshold : str, optional
        "f1": labels' scores are lowered by what gives the best micro F1 on three folds of the training data. So the weights of
        `bias` in `coef_` move; `certificate_` is of those before.

    Attributes
    ----------
    edges_ : ndarray (E, 2)
        The joined pairs.
    oracle_ : Oracle
        The inference that is used.
    n_labels_, n_features_in_ : int
        The numbers of labels and of features.
    feature_names_in_ : ndarray (n_features_in_,)
        The names of the features, where X is a data frame or data with names; `predict` refuses a frame with other columns.
    scale_, support_ : str or None; ndarray or None
        How features were scaled; the training rows that predictions with a kernel compare with.
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
        return LabelField(n_features, names, edges, checked_nonnegative(self.bias, "bias"), oracle)

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


_COSTS = Array(("float64",), ("n_labels",))


@dataclass(eq=False, repr=False)
class HierarchicalMultiLabel(LabelSets, FieldEstimator[Integers, Floats]):
    """A Markov random field along a hierarchy of labels, whose outputs are all closed under ancestors.

    As MultiLabelMRF with the edges of the hierarchy: the pair (parent off, child on) is forbidden, in training and prediction.
    The other pairs have no weights, unless `tables` says so: in closed sets these would only be a second bias of each label.

    X as for MultiLabelMRF, or MultiLabelData with a hierarchy (io.read_clus); y: rows of 0 and 1, closed
    (LabelHierarchy.closed makes them so).

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`.
    bias, scale, kernel, gamma, n_components, threshold
        As for MultiLabelMRF.
    hierarchy : LabelHierarchy or array, optional
        A forest or a directed acyclic graph: a LabelHierarchy, the parent of each label (-1: none), or edges (parent, child);
        None: that of the data, where fit gets MultiLabelData.
    label_weights : str or array
        What a wrong label costs: "uniform" (1), "depth" (0.75 to the power of its depth; Vens et al. 2008), "sibling" (1 at the
        roots, divided among the children of a label; Cesa-Bianchi et al. 2006), or one number >= 0 per label.
    tables : bool
        Whether the pairs of parents and children have weights of their own.
    require : str or None
        What an output needs besides being closed, in a hierarchy where no label has two parents. In training and prediction
        "path": it is one path from a root to a leaf; "node": one to any label; "trees": in each tree one to any label, or
        none. In prediction "leaf": some leaf is on. None: nothing. "auto": the first of these that all training rows keep; None
        where labels have two parents or are missing, with `tables` and with an oracle of your own.
    oracle : Oracle, optional
        None: LabelPaths for paths, TreeMRF for other trees, else EnumerationMRF up to 16 labels, else CpSatMRF; all exact. Or
        your own.

    Attributes
    ----------
    hierarchy_ : LabelHierarchy
        The hierarchy.
    label_weights_ : ndarray (n_labels,)
        What a wrong label costs.
    require_ : str or None
        What is required of outputs; the log of `fit` says which rows stand against stricter rules.
    edges_, oracle_, n_labels_, n_features_in_, feature_names_in_, scale_, support_, label_names_
        As for MultiLabelMRF.
    coef_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator.

    Examples
    --------
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 0], [1, 0], [1, 1], [1, 1]]
    >>> HierarchicalMultiLabel(C=10.0, hierarchy=[-1, 0], max_iter=200).fit(X, Y).predict([[-0.5], [2.9]]).tolist()
    [[0, 0], [1, 1]]
    """

    _: KW_ONLY
    hierarchy: LabelHierarchy | npt.ArrayLike | None = None
    label_weights: str | npt.ArrayLike = "uniform"
    tables: bool = False
    require: str | None = "auto"

    hierarchy_: LabelHierarchy = field(init=False)
    label_weights_: Floats = field(init=False)
    require_: str | None = field(init=False)

    _field: LabelField = field(init=False)
    _sharding = HierarchySharding()
    _HEADER = Record({
        **FIELD,
        "label_weights": maybe(Text()),
        "tables": Field(Flag(), "tables"),
        "require": Field(OneOf((None, *RULES)), "require_"),
    })  # fmt: skip

    def _field_of(self, hierarchy: LabelHierarchy, label_weights: Any, n_features: int, needed: str | None) -> LabelField:
        """The field along a hierarchy: (parent off, child on) is forbidden on every edge. label_weights: of wrong labels."""
        n, costs, bias = hierarchy.n, label_costs(label_weights, hierarchy), checked_nonnegative(self.bias, "bias")
        edges = np.array(graph_shape(n, 2, hierarchy.edges)[2:], dtype=np.int64).reshape(-1, 2)
        fixed = np.zeros(2 * n + 4 * len(edges))
        parent_first = hierarchy.edges[:, 0] < hierarchy.edges[:, 1]
        fixed[2 * n + 4 * np.arange(len(edges)) + np.where(parent_first, 1, 2)] = FORBIDDEN
        oracle = hierarchy_oracle(n, edges, needed) if self.oracle is None else checked_oracle(self.oracle)
        return LabelField(
            n_features, list(hierarchy.names), edges, bias, oracle, fixed if len(edges) else None, hierarchy=hierarchy,
            costs=costs, tables=self.tables, require=needed,
        )  # fmt: skip

    def _hierarchy_of(self, X: Any, n_labels: int, names: list[str] | None) -> LabelHierarchy:
        """The hierarchy of the setting, or else of the data."""
        given = self.hierarchy
        if given is None:
            if isinstance(X, MultiLabelData) and X.hierarchy is not None:
                return X.hierarchy
            raise ParameterError("hierarchy: give one (parents, edges or a LabelHierarchy), or data that have one")
        if not isinstance(given, LabelHierarchy):
            array = np.asarray(given)
            flat = array.ndim == 1 and array.size
            given = LabelHierarchy.from_parents(array, names) if flat else LabelHierarchy(n_labels, array, names)
        if given.n != n_labels:
            raise DataError(f"the hierarchy has {given.n} labels, but y has {n_labels} columns")
        return given

    def _contents(self) -> Bundle:
        plain, found = self.label_weights if isinstance(self.label_weights, str) else None, super()._contents()
        found.header |= {"label_weights": plain, "tables": self._field.tables}
        found.arrays = {"hierarchy": self.hierarchy_.edges, "label_weights": self.label_weights_} | found.arrays
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Oracle | None) -> Self:
        n_labels = head["n_labels"]
        hierarchy = LabelHierarchy(n_labels, pairs_of(head, bundle, "hierarchy"), head["label_names"])
        costs = array_of(bundle.arrays, "label_weights", _COSTS, n_labels=n_labels).copy()
        setting = costs if head["label_weights"] is None else head["label_weights"]
        if head["require"] is not None:
            hierarchy.require_tree()
        model = restored(cls, head, require=head["require"], hierarchy=hierarchy, label_weights=setting, oracle=oracle)
        return with_field(model, model._field_of(hierarchy, costs, head["n_features"], head["require"]), head, bundle)
