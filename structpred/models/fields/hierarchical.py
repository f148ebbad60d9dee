"""Multi-label classification under a hierarchy of labels: outputs are closed, a label that is on has its parents on."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.base import as_floats
from structpred.models.bundles import restored
from structpred.models.fields.estimator import FieldEstimator, checked_bias
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import hierarchy_oracle
from structpred.models.fields.multilabel import FIELD, LabelSets, pairs_of, with_field
from structpred.models.fields.sharding import HierarchySharding
from structpred.models.settings import checked_oracle
from structpred.oracles.mrf import graph_shape
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Array, Field, Flag, OneOf, Record, Text, array_of, maybe

#: label_weights="depth": what a label counts less than its parent (Vens et al. 2008)
DECAY = 0.75

#: what outputs may have to be, the strictest first
REQUIRED = ("path", "leaf")

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
    bias, scale
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
        What an output needs besides being closed, in a hierarchy where no label has two parents. "path": it is one path from a
        root to a leaf, in training and prediction; "leaf": some leaf is on, in prediction; None: nothing. "auto": "path" where
        every training row is one path, "leaf" where every row has a leaf on, else None; None, too, where labels have two parents
        or are missing, with `tables` and with an oracle of your own.
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
        What is required of outputs.
    edges_, oracle_, n_labels_, n_features_in_, label_names_
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
        "tables": Field(Flag(), "tables", default=True),  # as all models had them once
        "require": Field(OneOf((None, *REQUIRED)), "require_", default=None),
    })  # fmt: skip

    def _field_of(self, hierarchy: LabelHierarchy, label_weights: Any, n_features: int, needed: str | None) -> LabelField:
        costs, bias = label_costs(label_weights, hierarchy), checked_bias(self.bias)
        return hierarchy_field(hierarchy, costs, n_features, bias, self.oracle, tables=self.tables, require=needed)

    def _required(self, hierarchy: LabelHierarchy, Y: Integers) -> tuple[str, ...]:
        """What outputs may have to be by `require` and these rows, the strictest first; DataError where rows contradict it."""
        if not isinstance(self.tables, bool):
            raise ParameterError(f"tables: expected True or False, got {self.tables!r}")
        if self.require == "auto":
            if self.tables or self.oracle is not None or not hierarchy.is_tree or (Y < 0).any():
                return ()
            return tuple(need for need in REQUIRED if contradicting(hierarchy, Y, need) is None)
        if self.require is None:
            return ()
        if self.require not in REQUIRED:
            raise ParameterError(f"require: expected 'path', 'leaf', 'auto' or None, got {self.require!r}")
        if self.tables or self.oracle is not None:
            other = "tables=True" if self.tables else "an oracle of your own"
            raise ParameterError(f"require={self.require!r} cannot be combined with {other}")
        hierarchy.require_tree()
        if (i := contradicting(hierarchy, Y, self.require)) is not None:
            on = ", ".join(repr(hierarchy.names[k]) for k in np.flatnonzero(Y[i] == 1)[:10].tolist()) or "none"
            what = "one path from a root to a leaf" if self.require == "path" else "a set with a leaf on"
            raise DataError(f"sample {i}: require={self.require!r} expects {what}, got the labels {on}")
        return (self.require,)

    def _hierarchy_of(self, X: Any, n_labels: int, names: list[str] | None) -> LabelHierarchy:
        """The hierarchy of the setting, or else of the data."""
        given = self.hierarchy
        if given is None:
            if isinstance(X, MultiLabelData) and X.hierarchy is not None:
                return X.hierarchy
            raise ParameterError("hierarchy: give one (parents, edges or a LabelHierarchy), or data that have one")
        if not isinstance(given, LabelHierarchy):
            array = np.asarray(given)
            given = (
                LabelHierarchy.from_parents(array, names)
                if array.ndim == 1 and array.size
                else LabelHierarchy(n_labels, array, names)
            )
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


def contradicting(hierarchy: LabelHierarchy, Y: Integers, need: str) -> int | None:
    """The first row without missing labels that is not what is required; None where all are. Labels have one parent at most."""
    leaves = np.array([not below for below in hierarchy.children])
    n_leaves = (Y[:, leaves] == 1).sum(axis=1)
    if need == "leaf":
        bad = n_leaves == 0
    else:  # closed rows with one leaf, and no more labels than its path has
        lengths = (Y[:, leaves] == 1) @ (hierarchy.ancestors[leaves].sum(axis=1) + 1)
        bad = (n_leaves != 1) | ((Y == 1).sum(axis=1) != lengths)
    bad &= (Y >= 0).all(axis=1)
    return int(bad.argmax()) if bad.any() else None


def hierarchy_field(
    hierarchy: LabelHierarchy, costs: Floats, n_features: int, bias: float, oracle: Oracle | None, *,
    tables: bool, require: str | None,
) -> LabelField:  # fmt: skip
    """The field along a hierarchy: (parent off, child on) is forbidden on every edge. costs: of wrong labels."""
    n = hierarchy.n
    edges = np.array(graph_shape(n, 2, hierarchy.edges)[2:], dtype=np.int64).reshape(-1, 2)
    fixed = np.zeros(2 * n + 4 * len(edges))
    parent_first = hierarchy.edges[:, 0] < hierarchy.edges[:, 1]
    fixed[2 * n + 4 * np.arange(len(edges)) + np.where(parent_first, 1, 2)] = FORBIDDEN
    chosen = hierarchy_oracle(n, edges, require) if oracle is None else checked_oracle(oracle)
    return LabelField(
        n_features, list(hierarchy.names), edges, bias, chosen, fixed if len(edges) else None, hierarchy=hierarchy, costs=costs,
        tables=tables, require=require,
    )  # fmt: skip


def label_costs(label_weights: Any, hierarchy: LabelHierarchy) -> Floats:
    """What a wrong label costs, one number per label, as the setting says; ParameterError for anything else."""
    if isinstance(label_weights, str):
        if label_weights == "uniform":
            return np.ones(hierarchy.n)
        if label_weights == "depth":
            return np.asarray(DECAY ** hierarchy.depths.astype(np.float64), dtype=np.float64)
        if label_weights == "sibling":
            costs = np.ones(hierarchy.n)
            for k in hierarchy.order:
                shares = [costs[p] / len(hierarchy.children[p]) for p in hierarchy.parents[k]]
                costs[k] = max(shares, default=1.0)
            return costs
        raise ParameterError(f"label_weights: expected 'uniform', 'depth', 'sibling' or numbers, got {label_weights!r}")
    costs = as_floats(label_weights, "label_weights")
    if costs.shape != (hierarchy.n,) or not np.isfinite(costs).all() or (costs < 0).any() or not costs.any():
        raise ParameterError(f"label_weights: expected {hierarchy.n} finite numbers >= 0, not all zero, got shape {costs.shape}")
    return costs
