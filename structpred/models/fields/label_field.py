"""Examples with sets of labels: how users give them, and the field over the labels of one: a node per label, an edge per pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle, Shape
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.features.graphs import GraphFeatures
from structpred.features.rows import csr_of, stack_rows
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.constrained import Constraints, constrained
from structpred.models.fields.kernel_columns import RowColumns
from structpred.models.fields.label_graphs import FieldNames
from structpred.models.fields.label_scores import label_scores
from structpred.models.fields.rules import RULES
from structpred.models.partial import tell_missing
from structpred.models.signs import NameTable
from structpred.oracles.mrf import graph_shape
from structpred.task.inference import Inference

Labels = npt.NDArray[np.int64]


def as_rows(X: Any, n_features: int | None = None) -> Any:
    """The features as a CSR array (n, d) of float64: an array, a sparse matrix, a data frame or MultiLabelData.

    n_features: how many columns are expected, None for any number. DataError, naming the sample, for values that are not finite.
    """
    given = X.X if isinstance(X, MultiLabelData) else X
    if not hasattr(given, "tocsr"):
        try:
            given = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"X: expected a 2-d array of numbers (n_samples, n_features) or a sparse matrix: {error}") from None
        if given.ndim != 2:
            raise DataError(f"X: expected a 2-d array (n_samples, n_features), got {given.ndim}-d of shape {given.shape}")
    rows = stack_rows(given)
    if n_features is not None and rows.n_columns != n_features:
        raise DataError(f"X has {rows.n_columns} features, but the model was fitted with {n_features}")
    if not rows.n_columns:
        raise DataError("X: expected at least one feature column, got none")
    return rows.matrix


def as_indicator(y: Any, n: int, n_labels: int | None = None, *, missing: bool = False) -> Labels:
    """The labels as int64 (n, n_labels), 0 and 1, and with missing=True -1 for one that is not known.

    missing: whether -1, None and the set {0, 1} may stand for such a label. Raises DataError, naming the sample, for other
    shapes and values.
    """
    from scipy import sparse

    if y is None:
        raise DataError("y: expected rows of 0 and 1, one column per label, got None")
    dense = csr_of(y, None, "y").toarray() if sparse.issparse(y) else y
    try:
        given = np.asarray(dense)
    except ValueError as error:
        raise DataError(f"y: expected rows of 0 and 1, one column per label: {error}") from None
    if missing and given.ndim == 2 and given.dtype == object:
        given = _marked(given)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise DataError(
            f"y: expected rows of 0 and 1, one column per label, got {given.ndim}-d {given.dtype}; estimators take lists of "
            "label names, too, and sklearn.preprocessing.MultiLabelBinarizer makes such rows of other sets"
        )
    if len(given) != n:
        raise DataError(f"X has {n} samples but y has {len(given)}")
    if not given.shape[1] or (n_labels is not None and given.shape[1] != n_labels):
        raise DataError(f"y: expected {n_labels or 'at least one'} label columns, got {given.shape[1]}")
    bad = (given != 0) & (given != 1) & ~(missing & (given == -1))
    if bad.any():
        i, k = np.argwhere(bad)[0].tolist()
        hint = "" if given[i, k] != -1 else " (missing; only training takes that)"
        raise DataError(f"sample {i}: y must be 0 or 1, got {given[i, k]} for label {k}{hint}")
    return given.astype(np.int64)


def _marked(given: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Entries of any kind with -1 in the place of None and of sets of both states; a set of one state is that state."""
    found = given.copy()
    for place, entry in np.ndenumerate(given):
        if entry is None:
            found[place] = -1
        elif isinstance(entry, set | frozenset):
            if not entry or not entry <= {0, 1}:
                raise DataError(f"sample {place[0]}: expected 0, 1 or both in the set of label {place[1]}, got {entry!r}")
            found[place] = -1 if len(entry) == 2 else next(iter(entry))
    try:
        return np.array(found.tolist())
    except ValueError:
        return given


def named_rows(y: Any, names: Sequence[str] | None = None) -> tuple[Any, list[str] | None]:
    """Rows of 0 and 1 and the names of their columns, where y is a data frame or lists of label names; else y as it is, and None.

    names: of the labels, where these are known: columns come in their order. Without them names are sorted. Raises DataError,
    naming the sample, for a name that is not among them.

    >>> named_rows([["b"], [], ["a", "b"]])[0].tolist(), named_rows([["b"], [], ["a", "b"]])[1]
    ([[0, 1], [0, 0], [1, 1]], ['a', 'b'])
    """
    if (columns := getattr(y, "columns", None)) is not None:
        found = [str(name) for name in columns]
        if names is None or found == names or sorted(found) != sorted(names):
            return y, found
        return np.asarray(y)[:, [found.index(name) for name in names]], list(names)
    listed = y.tolist() if getattr(y, "ndim", 0) == 1 and y.dtype.kind == "O" else y
    if not isinstance(listed, list | tuple):
        return y, None
    if not all(isinstance(row, list | tuple | set | frozenset) and all(isinstance(one, str) for one in row) for row in listed):
        return y, None
    seen = {name for row in listed for name in row}
    if seen <= {"0", "1"} and (seen or names is None):  # states as text, or nothing
        return y, None
    known = sorted(seen) if names is None else list(names)
    place, rows = {name: k for k, name in enumerate(known)}, np.zeros((len(listed), len(known)), np.int64)
    for i, row in enumerate(listed):
        if unknown := sorted({*row} - {*known}):
            raise DataError(f"sample {i}: there is no label {unknown[0]!r}; there are {len(known)}: {', '.join(known[:10])}")
        rows[i, [place[name] for name in row]] = 1
    return rows, known


def labels_of(X: Any, y: Any, n: int, n_labels: int | None = None, *, missing: bool = False) -> Labels:
    """The labels of n samples: y, or those of MultiLabelData as X with y left out."""
    return as_indicator(X.Y if isinstance(X, MultiLabelData) and y is None else y, n, n_labels, missing=missing)


def example_accuracy(gold: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """For each row |gold and predicted| / |gold or predicted| (Jaccard); 1 where both are empty.

    >>> example_accuracy(np.array([[1, 1, 0], [0, 0, 0]]), np.array([[1, 0, 0], [0, 0, 0]])).tolist()
    [0.5, 1.0]
    """
    both = ((gold != 0) & (predicted != 0)).sum(axis=1)
    either = ((gold != 0) | (predicted != 0)).sum(axis=1)
    return np.where(either == 0, 1.0, both / np.maximum(either, 1))


def label_choices(Y: Labels) -> dict[int, list[tuple[int, ...] | None]]:
    """For each row with missing labels (-1) the states that each label may have, None for both; says how many are missing."""
    rows = np.flatnonzero((Y < 0).any(axis=1))
    if len(rows):
        if (Y < 0).all():
            raise DataError("y: expected some labels, but all are missing")
        tell_missing(int((Y < 0).sum()), 0, Y.size)
    return {i: [None if state < 0 else (state,) for state in Y[i].tolist()] for i in rows.tolist()}


@dataclass(frozen=True, eq=False)
class LabelField(RowColumns):
    """The Markov random field over the labels of one example: a node per label with its weights, an edge per pair with its table.

    n_features: of an example. names: of the labels. edges: (E, 2), the smaller label first. bias: the value of a constant
    feature; 0 for none. fixed: scores added to the parts of every example (forbidden pairs), or None. scale: of the features, or
    None. columns: what a kernel makes of them, or None. hierarchy: true labels must be closed under it, or None; costs: what a
    wrong label costs there. feature_names: None for their numbers.
    """

    n_features: int
    names: list[str]
    edges: Integers
    bias: float
    oracle: Oracle
    fixed: Floats | None = None
    hierarchy: LabelHierarchy | None = None
    costs: Floats | None = None
    feature_names: Sequence[str] | None = None
    tables: bool = True
    require: str | None = None

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.names)

    @cached_property
    def shape(self) -> Shape:
        """The shape of every example in training."""
        return self.forest if self._trains else graph_shape(self.n_labels, 2, self.edges)

    @property
    def forest(self) -> Shape:
        """The shape of every example under a rule."""
        assert self.hierarchy is not None
        return tuple(next(iter(above), -1) for above in self.hierarchy.parents)

    @property
    def _trains(self) -> bool:
        return self.require is not None and RULES[self.require].trains

    @property
    def n_weights(self) -> int:
        """The length of the flat weights."""
        return self.n_labels * (self.n_columns + (self.bias != 0)) * 2 + self.tables * max(len(self.edges), 1) * 4

    def token_weights(self, n: int) -> list[Floats] | None:
        """What a wrong label costs, for each of n examples; None where all cost 1."""
        return None if self.costs is None or (self.costs == 1.0).all() else [self.costs] * n

    def attributes(self) -> dict[str, Any]:
        """Sizes, names and edges; the hierarchy, its costs and what is required along it where there is one."""
        own = {"hierarchy_": self.hierarchy, "label_weights_": self.costs, "require_": self.require}
        own = {} if self.hierarchy is None else own
        if self.feature_names is not None:
            own["feature_names_in_"] = np.array(self.feature_names, dtype=object)
        sizes = super().attributes() | {"n_labels_": self.n_labels}
        sizes["support_"] = self.columns and self.columns.support[:, 0]
        return {**sizes, "label_names_": self.names, "classes_": np.array(self.names), "edges_": self.edges, **own}

    def read(self, X: Any) -> Any:
        """The rows of features (CSR). DataError for a data frame whose columns are others than at fit, or in another order."""
        for known, column in zip(self.feature_names or (), getattr(X, "columns", ()), strict=False):
            if known != str(column):
                raise DataError(f"X: expected the columns of fit in their order; where {known!r} was is {str(column)!r} now")
        return as_rows(X, self.n_features)

    def truth(self, X: Any, y: Any, data: Any) -> Integers:
        """Rows of 0 and 1, of `y` or of MultiLabelData."""
        if not data.shape[0]:
            raise DataError("X: expected at least one sample, got none")
        return labels_of(X, named_rows(y, self.names)[0], data.shape[0], self.n_labels)

    def codes(self, truth: Integers) -> list[Integers]:
        """The rows; DataError for one that is not closed under the hierarchy."""
        if self.hierarchy is not None and (found := self.hierarchy.broken(truth)) is not None:
            i, parent, child = found
            names = self.hierarchy.names
            raise DataError(
                f"sample {i}: label {names[child]!r} is on without its parent {names[parent]!r}; "
                "close the rows first: y = hierarchy.closed(y)"
            )
        return list(truth)

    def features(self, rows: Any, *, joined: bool = True) -> GraphFeatures:
        """The joint features of examples with these rows (CSR); joined: whether the parts have pairs of labels, too."""
        from scipy import sparse

        n, rows = rows.shape[0], self.columns_of(rows, np.arange(rows.shape[0] + 1))
        edges = self.edges if joined else self.edges[:0]
        graph = graph_shape(self.n_labels, 2, edges)
        zeros, labels, pairs = np.zeros(self.n_labels, np.int64), np.arange(self.n_labels), np.arange(len(edges))
        fixed = None if self.fixed is None or not joined else [self.fixed] * n
        one_row = np.zeros(len(edges), np.int64)
        no_weights: dict[str, Any] = {} if self.tables else {"edge_rows": sparse.csr_array((n, 0)), "edge_row_of": [one_row] * n}
        return GraphFeatures(
            [graph] * n, rows, [zeros] * n, [labels] * n, edge_type=[pairs] * n, n_node_types=self.n_labels,
            n_edge_types=max(len(edges), 1), n_states=2, fixed=fixed, **no_weights,
        )  # fmt: skip

    def inference(self, data: Any) -> Inference:
        """Inference over examples with these rows, as in training."""
        return Inference(self.features(data, joined=not self._trains), self.oracle, [self.shape] * data.shape[0])

    def decoding(self, data: Any) -> Inference:
        """Inference over the outputs that are predicted."""
        if self.require is None or self._trains:
            return self.inference(data)
        return Inference(self.features(data, joined=False), RULES[self.require].oracle, [self.forest] * data.shape[0])

    def outputs(self, data: Any, w: Vector, constraints: Constraints = None) -> Integers:
        """The best labels of each example, (n, n_labels)."""
        kept = constrained(self.decoding(data), constraints, lambda name: (None if name is None else self.names.index(name), 1))
        return kept.decode(w)[0].reshape(-1, self.n_labels)

    def label_scores(self, data: Any, w: Vector) -> Floats:
        """(n, n_labels): the best score with the label less the best score without it; 1e30 where no output is without it."""
        return label_scores(self.decoding(data), w, self.n_labels)

    def marginals(self, data: Any, w: Vector) -> Floats:
        """(n, n_labels): p(label on | x)."""
        return np.array([mu[1 : 2 * self.n_labels : 2] for mu in self.inference(data).marginals(w)]).reshape(-1, self.n_labels)

    def names_of_features(self) -> Sequence[str]:
        """What the features of an example are called, without the constant one; a kernel's are similarities to training rows."""
        if self.columns is not None:
            return [f"row {i}" for i in self.columns.support[:, 0].tolist()]
        return self.feature_names or [str(k) for k in range(self.n_features)]

    def weight_names(self) -> list[NameTable]:
        """Of features "FEATURE -> LABEL": the weight with the label on; that with the label off has the opposite sign. Of pairs
        "pair LABEL, LABEL": the weights of both on and of both off; those of one of them on have the opposite sign.
        """
        rows, width = [*self.names_of_features(), *(["bias"] if self.bias else [])], 2 * (self.n_columns + (self.bias != 0))
        nodes = NameTable(rows, self.names, row_step=2, column_step=width, parts=((1, 1), (0, -1)))
        pairs = [f"pair {self.names[i]}, {self.names[j]}" for i, j in self.edges.tolist()]
        start, parts = width * self.n_labels, ((3, 1), (0, 1), (1, -1), (2, -1))
        return [nodes, NameTable(pairs, start=start, row_step=4, parts=parts)] if pairs and self.tables else [nodes]

    def part_names(self) -> FieldNames:
        """Nodes are labels, on or off."""
        features = [*self.names_of_features(), *(["bias"] if self.bias else [])]
        return FieldNames("label", self.names, ["off", "on"], features, [""])

    def one(self, x: Any) -> Any:
        """The row of one example."""
        rows = self.read(x if hasattr(x, "tocsr") or isinstance(x, MultiLabelData) or np.ndim(x) == 2 else [x])
        if rows.shape[0] != 1:
            raise DataError(f"x: expected one example, got {rows.shape[0]}; take one of them first")
        return rows

    def given(self, labels: Any, data: Any) -> Integers:
        """Labels as a row of 0 and 1, or as the names of those that are on."""
        listed = list(labels)
        if all(isinstance(name, str) for name in listed):
            if unknown := sorted(set(listed) - set(self.names)):
                raise DataError(
                    f"there is no label {unknown[0]!r}; the model has {len(self.names)}: {', '.join(self.names[:10])}"
                )
            listed = [int(name in listed) for name in self.names]
        return self.codes(self.truth(None, [listed], data))[0]

    def shown(self, codes: Integers) -> list[str]:
        """The names of the labels that are on."""
        return [self.names[k] for k in np.flatnonzero(codes).tolist()]

    def agreement(self, truth: Integers, found: Integers) -> float:
        """The mean Jaccard accuracy of the examples."""
        return float(example_accuracy(truth, found).mean())
