"""Why a random field gives its labels: the scores of nodes and edges taken apart into what each feature adds."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.features.graphs import GraphFeatures
from structpred.models.explained_parts import part_features
from structpred.models.explanations import Contribution, Explanation, contrast, wants_runner_up
from structpred.models.fields.field_names import FieldNames
from structpred.models.fields.inspection import LabelInspection, inspect_labels
from structpred.models.inspections import WeightInspection, top_weights
from structpred.oracles.mrf import graph_of
from structpred.task.inference import Inference

Codes = npt.NDArray[np.int64]


class ExplainedField(Protocol):
    """How a field reads one sample, and what it calls its parts."""

    def part_names(self) -> FieldNames:
        """The names of nodes, states and features."""

    def one(self, x: Any) -> Any:
        """The data that hold this sample alone."""

    def given(self, labels: Any, data: Any) -> Codes:
        """The output of the user's as codes; DataError for an invalid one."""

    def shown(self, codes: Codes) -> list[Any]:
        """An output for people."""

    def inference(self, data: Any) -> Inference:
        """Inference over the data."""


class FittedField(Protocol):
    """What explaining needs of an estimator."""

    coef_: Vector

    @property
    def _field(self) -> Any: ...
    def _check_fitted(self) -> None: ...


def explain_field(model: FittedField, x: Any, labels: Any, node: int | None, against: Any) -> Explanation:
    """Take the score of one output apart, or the difference between two. node: whose label the runner-up must change."""
    model._check_fitted()
    field: ExplainedField = model._field
    data = field.one(x)
    inference = field.inference(data)
    chosen = inference.decode(model.coef_)[0] if labels is None else _as_given(field, labels, data, "labels")
    n = len(chosen)
    if node is not None and (isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node < n):
        raise ParameterError(f"node: expected a number from 0 to {n - 1}, got {node!r}")
    other = None
    if (node is not None and against is None) or wants_runner_up(against, "another output"):
        other = _runner_up(inference, model.coef_, chosen, range(n) if node is None else [int(node)])
    elif node is not None:
        raise ParameterError("a node or label is compared with the best output in which it differs: leave against out")
    elif against is not None:
        other = _as_given(field, against, data, "against")
    names = field.part_names()
    found = list(_contributions(inference, model.coef_, chosen, names))
    if other is not None:
        found = contrast(found, list(_contributions(inference, model.coef_, other, names)))
    shown, instead = field.shown(chosen), None if other is None else field.shown(other)
    return Explanation.of(shown, instead, found, n, names.unit)


def _as_given(field: ExplainedField, labels: Any, data: Any, name: str) -> Codes:
    try:
        return field.given(labels, data)
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from None


def _runner_up(inference: Inference, w: Vector, chosen: Codes, nodes: Iterable[int]) -> Codes:
    """The best output in which one of the nodes has another label: one argmax for each of them."""
    theta, shape = inference.scores(w, 0), inference.shapes[0]
    best, found = FORBIDDEN / 2, None
    for v in nodes:
        ruled = np.array(theta, dtype=np.float64)
        ruled[shape[1] * v + int(chosen[v])] = FORBIDDEN
        try:
            labels, _ = inference.best(ruled, 0)
        except InfeasibleError:
            continue
        value = float(theta[inference.oracle.parts(labels, shape)].sum())
        if labels[v] != chosen[v] and value > best:
            best, found = value, labels
    if found is None:
        raise DataError("there is no other output to compare with this one")
    return found


def _contributions(inference: Inference, w: Vector, labels: Codes, names: FieldNames) -> Iterator[Contribution]:
    features: Any = inference.features
    tables: GraphFeatures = features
    graph, k = graph_of(inference.shapes[0]), tables.n_states
    for f in part_features(inference, w, labels):
        if f.part < graph.n * k:
            v, state = divmod(f.part, k)
            name = names.features[f.place // k % tables.nodes.n_columns]
            yield Contribution("node", v, names.state(v, state), name, f.value, f.weight)
            continue
        edge, pair = divmod(f.part - graph.n * k, k * k)
        i, j = graph.edges[edge].tolist()
        name = names.edge_features[(f.place - tables.start) // tables.width % tables.edges.n_columns]
        ends = f"{names.node(i)} - {names.node(j)}"
        label = f"{names.state(i, pair // k)}, {names.state(j, pair % k)}"
        yield Contribution("edge", j, label, f"{ends}: {name}" if name else ends, f.value, f.weight)


class ExplainedLabelSets:
    """What a multi-label model says of its weights and its decisions, and to scikit-learn."""

    def predict_scores(self: FittedField, X: Any) -> Floats:
        """(n, n_labels): the best score with the label on less the best score with it off, the other labels free.

        Along a hierarchy a label that is on has its ancestors on, too, and one that is off its descendants off. Positive where
        `predict` says 1 (with an exact oracle). It ranks samples and labels; it is not a probability.
        """
        self._check_fitted()
        found: Floats = self._field.label_scores(self._field.read(X), self.coef_)
        return found

    def explain(self: FittedField, x: Any, labels: Any = None, *, label: str | None = None, against: Any = None) -> Explanation:
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

    def top_features(self, n: int = 20, *, label: str | None = None) -> LabelInspection:
        """The n strongest positive and negative weights of each label (or of one), on less off, and all pairs of labels."""
        return inspect_labels(self, n, label)  # type: ignore[arg-type]

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        tags.target_tags.required = tags.target_tags.two_d_labels = True
        tags.target_tags.one_d_labels = False
        return tags


class ExplainedGraphs:
    """What a model of graphs says of its weights and its decisions."""

    def explain(self: FittedField, x: Any, labels: Any = None, *, node: int | None = None, against: Any = None) -> Explanation:
        """Why the nodes of a graph get their labels: what each feature of each node and edge adds to the score.

        x: one graph in the form of fit's X. labels: what to explain, one for each node; None: what is predicted. against: other
        labels, or "runner-up" (the best other ones): only what differs, as differences. node: why has this node its label? The
        alternative is then the best output in which it has another one. Raises DataError for labels that the model does not
        know.
        """
        return explain_field(self, x, labels, node, against)

    def top_features(self, n: int = 20) -> WeightInspection:
        """The n strongest positive and negative weights of nodes and edges by name."""
        return top_weights(self, n)  # type: ignore[arg-type]
